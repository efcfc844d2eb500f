"""JSON patch (RFC 6902, `application/json-patch+json`) as Kubernetes executes it, with its deviations.

Deviations that the recordings or the library behind the real server show: `replace` of a missing key adds it; a missing
key equals null in `test` and `copy`; an index may be negative and then counts from the end; whatever precedes the first
slash of a path is ignored. A patch that does not apply is answered with 422 and a sentence without content, whatever
the reason was.

The document is copied as far as it is written to, each container at most once; `copy` makes real copies, whose total
size is limited.
"""

from __future__ import annotations

import re
from typing import Any, Final

from plimsoll.local.apiserver.patches.json_values import copy_within_limit, get_go_kind, is_nested_deeper
from plimsoll.local.apiserver.patches.results import Patched, PatchRefused, bad_request, not_applicable, too_large
from plimsoll.objects.schema.json_values import MAX_NESTING, is_same

MAX_OPERATIONS: Final = 10_000
MAX_COPIED_BYTES: Final = 3 * 1024 * 1024

_INDEX: Final = re.compile(r"[+-]?[0-9]{1,18}", re.ASCII)
_TEXT_FIELDS: Final = ("op", "path", "from")
_KNOWN_FIELDS: Final = frozenset({"op", "path", "from", "value"})


def apply_json_patch(document: Any, patch: Any) -> Patched | PatchRefused:
    """The patched document. Operations take effect all or not at all."""
    problem = _find_shape_problem(patch)
    if problem is not None:
        return bad_request(f"error decoding patch: {problem}")
    operations = patch or []
    if len(operations) > MAX_OPERATIONS:
        return too_large(f"The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got {len(operations)}")
    scratch = _Document(document)
    try:
        for operation in operations:
            scratch.apply(operation)
    except _DoesNotApply as reason:
        return not_applicable(str(reason))
    if is_nested_deeper(scratch.root, MAX_NESTING):
        return bad_request(f"the patched object must not be nested deeper than {MAX_NESTING} levels")
    return Patched(value=scratch.root, strict_problems=_find_unknown_fields(operations))


def _find_shape_problem(patch: Any) -> str | None:
    """Go's error for a patch that is not a list of operations."""
    if patch is None:
        return None
    if not isinstance(patch, list):
        return f"json: cannot unmarshal {get_go_kind(patch)} into Go value of type []handlers.jsonPatchOp"
    for operation in patch:
        if not isinstance(operation, dict):
            return f"json: cannot unmarshal {get_go_kind(operation)} into Go value of type handlers.jsonPatchOp"
        for field in _TEXT_FIELDS:
            value = operation.get(field)
            if value is not None and not isinstance(value, str):
                kind = get_go_kind(value)
                return f"json: cannot unmarshal {kind} into Go struct field jsonPatchOp.{field} of type string"
    return None


def _find_unknown_fields(patch: list[dict[str, Any]]) -> tuple[str, ...]:
    return tuple(
        f'json patch unknown field "[{position}].{field}"'
        for position, operation in enumerate(patch)
        for field in operation
        if field not in _KNOWN_FIELDS
    )


class _DoesNotApply(Exception):
    """Leaves the operations at the first one that cannot be carried out; never leaves this module."""


class _Place:
    """Where a path leads: the container that holds it, already writable if asked for, and the last step."""

    __slots__ = ("container", "key")

    def __init__(self, container: Any, key: str) -> None:
        self.container = container
        self.key = key

    def get(self) -> Any:
        if isinstance(self.container, dict):
            return self.container.get(self.key)
        return self.container[self._index(len(self.container))]

    def put(self, value: Any) -> None:
        if isinstance(self.container, dict):
            self.container[self.key] = value
        else:
            self.container[self._index(len(self.container))] = value

    def add(self, value: Any) -> None:
        if isinstance(self.container, dict):
            self.container[self.key] = value
        elif self.key == "-":
            self.container.append(value)
        else:
            self.container.insert(self._index(len(self.container) + 1), value)

    def remove(self) -> None:
        if isinstance(self.container, list):
            del self.container[self._index(len(self.container))]
        elif self.key not in self.container:
            raise _DoesNotApply(f"Unable to remove nonexistent key: {self.key}: missing value")
        else:
            del self.container[self.key]

    def _index(self, size: int) -> int:
        if not _INDEX.fullmatch(self.key):
            raise _DoesNotApply(f"value was not a proper array index: '{self.key}'")
        index = int(self.key)
        if not -size <= index < size:
            raise _DoesNotApply(f"Unable to access invalid index: {index}: invalid index referenced")
        return index + size if index < 0 else index


class _Document:
    """The document in the making: containers are copied when they are first written to (`_mine`)."""

    def __init__(self, root: Any) -> None:
        self.root = root
        self._mine: set[int] = set()
        self._copied_bytes = 0

    def apply(self, operation: dict[str, Any]) -> None:
        kind = operation.get("op")
        if kind == "add":
            self._add(_read_path(operation, "path"), operation.get("value"), kind="add")
        elif kind == "remove":
            self._find(_read_path(operation, "path"), kind="remove").remove()
        elif kind == "replace":
            self._replace(_read_path(operation, "path"), operation.get("value"))
        elif kind == "move":
            self._move(_read_path(operation, "from"), _read_path(operation, "path"))
        elif kind == "copy":
            self._copy(_read_path(operation, "from"), _read_path(operation, "path"))
        elif kind == "test":
            self._test(_read_path(operation, "path"), operation.get("value"))
        else:
            raise _DoesNotApply(f"Unexpected kind: {kind or ''}")

    def _add(self, path: str, value: Any, *, kind: str) -> None:
        if path == "":
            self.root = value
        else:
            self._find(path, kind=kind).add(value)

    def _replace(self, path: str, value: Any) -> None:
        if path == "":
            self.root = value
        else:
            self._find(path, kind="replace").put(value)

    def _move(self, source: str, path: str) -> None:
        place = self._find(source, kind="move")
        value = place.get()
        place.remove()
        self._add(path, value, kind="move")

    def _copy(self, source: str, path: str) -> None:
        original = self._find(source, kind="copy", writes=False).get()
        value, size = copy_within_limit(original, at_most_bytes=MAX_COPIED_BYTES - self._copied_bytes)
        self._copied_bytes += size
        if self._copied_bytes > MAX_COPIED_BYTES:
            raise _DoesNotApply(
                "Unable to copy, the accumulated size increase of copy is "
                f"{self._copied_bytes}, exceeding the limit {MAX_COPIED_BYTES}"
            )
        self._add(path, value, kind="copy")

    def _test(self, path: str, expected: Any) -> None:
        actual = self.root if path == "" else self._find(path, kind="test", writes=False).get()
        if not is_same(actual, expected):
            raise _DoesNotApply(f"testing value {path} failed: test failed")

    def _find(self, path: str, *, kind: str, writes: bool = True) -> _Place:
        steps = [_unescape(step) for step in path.split("/")[1:]]
        container = self._get_root_container(writes=writes)
        for step in steps[:-1]:
            container = self._descend(container, step, writes=writes)
        if not steps or not isinstance(container, (dict, list)):
            raise _DoesNotApply(f'{kind} operation does not apply: doc is missing path: "{path}": missing value')
        return _Place(container, steps[-1])

    def _get_root_container(self, *, writes: bool) -> Any:
        if writes and id(self.root) not in self._mine:
            self.root = self._copy_on_write(self.root)
        return self.root

    def _descend(self, container: Any, step: str, *, writes: bool) -> Any:
        if not isinstance(container, (dict, list)):
            return None
        place = _Place(container, step)
        below = place.get()
        if writes and isinstance(below, (dict, list)) and id(below) not in self._mine:
            below = self._copy_on_write(below)
            place.put(below)
        return below

    def _copy_on_write(self, container: Any) -> Any:
        fresh = container.copy() if isinstance(container, (dict, list)) else container
        self._mine.add(id(fresh))
        return fresh


def _read_path(operation: dict[str, Any], field: str) -> str:
    path = operation.get(field)
    if path is None:
        raise _DoesNotApply(f"unable to decode {field}: operation missing {field} field: missing value")
    assert isinstance(path, str)
    return path


def _unescape(step: str) -> str:
    return step.replace("~1", "/").replace("~0", "~") if "~" in step else step
