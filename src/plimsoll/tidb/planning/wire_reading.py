"""JSON of the planner's questions into structs: strict JSON, null equals absent, and complaints name the field."""

from __future__ import annotations

from typing import TypeVar

import msgspec

from plimsoll.core.errors import InvalidInput
from plimsoll.core.values import Wire
from plimsoll.objects.problems import problem_of
from plimsoll.objects.shapes import without_nulls

W = TypeVar("W", bound=Wire)


def read_wire(form: type[W], data: bytes) -> W:
    """Raises `InvalidInput`. Fields that the form does not know are ignored: others may say more than we read."""
    present = None
    try:
        present = without_nulls(msgspec.json.decode(data), msgspec.inspect.type_info(form))
        return msgspec.convert(present, form)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidInput(problem_of(error, value=present)) from error
