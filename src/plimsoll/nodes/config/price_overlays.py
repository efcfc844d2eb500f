"""The file of `--price-overlay`: machine type to price or factor."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from plimsoll.core.errors import InvalidInput
from plimsoll.nodes.config.flags import InvalidOptions
from plimsoll.nodes.model.prices import Overlay
from plimsoll.objects.codec.manifests import read_documents

if TYPE_CHECKING:
    from collections.abc import Mapping


def read_overlay(mapping: Mapping[str, Any], *, path: str = "price-overlay") -> dict[str, Overlay]:
    """Machine type to a price, or to `{price: ...}` or `{factor: ...}`; every mistake at once."""
    problems: list[tuple[str, str]] = []
    found: dict[str, Overlay] = {}
    for name, value in mapping.items():
        read = _parse_overlay(value)
        if read is None:
            problems.append((f"{path}.{name}", "must be a price, {price: number} or {factor: number}, none negative"))
        else:
            found[str(name)] = read
    if problems:
        raise InvalidOptions(problems)
    return found


def _parse_overlay(value: Any) -> Overlay | None:
    if isinstance(value, dict):
        field = next(iter(value), "")
        if len(value) != 1 or field not in {"price", "factor"} or not _is_amount(value[field]):
            return None
        return Overlay(**{field: float(value[field])})
    return Overlay(price=float(value)) if _is_amount(value) else None


def _is_amount(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < math.inf


def read_overlay_file(filename: str, *, path: str) -> dict[str, Overlay]:
    """What the file holds, nothing without a name; `path` is the option that names it."""
    if not filename:
        return {}
    try:
        return decode_overlay_file(Path(filename).read_bytes(), source=filename)
    except OSError as error:
        raise InvalidInput(f"{filename} cannot be read: {error.strerror}", path=path) from error


def decode_overlay_file(data: bytes, *, source: str) -> dict[str, Overlay]:
    """Raises `InvalidInput` with the file and the place in it."""
    documents = [document for _, document in read_documents(data, source=source)]
    if len(documents) != 1 or not isinstance(documents[0], dict):
        raise InvalidInput("must be one map: machine type to price", path=source)
    return dict(read_overlay(documents[0], path=source))
