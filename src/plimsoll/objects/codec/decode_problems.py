"""Why an object could not be decoded, with the path of the field."""

from __future__ import annotations

import re
from typing import Any, Final, Self, final

from plimsoll.core.values import Value

# msgspec ends a complaint with where it was: " - at `$.spec.containers[0].name`", or "`key` in `$.metadata.labels`".
_PLACE: Final = re.compile(r" - at (?P<key>`key` in )?`\$\.?(?P<path>[^`]*)`$")
_STEP: Final = re.compile(r"\[(\d+|\.\.\.)\]|[^.\[\]]+")
_GOT: Final = re.compile(r"got `(\w+)`$")
_JSON_TYPES: Final = {str: "str", bool: "bool", int: "int", float: "float", list: "array", dict: "object"}
_LONGEST_KEY: Final = 316


class Unreadable(Value):
    """The reason without the object that it belongs to."""

    problem: str


@final
class BadObject(Value):
    """An object that exists but cannot be decoded. Fields of its identity that cannot be read are empty.

    It counts as present and unmovable: `node_name` is the node that a bad pod blocks.
    """

    kind: str
    problem: str
    namespace: str = ""
    name: str = ""
    uid: str = ""
    resource_version: str = ""
    node_name: str = ""
    provider_id: str = ""
    """The machine of a bad node."""

    @classmethod
    def from_json(cls, value: Any, *, kind: str, problem: str) -> Self:
        """The bad object, with its identity as far as its JSON has it."""
        metadata = _mapping(_mapping(value).get("metadata"))
        spec = _mapping(_mapping(value).get("spec"))
        return cls(
            kind=kind,
            problem=problem,
            namespace=_text(metadata.get("namespace")),
            name=_text(metadata.get("name")),
            uid=_text(metadata.get("uid")),
            resource_version=_text(metadata.get("resourceVersion")),
            node_name=_text(spec.get("nodeName")) if kind == "Pod" else "",
            provider_id=_text(spec.get("providerID")) if kind == "Node" else "",
        )


def problem_of(error: Exception, *, value: Any = None) -> str:
    """`spec.containers[0].ports[0].containerPort: Expected `int`, got `str``. `value` helps to name a map's key."""
    if isinstance(error, RecursionError):
        return "nested too deeply"
    if isinstance(error, UnicodeDecodeError):
        return f"not UTF-8: {error.reason}"
    place = _PLACE.search(str(error))
    if place is None:
        return str(error)
    complaint = str(error)[: place.start()]
    path = _with_key(place["path"], complaint, value)
    if place["key"]:
        complaint = f"{complaint} as key"
    return f"{path}: {complaint}" if path else complaint


def json_type(value: Any) -> str:
    """The type of a JSON value, in msgspec's words."""
    return _JSON_TYPES.get(type(value), type(value).__name__)


def _with_key(path: str, complaint: str, value: Any) -> str:
    """Insert the key where msgspec writes `labels[...]`: the first key whose value has the reported type."""
    got = _GOT.search(complaint)
    head, dots, rest = path.partition("[...]")
    if not dots or rest or got is None:
        return path
    for step in _STEP.finditer(head):
        index = step[1]
        value = _element(value, int(index)) if index else _mapping(value).get(step[0])
    keys = (key for key, member in _mapping(value).items() if json_type(member) == got[1])
    key = next(keys, "...")
    return f"{head}[{key[:_LONGEST_KEY]}]"


def _element(value: Any, index: int) -> Any:
    return value[index] if isinstance(value, list) and index < len(value) else None


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
