"""An agent of a fleet's cluster in virtual time. Items of its list, and objects that it reads, get extreme fields.

What must not happen is a finding: a log line with a traceback, a cycle that failed, and an instance that goes away
although its control plane never deleted it. A seed gives the same lists and objects every time.
"""

from __future__ import annotations

import copy
import json
import random
from typing import TYPE_CHECKING, Any, Final

from structlog.testing import capture_logs

from plimsoll.fleet.agent.settings import NODE_STATUS_MAP
from plimsoll.fleet.agent.wire.claims_map import CLAIMS_MAP
from plimsoll.fleet.agent.wire.names import PLACEMENT_ID
from tests.conformance.fuzzing import is_allowed
from tests.field_fuzz.field_table import (
    INTEGERS,
    TEXTS,
    WRONG_TYPES,
    Field,
    Path_,
    get_resource,
    list_fields_of,
    put,
)
from tests.fleet.agent.agent_world import HOME, AgentWorld
from tests.fleet.agent.control_planes import build_item, build_reserved_item
from tests.local.apiserver.builders import MERGE

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

Json = dict[str, Any]

_BATCH: Final = 10
_CALM: Final = "calm"
"""Neither its item nor its objects are fuzzed."""
_INSTANCES: Final = ("a", "b", "c")
_SPEC: Final[dict[str, Any]] = {
    "endpoint": {"bootstrapServerHost": "k.a.example.com", "tls": {"cert": "c", "key": "k"}},
    "serviceAccounts": [{"name": "canary", "principal": "p", "password": "w"}],
}
_DELETED: Final = ("spec", "deleted")
_PLACEMENT: Final = ("metadata", "annotations", PLACEMENT_ID)
"""An item that is deleted, or placed anew, goes away."""
_PLURALS: Final = ("managedkafkas", "kafkas", "kafkanodepools", "strimzipodsets", "namespaces", "deployments")
_MAPS: Final = (CLAIMS_MAP, NODE_STATUS_MAP)
_MAP_TEXTS: Final = (
    *("", "null", "[]", "{", "{}", "x", "[" * 5000, '{"units": 1e400}', "\u202e", "- \n:", "&a [*a]"),
    *(f'{{"units": {number}, "instance_type": "standard"}}' for number in INTEGERS),
    *(f'{{"units": 1, "earlier": {text}}}' for text in ("null", "[null]", "7", '["p1"]')),
    *(f"nodeGroups: [{{name: kafka-standard, health: {{maxSize: {size}}}}}]" for size in (*INTEGERS, "1e9", "x")),
)
_OWN_KEYS: Final = 20
_FAILURES: Final = {"agent.cycle_failed", "service.crashed", "service.failed"}


class FuzzedAgent(AgentWorld):
    """`with FuzzedAgent(seed) as agent:`, then `fuzz`."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self._chance = random.Random(seed)
        self._items = {kafka_id: build_item(kafka_id, **_SPEC) for kafka_id in _INSTANCES}
        self._items["reserved"] = build_reserved_item(1)
        self._calm = build_item(_CALM)
        self._claimed = ("status", *(f"kafka-{kafka_id}" for kafka_id in _INSTANCES))
        self.answers: dict[int, int] = {}

    def fuzz(self, count: int) -> list[str]:
        """Write so many fields; gives the findings."""
        self.control_plane.max_nodes = {"standard": 60}
        self.list_items(self._calm, *self._items.values()).start_agent()
        self.pass_polls().operate()
        findings: list[str] = []
        for start in range(0, count, _BATCH):
            with capture_logs() as logs:
                for _ in range(min(_BATCH, count - start)):
                    findings += self._write_fuzzed()
                self.list_items(self._calm, *self._fuzz_items())
                self.pass_polls(2)
            findings += [*_find_problems(logs), *self._find_lost()]
        return findings

    def serves_a_plain_item(self) -> bool:
        """Whether a new item becomes a Kafka, and the report of the calm instance arrives."""
        item = build_item("plain")
        self.control_plane.max_nodes = {"standard": 100_000}
        # Claims of any size are believed: they are taken back, as an administrator would.
        claims = {"data": dict.fromkeys(self._claimed)}
        assert (
            self.ask("PATCH", get_resource("configmaps").build_path(HOME, CLAIMS_MAP), claims, content=MERGE).status
            == 200
        )
        self.control_plane.kafka_reports.clear()
        self.list_items(self._calm, *self._items.values(), item)
        self.pass_polls(8)
        made = {kafka["metadata"]["name"] for kafka in self.list_kafkas()}
        return "k-plain" in made and any(_CALM in report for report in self.control_plane.kafka_reports)

    # ---- what is fuzzed

    def _fuzz_items(self) -> Iterator[Any]:
        """The items, half of them with one to three extreme fields."""
        for item in self._items.values():
            fuzzed: Any = copy.deepcopy(item)
            for _ in range(self._chance.choice((0, 0, 1, 2, 3))):
                path = self._chance.choice(_ITEM_PATHS)
                fuzzed = put(fuzzed, path, copy.deepcopy(self._chance.choice(_VALUES)))
            yield fuzzed

    def _write_fuzzed(self) -> list[str]:
        """A patch of an object that the agent reads, or of its pools' bounds."""
        plural = self._chance.choice((*_PLURALS, "configmaps", "bounds"))
        if plural == "bounds":
            self.control_plane.max_nodes = {"standard": self._chance.choice((*INTEGERS, *WRONG_TYPES, 60))}
            return []
        if plural == "configmaps":
            key = self._chance.choice(self._claimed)
            patch: Json = {"data": {key: self._chance.choice(_MAP_TEXTS)}}
            path = get_resource(plural).build_path(HOME, self._chance.choice(_MAPS))
            return self._patch_fuzzed(path, patch)
        found = self._choose_object(plural)
        if found is None:
            return []
        field = self._choose_field(plural)
        body = put({}, field.path, self._chance.choice(field.values))
        path = get_resource(plural).build_path(found.get("namespace", ""), found["name"])
        return self._patch_fuzzed(path if field.path[0] != "status" else f"{path}/status", body)

    def _choose_object(self, plural: str) -> Json | None:
        """The metadata of an object that is not the calm instance's."""
        listed = [item["metadata"] for item in self.list_all(get_resource(plural).build_path())]
        fuzzed = [found for found in listed if not {f"kafka-{_CALM}", HOME} & {found["name"], found.get("namespace")}]
        return self._chance.choice(fuzzed) if fuzzed else None

    def _choose_field(self, plural: str) -> Field:
        fields = [field for field in list_fields_of(plural) if field.path != _DELETED]
        return self._chance.choices(fields, weights=[_weigh(field) for field in fields])[0]

    def _patch_fuzzed(self, path: str, body: Json) -> list[str]:
        reply = self.ask("PATCH", path, body, content=MERGE)
        self.answers[reply.status] = self.answers.get(reply.status, 0) + 1
        return [] if is_allowed(reply.status, reply.body) else [f"{reply.status} {path}: {str(reply.body)[:500]}"]

    def _find_lost(self) -> list[str]:
        """Namespaces and Kafkas of instances. None was deleted by the control plane."""
        kafkas = {kafka["metadata"]["namespace"] for kafka in self.list_kafkas()}
        lost = []
        for kafka_id in (_CALM, *_INSTANCES):
            reply = self.ask("GET", f"/api/v1/namespaces/kafka-{kafka_id}")
            if reply.status != 200 or reply.body["metadata"].get("deletionTimestamp"):
                lost.append(f"namespace kafka-{kafka_id} goes away: {reply.status}")
            elif f"kafka-{kafka_id}" not in kafkas:
                lost.append(f"kafka-{kafka_id} has no Kafka")
        return lost


def _list_paths(value: Any, path: Path_ = ()) -> Iterator[Path_]:
    if path and path not in {_DELETED, _PLACEMENT}:
        yield path
    members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, member in members:
        yield from _list_paths(member, (*path, step))


def _weigh(field: Field) -> float:
    """Of hundreds of keys the agent reads a few."""
    return field.weight * (_OWN_KEYS if str(field.path[-1]).startswith(("bf2.org/", "plimsoll.io/")) else 1)


_ITEM_PATHS: Final = tuple(_list_paths(build_item("a", **_SPEC)))
_VALUES: Final = (*TEXTS, *INTEGERS, *WRONG_TYPES, *(10**30, [None] * 2000, {"x" * 400: None}))


def _find_problems(logs: Sequence[Mapping[str, Any]]) -> list[str]:
    return [
        json.dumps({name: str(value)[-1500:] for name, value in line.items()})
        for line in logs
        if line.get("exc_info") or line["log_level"] in {"error", "critical"} or line["event"] in _FAILURES
    ]
