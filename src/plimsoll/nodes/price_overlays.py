"""The file of `--price-overlay`: machine type to price or factor. For whoever runs, plays or plans."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from plimsoll.core.errors import InvalidInput
from plimsoll.nodes.planning.prices import read_overlay
from plimsoll.objects.manifests import read_documents

if TYPE_CHECKING:
    from plimsoll.nodes.planning.prices import Overlay


def overlay_from(filename: str, *, path: str) -> dict[str, Overlay]:
    """What the file holds, nothing without a name; `path` is the option that names it."""
    if not filename:
        return {}
    try:
        return overlay_in(Path(filename).read_bytes(), source=filename)
    except OSError as error:
        raise InvalidInput(f"{filename} cannot be read: {error.strerror}", path=path) from error


def overlay_in(data: bytes, *, source: str) -> dict[str, Overlay]:
    """Raises `InvalidInput` with the file and the place in it."""
    documents = [document for _, document in read_documents(data, source=source)]
    if len(documents) != 1 or not isinstance(documents[0], dict):
        raise InvalidInput("must be one map: machine type to price", path=source)
    return dict(read_overlay(documents[0], path=source))
