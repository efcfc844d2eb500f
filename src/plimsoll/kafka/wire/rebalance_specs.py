"""The spec of a KafkaRebalance, of a KafkaRebalanceSettings and of a template, read into the model and written. Pure.

Users write these specs, and definitions without a schema let everything pass. So every field is checked here, in one
place: a mistake is a `Reason` with the path of the field, and nothing that is wrong reaches Cruise Control.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeGuard

from plimsoll.core.plans import Reason
from plimsoll.core.values import Value
from plimsoll.kafka.model.rebalances import RebalanceSpec, VolumesOfBroker
from plimsoll.kafka.model.requests import Mode
from plimsoll.kafka.planning.goal_list import SUPPORTED_GOALS, find_goal
from plimsoll.objects.schema.regular_expressions import BadPattern, compile_pattern

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    from plimsoll.objects.api.meta import Json

MAX_BROKERS: Final = 1_000
"""The ids of more brokers do not fit into the address of a request to Cruise Control."""
MAX_NAMES: Final = 100
MAX_VOLUMES: Final = 1_000
MAX_PATTERN: Final = 1_000
MAX_ID: Final = 2**31 - 1
MAX_COUNT: Final = 2**31 - 1
MAX_RATE: Final = 2**63 - 1

INVALID: Final = "InvalidResourceException"
"""The code of a mistake: the reason that Strimzi gives."""
IGNORED: Final = "IgnoredField"
"""The code of a field that has no effect."""

MODES: Final = (Mode.FULL, Mode.ADD_BROKERS, Mode.REMOVE_BROKERS, Mode.REMOVE_DISKS)
_NEEDS_BROKERS: Final = frozenset({Mode.ADD_BROKERS, Mode.REMOVE_BROKERS})
_COUNTS: Final = {
    "concurrentPartitionMovementsPerBroker": "concurrent_partition_movements_per_broker",
    "concurrentIntraBrokerPartitionMovements": "concurrent_intra_broker_partition_movements",
    "concurrentLeaderMovements": "concurrent_leader_movements",
}
_NOT_IN_SETTINGS: Final = ("mode", "brokers", "moveReplicasOffVolumes", "rebalanceDisk")
_SHOWN: Final = 60
"""Characters of a wrong value that a message shows."""


class SpecReading(Value):
    """A spec that was read. `spec` None: `problems` says why."""

    spec: RebalanceSpec | None
    problems: tuple[Reason, ...] = ()
    warnings: tuple[Reason, ...] = ()


def read_rebalance_spec(document: Json, *, supported_goals: Collection[str] = ()) -> SpecReading:
    """The spec of a KafkaRebalance. `supported_goals`: goals that its Cruise Control has besides the known ones."""
    reader = _Reader(supported_goals)
    fields = reader.read_object(document, "spec")
    mode = reader.read_mode(fields.get("mode"))
    spec = reader.read_fields(fields, mode)
    reader.check_mode(spec, fields)
    return reader.conclude(spec)


def read_settings_spec(document: Json, *, supported_goals: Collection[str] = ()) -> SpecReading:
    """The spec of a KafkaRebalanceSettings or of a template: what belongs to a request is ignored with a warning."""
    reader = _Reader(supported_goals)
    fields = reader.read_object(document, "spec")
    for name in _NOT_IN_SETTINGS:
        if fields.get(name) is not None:
            reader.warn(f"spec.{name}", "has no meaning in settings and is ignored")
    kept = {name: value for name, value in fields.items() if name not in _NOT_IN_SETTINGS}
    return reader.conclude(reader.read_fields(kept, Mode.FULL))


def write_rebalance_spec(spec: RebalanceSpec) -> dict[str, Any]:
    """The spec as JSON. Fields with the default of the server are left out, except the mode."""
    fields: dict[str, Any] = {"mode": spec.mode.value}
    optional: dict[str, Any] = {
        "brokers": list(spec.brokers),
        "goals": list(spec.goals),
        "skipHardGoalCheck": spec.skip_hard_goal_check,
        "rebalanceDisk": spec.rebalance_disk,
        "excludedTopics": spec.excluded_topics,
        **{name: getattr(spec, attribute) for name, attribute in _COUNTS.items()},
        "replicationThrottle": spec.replication_throttle,
        "replicaMovementStrategies": list(spec.replica_movement_strategies),
        "moveReplicasOffVolumes": [
            {"brokerId": volumes.broker, "volumeIds": list(volumes.volumes)}
            for volumes in spec.move_replicas_off_volumes
        ],
    }
    return fields | {name: value for name, value in optional.items() if value}


class _Reader:
    """Reads the fields of one spec and collects what is wrong with them. A wrong field reads as its default."""

    def __init__(self, supported_goals: Collection[str]) -> None:
        self._more_goals = frozenset(name.rpartition(".")[2].strip().lower() for name in supported_goals)
        self._problems: list[Reason] = []
        self._warnings: list[Reason] = []

    def fail(self, path: str, problem: str) -> None:
        self._problems.append(Reason(code=INVALID, message=f"{path}: {problem}", facts={"field": path}))

    def warn(self, path: str, problem: str) -> None:
        self._warnings.append(Reason(code=IGNORED, message=f"{path}: {problem}", facts={"field": path}))

    def conclude(self, spec: RebalanceSpec) -> SpecReading:
        return SpecReading(
            spec=None if self._problems else spec, problems=tuple(self._problems), warnings=tuple(self._warnings)
        )

    # ---- the whole

    def read_fields(self, fields: dict[str, Any], mode: Mode) -> RebalanceSpec:
        return RebalanceSpec(
            mode=mode,
            brokers=self._read_brokers(fields.get("brokers"), mode),
            goals=self._read_goals(fields.get("goals")),
            skip_hard_goal_check=self._read_boolean(fields.get("skipHardGoalCheck"), "spec.skipHardGoalCheck"),
            rebalance_disk=self._read_boolean(fields.get("rebalanceDisk"), "spec.rebalanceDisk"),
            excluded_topics=self._read_pattern(fields.get("excludedTopics"), "spec.excludedTopics"),
            replication_throttle=self._read_number(
                fields.get("replicationThrottle"), "spec.replicationThrottle", MAX_RATE
            ),
            replica_movement_strategies=self._read_names(
                fields.get("replicaMovementStrategies"), "spec.replicaMovementStrategies"
            ),
            move_replicas_off_volumes=self._read_volumes(fields.get("moveReplicasOffVolumes")),
            **{
                attribute: self._read_number(fields.get(name), f"spec.{name}", MAX_COUNT)
                for name, attribute in _COUNTS.items()
            },
        )

    def check_mode(self, spec: RebalanceSpec, fields: dict[str, Any]) -> None:
        """What a mode needs, and what it cannot use."""
        mode = spec.mode
        if mode in _NEEDS_BROKERS and not spec.brokers and not self._has_problem("spec.brokers"):
            self.fail("spec.brokers", f"mode {mode.value} needs at least one broker")
        if mode not in _NEEDS_BROKERS and fields.get("brokers"):
            self.warn("spec.brokers", f"mode {mode.value} uses no brokers; they are ignored")
        if spec.rebalance_disk and mode is not Mode.FULL:
            self.fail("spec.rebalanceDisk", f"belongs to mode full, not to mode {mode.value}")
        if spec.rebalance_disk and spec.goals:
            self.fail("spec.goals", "cannot be given together with rebalanceDisk")
        has_volumes = bool(spec.move_replicas_off_volumes) or self._has_problem("spec.moveReplicasOffVolumes")
        if mode is Mode.REMOVE_DISKS and not has_volumes:
            self.fail("spec.moveReplicasOffVolumes", "mode remove-disks needs the volumes of at least one broker")
        if mode is not Mode.REMOVE_DISKS and fields.get("moveReplicasOffVolumes"):
            self.warn("spec.moveReplicasOffVolumes", f"mode {mode.value} uses no volumes; they are ignored")

    def _has_problem(self, path: str) -> bool:
        return any(str(problem.facts["field"]).startswith(path) for problem in self._problems)

    # ---- single fields

    def read_object(self, document: Json, path: str) -> dict[str, Any]:
        if document is None:
            return {}
        if not isinstance(document, dict):
            self.fail(path, f"must be an object, not {_show(document)}")
            return {}
        return document

    def read_mode(self, value: Json) -> Mode:
        if value is None:
            return Mode.FULL
        if isinstance(value, str) and value in {mode.value for mode in MODES}:
            return Mode(value)
        self.fail("spec.mode", f"{_show(value)} is no mode; there are {', '.join(mode.value for mode in MODES)}")
        return Mode.FULL

    def _read_brokers(self, value: Json, mode: Mode) -> tuple[int, ...]:
        if mode not in _NEEDS_BROKERS:
            return ()
        return self._read_ids(value, "spec.brokers", limit=MAX_BROKERS, noun="broker id")

    def _read_goals(self, value: Json) -> tuple[str, ...]:
        names = self._read_names(value, "spec.goals")
        for name in names:
            if find_goal(name) is None and name.rpartition(".")[2].strip().lower() not in self._more_goals:
                self.fail("spec.goals", f"no goal is named {_show(name)}; there are {', '.join(SUPPORTED_GOALS)}")
        return names

    def _read_volumes(self, value: Json) -> tuple[VolumesOfBroker, ...]:
        path = "spec.moveReplicasOffVolumes"
        found: dict[int, tuple[int, ...]] = {}
        for index, entry in enumerate(self._read_list(value, path, limit=MAX_BROKERS)):
            item = f"{path}[{index}]"
            if not isinstance(entry, dict):
                self.fail(item, f"must be an object with brokerId and volumeIds, not {_show(entry)}")
                continue
            broker = entry.get("brokerId")
            if not _is_id(broker):
                self.fail(f"{item}.brokerId", f"{_show(broker)} is no broker id")
                continue
            volumes = self._read_ids(entry.get("volumeIds"), f"{item}.volumeIds", limit=MAX_VOLUMES, noun="volume id")
            if not volumes and not self._has_problem(f"{item}.volumeIds"):
                self.fail(f"{item}.volumeIds", "must name at least one volume")
            found[broker] = tuple(sorted({*found.get(broker, ()), *volumes}))
        return tuple(VolumesOfBroker(broker=broker, volumes=volumes) for broker, volumes in sorted(found.items()))

    def _read_boolean(self, value: Json, path: str) -> bool:
        if value is None or isinstance(value, bool):
            return bool(value)
        self.fail(path, f"must be true or false, not {_show(value)}")
        return False

    def _read_number(self, value: Json, path: str, limit: int) -> int:
        if value is None:
            return 0
        if isinstance(value, bool) or not isinstance(value, int):
            self.fail(path, f"must be a whole number, not {_show(value)}")
            return 0
        if not 0 <= value <= limit:
            self.fail(path, f"must be between 0 and {limit}, not {_show(value)}")
            return 0
        return value

    def _read_pattern(self, value: Json, path: str) -> str:
        if value is None:
            return ""
        if not isinstance(value, str):
            self.fail(path, f"must be a regular expression, not {_show(value)}")
            return ""
        if len(value) > MAX_PATTERN:
            self.fail(path, f"has {len(value)} characters; at most {MAX_PATTERN} are allowed")
            return ""
        try:
            compile_pattern(value)
        except (BadPattern, UnicodeEncodeError) as error:
            self.fail(path, f"{_show(value)} is not a regular expression: {error}")
            return ""
        return value

    def _read_names(self, value: Json, path: str) -> tuple[str, ...]:
        def is_name(item: object) -> bool:
            return isinstance(item, str) and 0 < len(item) <= MAX_PATTERN and "," not in item and item.isprintable()

        items = self._read_items(value, path, limit=MAX_NAMES, noun="name", is_valid=is_name)
        return tuple(dict.fromkeys(items))

    def _read_ids(self, value: Json, path: str, *, limit: int, noun: str) -> tuple[int, ...]:
        return tuple(sorted(set(self._read_items(value, path, limit=limit, noun=noun, is_valid=_is_id))))

    def _read_items(
        self, value: Json, path: str, *, limit: int, noun: str, is_valid: Callable[[object], bool]
    ) -> list[Any]:
        """The items of a list. The first wrong one is named; the others would only repeat it."""
        items = self._read_list(value, path, limit=limit)
        wrong: Iterator[tuple[int, object]] = ((index, item) for index, item in enumerate(items) if not is_valid(item))
        first = next(wrong, None)
        if first is None:
            return items
        self.fail(f"{path}[{first[0]}]", f"{_show(first[1])} is no {noun}")
        return []

    def _read_list(self, value: Json, path: str, *, limit: int) -> list[Any]:
        if value is None:
            return []
        if not isinstance(value, list):
            self.fail(path, f"must be a list, not {_show(value)}")
            return []
        if len(value) > limit:
            self.fail(path, f"has {len(value)} entries; at most {limit} are allowed")
            return []
        return value


def _is_id(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MAX_ID


def _show(value: object) -> str:
    """A wrong value in a message, cut short."""
    if value is None:
        return "nothing"
    if isinstance(value, list | dict):
        return "a list" if isinstance(value, list) else "an object"
    if isinstance(value, int) and value.bit_length() > _SHOWN:
        return "a number beyond all limits"
    return repr(value)[:_SHOWN] if isinstance(value, str) else str(value)
