"""Files of Kubernetes objects, as kubectl accepts them: YAML or JSON, several documents, `kind: List`.

The content decides the format, not the name of the file.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from plimsoll.core.errors import UnreadableDocument
from plimsoll.core.plans import Ref
from plimsoll.core.values import Value
from plimsoll.objects.codec.yaml import DEEPEST, load_all

if TYPE_CHECKING:
    from collections.abc import Iterator

_BLANK = re.compile(r"\s*")


class Manifest(Value):
    """One object as it was written, and where."""

    source: str
    line: int
    body: dict[str, Any]

    def __repr__(self) -> str:
        """Omits the body, which may be a Secret's."""
        return f"Manifest({self.ref}, {self.source}:{self.line})"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        return [("ref", str(self.ref)), ("source", self.source), ("line", self.line)]

    @property
    def api_version(self) -> str:
        return _as_text(self.body.get("apiVersion"))

    @property
    def group(self) -> str:
        return self.api_version.rpartition("/")[0]

    @property
    def kind(self) -> str:
        return _as_text(self.body.get("kind"))

    @property
    def ref(self) -> Ref:
        """The object's own idea of its name, for messages and for finding its old version."""
        metadata = self.body.get("metadata")
        metadata = metadata if isinstance(metadata, dict) else {}
        name = _as_text(metadata.get("name")) or _as_text(metadata.get("generateName"))
        return Ref(kind=self.kind, namespace=_as_text(metadata.get("namespace")), name=name)


def read_documents(
    data: bytes, *, source: str, letters_are_text: bool = False, odd_numbers: bool = False
) -> Iterator[tuple[int, Any]]:
    """Every document with its line, whatever it contains. Raises UnreadableDocument with the source and the position.

    `letters_are_text` is for Plimsoll's own files, where Y is a valid name; Kubernetes reads it as true.
    `odd_numbers` accepts NaN and infinities, for callers that report them with the path of the field.
    """
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UnreadableDocument(f"not UTF-8 at byte {error.start}", path=source) from error
    try:
        yield from (
            _parse_json_documents(text, odd_numbers=odd_numbers)
            if text.lstrip()[:1] in {"{", "["}
            else load_all(text, letters_are_text=letters_are_text, odd_numbers=odd_numbers)
        )
    except UnreadableDocument as error:
        raise UnreadableDocument(error.problem, path=source) from error


def read_manifests(data: bytes, *, source: str, odd_numbers: bool = False) -> list[Manifest]:
    """The objects of a file, with lists split into their items. `odd_numbers` as for `read_documents`."""
    return [
        Manifest(source=source, line=line, body=body)
        for line, document in read_documents(data, source=source, odd_numbers=odd_numbers)
        for body in _iterate_objects(document, source=source, line=line)
    ]


def _iterate_objects(document: Any, *, source: str, line: int, place: str = "") -> Iterator[dict[str, Any]]:
    if not isinstance(document, dict):
        problem = f"line {line}: {place}an object was expected, this is a {_describe_type(document)}"
        raise UnreadableDocument(problem, path=source)
    kind = document.get("kind")
    items = document.get("items", [])
    if not (isinstance(kind, str) and kind.endswith("List") and isinstance(items, list | None)):
        yield document
        return
    for index, item in enumerate(items or ()):
        here = f"{place}items[{index}]: "
        typed = _add_item_type(document, item) if isinstance(item, dict) else item
        yield from _iterate_objects(typed, source=source, line=line, place=here)


def _add_item_type(holder: dict[str, Any], item: dict[str, Any]) -> dict[str, Any]:
    """Items of a typed list (PodList) do not say what they are; the list does."""
    if item.get("kind") or holder["kind"] == "List":
        return item
    return {"apiVersion": holder.get("apiVersion"), "kind": holder["kind"].removesuffix("List"), **item}


def _parse_json_documents(text: str, *, odd_numbers: bool) -> Iterator[tuple[int, Any]]:
    """Consecutive JSON values. Flow style YAML starts alike, so text that is not JSON is parsed as YAML."""
    try:
        yield from _parse_json_values(text, odd_numbers=odd_numbers)
    except json.JSONDecodeError as error:
        try:
            documents = list(load_all(text, odd_numbers=odd_numbers))
        except UnreadableDocument:
            raise UnreadableDocument(f"line {error.lineno}, column {error.colno}: {error.msg}") from error
        yield from documents
    except RecursionError as error:
        raise UnreadableDocument(f"nested deeper than {DEEPEST} levels") from error
    except ValueError as error:  # Python's own bound on the digits of a whole number
        raise UnreadableDocument("holds a number of thousands of digits") from error


def _parse_json_values(text: str, *, odd_numbers: bool) -> list[tuple[int, Any]]:
    constant, number = (float, float) if odd_numbers else (_refuse_constant, _parse_finite)
    decoder = json.JSONDecoder(object_pairs_hook=_build_object, parse_constant=constant, parse_float=number)
    found: list[tuple[int, Any]] = []
    place = _skip_blanks(text, 0)
    while place < len(text):
        line = text.count("\n", 0, place) + 1
        value, place = decoder.raw_decode(text, place)
        found.append((line, value))
        place = _skip_blanks(text, place)
    return found


def _skip_blanks(text: str, place: int) -> int:
    blanks = _BLANK.match(text, place)
    return blanks.end() if blanks else place


def _build_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise UnreadableDocument(f'key "{twice}" occurs twice in one object')
    return made


def _refuse_constant(name: str) -> Any:
    raise UnreadableDocument(f"{name} is not JSON")


def _parse_finite(digits: str) -> float:
    number = float(digits)
    if number in {float("inf"), float("-inf")}:
        raise UnreadableDocument(f"{digits} is too large a number")
    return number


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _describe_type(value: Any) -> str:
    names = {list: "list", str: "text", bool: "boolean", int: "number", float: "number", type(None): "null"}
    return names.get(type(value), type(value).__name__)
