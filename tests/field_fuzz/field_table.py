"""Every field that a controller reads, of every kind that one watches, with the extreme values that are put into it.

Controllers read objects only through the wire structs of `plimsoll.objects.api`, so the structs are the table: a field
that is added to a struct is fuzzed from then on. Annotations and labels are the constants of the source that look like
their keys.
"""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from msgspec import inspect

import plimsoll
from plimsoll.objects.custom_kinds import OUR_KINDS
from tests.field_fuzz.base_objects import BASE_OBJECTS
from tests.tidb.field_table import KINDS as TIDB_KINDS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from plimsoll.objects.api.resource import Resource

Step = str | int
Path_ = tuple[Step, ...]

_DEEPEST: Final = 12
_RESOURCES: Final = ("cpu", "memory", "pods", "ephemeral-storage", "example.com/gpu", "storage", "hugepages-2Mi")
_SHIPPED: Final = Path(plimsoll.__file__).parent
_KEY: Final = re.compile(r"[a-z0-9-]+(\.[a-z0-9-]+)+/[A-Za-z0-9._-]+")
_NO_KEY: Final = re.compile(r"/v\d\w*$|/\d+$|\.(json|yaml|html|py)$")
_SKIPPED: Final = frozenset({"apiVersion", "kind"})
"""A request with another kind is another request."""

_FAULTS: Final = ("spec", "faults")
"""A cloud that is configured to answer after 2^63 seconds does so."""

_REBALANCE: Final = (
    *("goals", "skipHardGoalCheck", "excludedTopics", "concurrentPartitionMovementsPerBroker"),
    *("concurrentLeaderMovements", "replicationThrottle", "replicaMovementStrategies"),
)
KAFKA_FIELDS: Final = {
    "kafkas": (
        "spec.cruiseControl.autoRebalance",
        "spec.cruiseControl.brokerCapacity",
        "spec.cruiseControl.brokerCapacity.cpu",
        "spec.cruiseControl.brokerCapacity.overrides",
        "spec.cruiseControl.config",
        "spec.cruiseControl.config.goals",
        "spec.kafka.template.pod",
        "spec.kafka.resources",
    ),
    "kafkanodepools": ("spec.storage", "spec.storage.size", "spec.storage.volumes", "spec.resources"),
    "kafkarebalances": tuple(
        f"spec.{field}" for field in (*_REBALANCE, "mode", "brokers", "rebalanceDisk", "moveReplicasOffVolumes")
    ),
    "kafkarebalancesettings": tuple(f"spec.{field}" for field in _REBALANCE),
}
"""Fields that structs hold as plain JSON, and `kafka.wire` reads."""

INTEGERS: Final = (2**63 - 1, -(2**63), 2**31 - 1, 2**31, -1, 0, 1, 300_000_000_000, 10**20 - 1)
NUMBERS: Final = (*INTEGERS, 1e308, -1e308, 5e-324, 0.5, "NaN", "Infinity")
QUANTITIES: Final = (
    *("1e308", "1e63", "-1", "0", "1n", "9223372036854775807", "9223372036854775807Ei", "1E", "-9223372036854775808"),
    *("NaN", "Inf", "", "1.0000000000000000001", "0x10", "1e-63", "999999999999999999999999999999", 2**63 - 1, 1e308),
)
TIMES: Final = (
    *("0000-01-01T00:00:00Z", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z", "9999-12-31T23:59:59-23:59"),
    *("0001-01-01T00:00:00+23:59", "1969-12-31T23:59:59.999999Z", "2026-02-29T00:00:00Z", "never", "", 0),
)
MICRO_TIMES: Final = tuple(time.replace("Z", ".000000Z") for time in TIMES if isinstance(time, str))
TEXTS: Final = (
    *("", "x" * 300, "x" * 70_000, "\u0000", "\u202e\U0001f4a9é", "../..", "NaN", "-1", "9999999999h", "1e308"),
    *("9223372036854775807", "true", "{", "0000-01-01T00:00:00Z", "a,b=c", "*", "Always", "None", "null", " "),
    *("default-scheduler", "2562048h", "99999999999999999999999999", "0", "1.5", "١٢٣", "1_000", "+1", "Infinity"),
)
WRONG_TYPES: Final[tuple[Any, ...]] = (None, [], {}, "x", -1, True, [[]], {"a": {"a": {}}})


class Field(NamedTuple):
    """One field of one kind. `values` are the extreme values of its type."""

    kind: str
    path: Path_
    values: tuple[Any, ...]
    weight: float = 1.0
    """How often it is chosen: keys of annotations and lists of wrong types are many, and say less."""


@cache
def list_fields() -> tuple[Field, ...]:
    """The whole table, in a stable order."""
    return tuple(field for kind in sorted(BASE_OBJECTS) for field in list_fields_of(kind))


def get_resource(kind: str) -> Resource:
    resource = OUR_KINDS.find_by_name(kind)
    assert resource is not None, kind
    return resource


@cache
def list_fields_of(kind: str) -> tuple[Field, ...]:
    """The fields of one kind."""
    return tuple(_walk_kind(kind))


def _walk_kind(kind: str) -> Iterator[Field]:
    struct = get_resource(kind).struct
    assert struct is not None
    for field in _walk(inspect.type_info(struct), ()):
        if field.path[0] not in _SKIPPED and field.path[:2] != _FAULTS:
            yield field._replace(kind=kind)
    for written in KAFKA_FIELDS.get(kind, ()):
        yield Field(kind, _split_path(written), (*INTEGERS, *TEXTS, *WRONG_TYPES, [2**63], ["x"] * 1000), 2.0)
    for written, values in TIDB_KINDS.get(kind, {}).items():
        yield Field(kind, _split_path(written), values, 3.0)
    for key in list_keys():
        yield Field(kind, ("metadata", "annotations", key), TEXTS, 0.5)
        yield Field(kind, ("metadata", "labels", key), TEXTS, 0.1)


def _split_path(written: str) -> Path_:
    """Of `spec.tikv.replicas`; the key of an annotation is not split."""
    head, annotations, key = written.partition("metadata.annotations.")
    return ("metadata", "annotations", key) if annotations and not head else tuple(written.split("."))


def _walk(info: inspect.Type, path: Path_) -> Iterator[Field]:
    """The field itself, and what is in it."""
    if len(path) > _DEEPEST:
        return
    match info:
        case inspect.UnionType():
            yield from _walk_union(info, path)
        case inspect.StructType():
            if path:
                yield Field("", path, WRONG_TYPES, 0.2)
            for member in info.fields:
                yield from _walk(member.type, (*path, member.encode_name))
        case inspect.VarTupleType() | inspect.ListType():
            yield Field("", path, (*WRONG_TYPES, [None], _deep_list(40)), 0.2)
            yield from _walk(info.item_type, (*path, 0))
        case inspect.DictType():
            yield Field("", path, (*WRONG_TYPES, {"": ""}, {"x" * 400: "x"}, {"a": None}), 0.2)
            keys = _RESOURCES if isinstance(info.value_type, inspect.UnionType) else ("a",)
            for key in keys:
                yield from _walk(info.value_type, (*path, key))
        case _:
            yield Field("", path, (*_values_of(info), None), 1.0 if isinstance(info, inspect.StrType) else 3.0)


def _walk_union(info: inspect.UnionType, path: Path_) -> Iterator[Field]:
    parts = [part for part in info.types if not isinstance(part, inspect.NoneType)]
    if {type(part) for part in parts} >= {inspect.StrType, inspect.IntType, inspect.FloatType}:
        yield Field("", path, (*QUANTITIES, None), 3.0)
    elif {type(part) for part in parts} >= {inspect.StrType, inspect.IntType}:
        yield Field("", path, (*INTEGERS, "1000000%", "-1%", "0%", "x%", "9" * 400 + "%", None), 3.0)
    else:
        for part in parts:
            yield from _walk(part, path)


def _values_of(info: inspect.Type) -> tuple[Any, ...]:
    match info:
        case inspect.IntType():
            return INTEGERS
        case inspect.FloatType():
            return NUMBERS
        case inspect.BoolType():
            return (True, False, "true", 1)
        case inspect.DateTimeType():
            return TIMES
        case inspect.StrType() | inspect.EnumType():
            return TEXTS
        case inspect.CustomType():
            return MICRO_TIMES
        case _:
            return WRONG_TYPES


def _deep_list(depth: int) -> Any:
    return [] if depth == 0 else [_deep_list(depth - 1)]


@cache
def list_keys() -> tuple[str, ...]:
    """Keys of annotations and labels that the source names."""
    found: set[str] = set()
    for file in sorted(_SHIPPED.rglob("*.py")):
        if file.is_relative_to(_SHIPPED / "local" / "apiserver") or file.is_relative_to(_SHIPPED / "cli"):
            continue
        for node in ast.walk(ast.parse(file.read_bytes())):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and _KEY.fullmatch(node.value):
                found.add(node.value)
    return tuple(sorted(key for key in found if not _NO_KEY.search(key)))


def put(body: Any, path: Path_, value: Any, *, at: int = 0) -> Any:
    """A copy with this value in a field; what leads to it is made, with what the server requires beside it."""
    if at == len(path):
        return value
    step = path[at]
    if isinstance(step, int):
        first, *rest = body if isinstance(body, list) and body else [_beside(path[: at + 1])]
        return [put(first, path, value, at=at + 1), *rest]
    members = body if isinstance(body, dict) else _beside(path[:at])
    return {**members, step: put(members.get(step), path, value, at=at + 1)}


_REQUIRED: Final[dict[str, Any]] = {
    "topologySpreadConstraints": {
        "maxSkew": 1,
        "topologyKey": "kubernetes.io/hostname",
        "whenUnsatisfiable": "DoNotSchedule",
    },
    "podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution": {"topologyKey": "kubernetes.io/hostname"},
    "podAffinity.requiredDuringSchedulingIgnoredDuringExecution": {"topologyKey": "kubernetes.io/hostname"},
    "preferredDuringSchedulingIgnoredDuringExecution": {
        "weight": 1,
        "preference": {"matchExpressions": [{"key": "a", "operator": "Exists"}]},
        "podAffinityTerm": {"topologyKey": "kubernetes.io/hostname"},
    },
    "nodeSelectorTerms": {"matchExpressions": [{"key": "a", "operator": "Exists"}]},
    "matchExpressions": {"key": "a", "operator": "In", "values": ["b"]},
    "matchFields": {"key": "metadata.name", "operator": "In", "values": ["b"]},
    "tolerations": {"key": "a", "operator": "Exists"},
    "taints": {"key": "example.com/a", "effect": "NoSchedule"},
    "containers": {"name": "c", "image": "app"},
    "initContainers": {"name": "i", "image": "app"},
    "ports": {"name": "p", "containerPort": 80, "port": 80},
    "volumes": {"name": "v", "emptyDir": {}},
    "conditions": {
        "type": "Ready",
        "status": "True",
        "reason": "Fuzzed",
        "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    },
    "containerStatuses": {"name": "c", "image": "app", "imageID": "", "ready": True, "restartCount": 0},
    "ownerReferences": {"apiVersion": "v1", "kind": "Node", "name": "a", "uid": "b"},
    "schedulingGates": {"name": "example.com/a"},
    "podSets": {"count": 1, "podTemplateRef": {"name": "t"}},
}


def _beside(path: Path_) -> dict[str, Any]:
    """What an item of this list, or this object, must have besides the fuzzed field."""
    names = [step for step in path if isinstance(step, str)]
    for length in (2, 1):
        found = _REQUIRED.get(".".join(names[-length:]))
        if found is not None and isinstance(path[-1], int):
            return dict(found)
    return {}
