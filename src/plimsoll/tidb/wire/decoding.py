"""Decodes JSON of planner requests and snapshots: strict JSON, null equals absent, errors name the field."""

from __future__ import annotations

from typing import TypeVar

import msgspec

from plimsoll.core.errors import InvalidInput
from plimsoll.core.values import Wire
from plimsoll.objects.codec.decode_problems import describe_problem
from plimsoll.objects.codec.nulls import strip_nulls

W = TypeVar("W", bound=Wire)


def read_wire(form: type[W], data: bytes) -> W:
    """Decode `data`. Raises `InvalidInput`. Unknown fields are ignored, because other writers may add some."""
    present = None
    try:
        present = strip_nulls(msgspec.json.decode(data), msgspec.inspect.type_info(form))
        return msgspec.convert(present, form)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidInput(describe_problem(error, value=present)) from error
