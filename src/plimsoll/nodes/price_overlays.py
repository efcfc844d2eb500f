"""The file of `--price-overlay`: machine type to price or factor. Who runs or plans reads the bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from plimsoll.core.errors import InvalidInput
from plimsoll.nodes.planning.prices import read_overlay
from plimsoll.objects.manifests import read_documents

if TYPE_CHECKING:
    from plimsoll.nodes.planning.prices import Overlay


def overlay_in(data: bytes, *, source: str) -> dict[str, Overlay]:
    """Raises `InvalidInput` with the file and the place in it."""
    documents = [document for _, document in read_documents(data, source=source)]
    if len(documents) != 1 or not isinstance(documents[0], dict):
        raise InvalidInput("must be one map: machine type to price", path=source)
    return dict(read_overlay(documents[0], path=source))
