"""Seeds of TidbCluster names as JSON: the input of `plimsoll tidb name`."""

from __future__ import annotations

from typing import Any

import msgspec

from plimsoll.core.errors import InvalidInput
from plimsoll.core.quantity import Quantity
from plimsoll.tidb.model.names import NameSeed


def read_seed(data: bytes) -> NameSeed:
    """A seed from JSON. Amounts are integers in our units, or Kubernetes quantities such as "1000m" and "8Gi".

    Raises `InvalidInput`, naming the field. Unknown fields are rejected, because they would not be part of the name.
    """
    try:
        given = msgspec.json.decode(data, type=dict[str, Any])
        present = {key: value for key, value in given.items() if value is not None}
        unknown = present.keys() - set(NameSeed.__struct_fields__)
        if unknown:
            raise InvalidInput("is not a field of a seed", path=min(unknown))
        for field in ("cpu", "memory", "storage"):
            if isinstance(present.get(field), str):
                present[field] = _parse_amount(field, present[field])
        return msgspec.convert(present, NameSeed)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidInput(f"not a seed: {error}") from error


def _parse_amount(field: str, text: str) -> int:
    try:
        quantity = Quantity.parse(text)
    except InvalidInput as error:
        raise InvalidInput(error.problem, path=field) from error
    return quantity.to_milli() if field == "cpu" else quantity.round_up()
