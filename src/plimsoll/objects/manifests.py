"""Files of Kubernetes objects: YAML or JSON, several documents, `kind: List`, as kubectl takes them.

Decides by content, not by a file's name. Used by every command that has `-f`, and by the scenario reader.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from plimsoll.core.errors import UnreadableDocument
from plimsoll.core.plans import Ref
from plimsoll.core.values import Value
from plimsoll.objects.yaml_text import DEEPEST, load_all

if TYPE_CHECKING:
    from collections.abc import Iterator


class Manifest(Value):
    """One object as it was written, and where."""

    source: str
    line: int
    body: dict[str, Any]

    @property
    def api_version(self) -> str:
        return _text(self.body.get("apiVersion"))

    @property
    def kind(self) -> str:
        return _text(self.body.get("kind"))

    @property
    def ref(self) -> Ref:
        """The object's own idea of its name, for messages and for finding its old version."""
        metadata = self.body.get("metadata")
        metadata = metadata if isinstance(metadata, dict) else {}
        name = _text(metadata.get("name")) or _text(metadata.get("generateName"))
        return Ref(kind=self.kind, namespace=_text(metadata.get("namespace")), name=name)


def read_documents(data: bytes, *, source: str) -> Iterator[tuple[int, Any]]:
    """Every document with its line, whatever it holds. Raises UnreadableDocument, naming the source and the place."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UnreadableDocument(f"not UTF-8 at byte {error.start}", path=source) from error
    try:
        yield from _json_document(text) if text.lstrip()[:1] in {"{", "["} else load_all(text)
    except UnreadableDocument as error:
        raise UnreadableDocument(error.problem, path=source) from error


def read_manifests(data: bytes, *, source: str) -> list[Manifest]:
    """The objects of a file, lists taken apart."""
    return [
        Manifest(source=source, line=line, body=body)
        for line, document in read_documents(data, source=source)
        for body in _objects_of(document, source=source, line=line)
    ]


def _objects_of(document: Any, *, source: str, line: int) -> Iterator[dict[str, Any]]:
    if not isinstance(document, dict):
        raise UnreadableDocument(f"line {line}: an object was expected, this is a {_named(document)}", path=source)
    kind, items = document.get("kind"), document.get("items")
    if not (isinstance(kind, str) and kind.endswith("List") and isinstance(items, list)):
        yield document
        return
    for index, item in enumerate(items):
        if not isinstance(item, dict):
            problem = f"line {line}: items[{index}]: an object was expected, this is a {_named(item)}"
            raise UnreadableDocument(problem, path=source)
        yield _with_type_of(document, item)


def _with_type_of(holder: dict[str, Any], item: dict[str, Any]) -> dict[str, Any]:
    """Items of a typed list (PodList) do not say what they are; the list does."""
    if item.get("kind") or holder["kind"] == "List":
        return item
    return {"apiVersion": holder.get("apiVersion"), "kind": holder["kind"].removesuffix("List"), **item}


def _json_document(text: str) -> Iterator[tuple[int, Any]]:
    """One JSON value; YAML in flow style looks the same at its start, so what is not JSON is tried as YAML."""
    try:
        yield 1, json.loads(text, object_pairs_hook=_object_of, parse_constant=_no_constant, parse_float=_finite)
    except json.JSONDecodeError as error:
        try:
            documents = list(load_all(text))
        except UnreadableDocument:
            raise UnreadableDocument(f"line {error.lineno}, column {error.colno}: {error.msg}") from error
        yield from documents
    except RecursionError as error:
        raise UnreadableDocument(f"nested deeper than {DEEPEST} levels") from error
    except ValueError as error:
        raise UnreadableDocument(str(error)) from error


def _object_of(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise UnreadableDocument(f'key "{twice}" stands twice in one object')
    return made


def _no_constant(name: str) -> Any:
    raise UnreadableDocument(f"{name} is not JSON")


def _finite(digits: str) -> float:
    number = float(digits)
    if number in {float("inf"), float("-inf")}:
        raise UnreadableDocument(f"{digits} is too large a number")
    return number


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _named(value: Any) -> str:
    names = {list: "list", str: "text", bool: "boolean", int: "number", float: "number", type(None): "null"}
    return names.get(type(value), type(value).__name__)
