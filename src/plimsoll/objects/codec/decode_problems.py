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
# Of a whole number beyond 64 bits msgspec says "Expected `int` <= 9223372036854775807".
_BEYOND: Final = re.compile(r"Expected `int` (?P<side>[<>])= (?P<limit>-?\d+)")


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
        metadata = _as_mapping(_as_mapping(value).get("metadata"))
        spec = _as_mapping(_as_mapping(value).get("spec"))
        return cls(
            kind=kind,
            problem=problem,
            namespace=_as_text(metadata.get("namespace")),
            name=_as_text(metadata.get("name")),
            uid=_as_text(metadata.get("uid")),
            resource_version=_as_text(metadata.get("resourceVersion")),
            node_name=_as_text(spec.get("nodeName")) if kind == "Pod" else "",
            provider_id=_as_text(spec.get("providerID")) if kind == "Node" else "",
        )


def describe_problem(error: Exception, *, value: Any = None) -> str:
    """`spec.containers[0].ports[0].containerPort: Expected `int`, got `str``. `value` helps to name a map's key."""
    if isinstance(error, RecursionError):
        return "nested too deeply"
    if isinstance(error, UnicodeDecodeError):
        return f"not UTF-8: {error.reason}"
    place = _PLACE.search(str(error))
    if place is None:
        return str(error)
    complaint = str(error)[: place.start()]
    if (beyond := _BEYOND.fullmatch(complaint)) is not None:
        complaint = f"out of range; the {'most' if beyond['side'] == '<' else 'least'} is {beyond['limit']}"
    path = _insert_key(place["path"], complaint, value)
    if place["key"]:
        complaint = f"{complaint} as key"
    return f"{path}: {complaint}" if path else complaint


def get_json_type(value: Any) -> str:
    """The type of a JSON value, in msgspec's words."""
    return _JSON_TYPES.get(type(value), type(value).__name__)


def _insert_key(path: str, complaint: str, value: Any) -> str:
    """Insert the key where msgspec writes `labels[...]`: the first key whose value has the reported type."""
    got = _GOT.search(complaint)
    head, dots, rest = path.partition("[...]")
    if not dots or rest or got is None:
        return path
    for step in _STEP.finditer(head):
        index = step[1]
        value = _get_element(value, int(index)) if index else _as_mapping(value).get(step[0])
    keys = (key for key, member in _as_mapping(value).items() if get_json_type(member) == got[1])
    key = next(keys, "...")
    return f"{head}[{key[:_LONGEST_KEY]}]"


def _get_element(value: Any, index: int) -> Any:
    return value[index] if isinstance(value, list) and index < len(value) else None


def _as_mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else ""
