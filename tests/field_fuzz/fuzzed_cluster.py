"""A live cluster in virtual time with all controllers on, to which objects with extreme fields are written.

Everything goes through the API server, as a user would write it. What must not happen is a `Finding`: an answer of 5xx
that Kubernetes does not give, a log line with a traceback, and a service that crashed. A seed gives the same requests
every time.
"""

from __future__ import annotations

import asyncio
import copy
import json
import random
import traceback
from collections import deque
from http import HTTPStatus
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self

from structlog.testing import capture_logs

from plimsoll.kube.transport import JSON, MERGE_PATCH, Request
from plimsoll.local.apiserver.transport.kube_transport import EmbeddedTransport
from plimsoll.objects.api.simulated_cloud import THE_CLOUD
from plimsoll.simulation.ports import Plugins
from plimsoll.simulation.worlds.autoscaler import ScenarioLoop
from plimsoll.simulation.worlds.world import World
from tests.conformance.fuzzing import is_allowed
from tests.field_fuzz.base_objects import BASE_OBJECTS, NAMESPACE
from tests.field_fuzz.field_table import get_resource, list_fields, put
from tests.nodes.autoscaler.loop_scenarios import containers, group, scenario_of

if TYPE_CHECKING:
    from collections.abc import Coroutine, Iterable, Iterator, Mapping, Sequence

    from tests.field_fuzz.field_table import Field

Json = dict[str, Any]

_LIVE_OBJECTS: Final = 80
"""So many fuzzed objects exist at a time; the oldest are deleted."""
_BATCH: Final = 40
_BATCH_S: Final = 15.0
_PATCHES: Final = 0.2
_PLACES: Final[tuple[Json, ...]] = (
    {"nodeName": "g-0"},
    {"nodeName": "g-1"},
    containers("100m"),  # fits on a node
    containers("3"),  # may need a new one
    containers("64"),  # stays pending
)
_OWN_OBJECTS: Final = (
    *(("nodes", "g-0"), ("nodes", "g-1"), ("nodegroups", "g"), ("machines", "g-0"), ("podtemplates", "template")),
    *(("kafkas", "k"), ("kafkanodepools", "brokers"), ("kafkarebalances", "k-auto-rebalancing-add-brokers")),
    *(("strimzipodsets", "k-brokers"), ("kafkarebalancesettings", "settings")),
    *(("clouds", THE_CLOUD), ("tidbclusters", "db"), ("tidbclusterautoscalers", "as1"), ("namespaces", NAMESPACE)),
)
_OWNERS: Final = ("metadata", "ownerReferences")
"""The garbage collector would delete an object of the cluster for it, and with the namespace everything."""
_LEVELS: Final = ("error", "critical")
_SET_ASIDE: Final = "loop.object_set_aside"
"""The loop went on, but a value was not bounded where it was read."""
_WEIGHTS: Final = {
    "pods": 8,
    "nodes": 4,
    "provisioningrequests": 2,
    "podtemplates": 2,
    "tidbclusterautoscalers": 2,
    "kafkas": 2,
}
# Kubernetes would create that many objects too; here they would only take time.
_MANY: Final = frozenset({"replicas", "parallelism", "completions", "target", "min", "max", "count"})
_MOST: Final = 5

_OBJECTS: Final[tuple[Json, ...]] = (
    {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}},
    {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": "default", "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}},
        "provisioner": "plimsoll.io/simulated",
    },
    {
        "apiVersion": "v1",
        "kind": "PodTemplate",
        "metadata": {"name": "template", "namespace": NAMESPACE},
        "template": {"spec": containers("100m")},
    },
    {
        "apiVersion": "pingcap.com/v1alpha1",
        "kind": "TidbCluster",
        "metadata": {"name": "db", "namespace": NAMESPACE},
        "spec": BASE_OBJECTS["tidbclusters"]["spec"],
    },
    {
        "apiVersion": "pingcap.com/v1alpha1",
        "kind": "TidbClusterAutoScaler",
        "metadata": {"name": "as1", "namespace": NAMESPACE},
        "spec": BASE_OBJECTS["tidbclusterautoscalers"]["spec"],
    },
    {
        "apiVersion": "kafka.strimzi.io/v1",
        "kind": "Kafka",
        "metadata": {"name": "k", "namespace": NAMESPACE},
        "spec": {
            "kafka": {"version": "4.3.1"},
            "cruiseControl": {"autoRebalance": [{"mode": "add-brokers", "settings": "settings"}]},
        },
    },
    {
        "apiVersion": "kafka.strimzi.io/v1",
        "kind": "KafkaNodePool",
        "metadata": {"name": "brokers", "namespace": NAMESPACE, "labels": {"strimzi.io/cluster": "k"}},
        "spec": {"replicas": 2, "roles": ["broker"], "storage": {"type": "ephemeral"}},
    },
    {
        "apiVersion": "kafka.strimzi.io/v1",
        "kind": "KafkaRebalanceSettings",
        "metadata": {"name": "settings", "namespace": NAMESPACE},
        "spec": {"goals": ["RackAwareGoal"], "skipHardGoalCheck": True},
    },
)
_OPTIONS: Final = {
    "enable-provisioning-requests": True,
    "scale-down-unneeded-time": "1m",
    "scale-down-delay-after-add": "30s",
    "ok-total-unready-count": 1000,
}
_CLOUD_PATH: Final = get_resource("clouds").build_path("", THE_CLOUD)
_CALM: Final = {"example.com/calm": "true"}


class FuzzedObject(NamedTuple):
    """What is written: an object and then its status. With a name, it is a patch of the object of that name."""

    plural: str
    name: str
    body: Json
    status: Any = None

    def to_json(self) -> Json:
        return self._asdict()


class Finding(NamedTuple):
    """What must not happen, with the objects of the batch in which it did."""

    problem: str
    objects: tuple[FuzzedObject, ...]


class FuzzedCluster(World):
    """`with FuzzedCluster(seed) as cluster:`, then `fuzz`."""

    def __init__(self, seed: int) -> None:
        groups = [group("g", target=2, max=4), group("calm", target=0, max=1, template={"labels": _CALM})]
        scenario = scenario_of(
            (), {"world": "live", "nodeGroups": groups, "objects": list(_OBJECTS), "options": _OPTIONS}
        )
        super().__init__(scenario, plugs=Plugins(make_loop=ScenarioLoop))
        self._chance = random.Random(seed)
        self._transport = EmbeddedTransport(self._application, token=self._token)
        self._objects: deque[FuzzedObject] = deque()
        self._count = 0
        self._cloud_spec: Json = {}
        self.answers: dict[int, int] = {}

    def __enter__(self) -> Self:
        super().__enter__()
        self._cloud_spec = self.run_now(self._send("GET", _CLOUD_PATH, None))[1]["spec"]
        return self

    def fuzz(self, count: int) -> list[Finding]:
        """Write so many objects."""
        findings: list[Finding] = []
        for start in range(0, count, _BATCH):
            batch = [self._build_fuzzed() for _ in range(min(_BATCH, count - start))]
            findings += self.write(batch)
        return findings

    def write(self, batch: Sequence[FuzzedObject]) -> list[Finding]:
        """Write these objects, delete the oldest ones, and give the controllers time for them."""
        problems: list[str] = []
        with capture_logs() as logs:
            problems += self._send_at_once(self._write(fuzzed) for fuzzed in batch)
            oldest = [self._objects.popleft() for _ in range(len(self._objects) - _LIVE_OBJECTS)]
            problems += self._send_at_once(self._delete(fuzzed) for fuzzed in oldest)
            self.run.advance_by(_BATCH_S)
        problems += find_problems(logs)
        return [Finding(problem, tuple(batch)) for problem in problems]

    def clear(self) -> list[Finding]:
        """Delete all fuzzed objects, and restore the cloud, without which there is no new node."""
        problems: list[str] = []
        with capture_logs() as logs:
            problems += self._send_at_once(self._delete(fuzzed) for fuzzed in self._objects)
            self._objects.clear()
            problems += self.run_now(self._restore_cloud())
            self.run.advance_by(_BATCH_S)
        return [Finding(problem, ()) for problem in (*problems, *find_problems(logs))]

    def serves_a_pending_pod(self) -> bool:
        """Whether a plain pod that needs a new node gets one."""
        spec = {**containers("1"), "nodeSelector": _CALM}
        body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "calm"}, "spec": spec}
        status, answer = self.run_now(self._send("POST", "/api/v1/namespaces/default/pods", body))
        assert status == HTTPStatus.CREATED, answer
        self.run.advance_by(600)
        pod = self.run_now(self.client.get_json("/api/v1/namespaces/default/pods/calm"))
        return bool(pod["spec"].get("nodeName"))

    # ---- objects

    def _build_fuzzed(self) -> FuzzedObject:
        return self._build_patch() if self._chance.random() < _PATCHES else self._build_object()

    def _build_object(self) -> FuzzedObject:
        self._count += 1
        plural = self._chance.choices(_KINDS, weights=_KIND_WEIGHTS)[0]
        body = copy.deepcopy(BASE_OBJECTS[plural])
        resource = get_resource(plural)
        body |= {"apiVersion": resource.api_version, "kind": resource.kind}
        metadata = body["metadata"] = {"name": f"f{self._count}", "labels": {"app": f"fuzz{self._count % 3}"}}
        if resource.namespaced:
            metadata["namespace"] = NAMESPACE
        if plural == "pods":
            body["spec"] |= self._chance.choice(_PLACES)
        for _ in range(self._chance.choice((1, 1, 1, 2, 3))):
            field = self._choose_field(plural)
            body = put(body, field.path, self._value_of(field))
        status = body.pop("status", None) if plural != "nodes" else body.get("status")
        return FuzzedObject(plural, "", body, status)

    def _build_patch(self) -> FuzzedObject:
        """A patch of an object that the cluster works with, or of a fuzzed one."""
        fuzzed = [(found.plural, found.name) for found in self._objects]
        plural, name = self._chance.choice((*_OWN_OBJECTS, *fuzzed))
        field = self._choose_field(plural)
        while (plural, name) in _OWN_OBJECTS and field.path[:2] == _OWNERS:
            field = self._choose_field(plural)
        body = put({}, field.path, self._value_of(field))
        return FuzzedObject(plural, name, body, body.pop("status", None))

    def _choose_field(self, plural: str) -> Field:
        fields, weights = _FIELDS_OF[plural]
        return self._chance.choices(fields, cum_weights=weights)[0]

    def _value_of(self, field: Field) -> Any:
        value = self._chance.choice(field.values)
        is_count = field.path[-1] in _MANY and isinstance(value, int) and value > _MOST
        return _MOST if is_count else value

    # ---- requests

    def _send_at_once(self, sending: Iterable[Coroutine[Any, Any, list[str]]]) -> list[str]:
        """Send what many clients send at the same time; gives the problems in the answers."""

        async def send_all() -> list[list[str]]:
            return await asyncio.gather(*sending)

        return [problem for problems in self.run_now(send_all()) for problem in problems]

    async def _write(self, fuzzed: FuzzedObject) -> list[str]:
        resource = get_resource(fuzzed.plural)
        problems: list[str] = []
        if fuzzed.name:
            name = fuzzed.name
            if fuzzed.body:
                problems += _check(*await self._send("PATCH", resource.build_path(NAMESPACE, name), fuzzed.body))
        else:
            status, answer = await self._send("POST", resource.build_path(NAMESPACE), fuzzed.body)
            problems = _check(status, answer)
            if status != HTTPStatus.CREATED:
                return problems
            name = answer["metadata"]["name"]
            self._objects.append(fuzzed._replace(name=name))
        if fuzzed.status is not None:
            path = f"{resource.build_path(NAMESPACE, name)}/status"
            problems += _check(*await self._send("PATCH", path, {"status": fuzzed.status}))
        return problems

    async def _delete(self, fuzzed: FuzzedObject) -> list[str]:
        path = get_resource(fuzzed.plural).build_path(NAMESPACE, fuzzed.name)
        query = (("gracePeriodSeconds", "0"),) if self._chance.random() < 0.5 else ()
        return _check(*await self._send("DELETE", path, None, query=query))

    async def _restore_cloud(self) -> list[str]:
        """Give the cloud the spec that it had at the start."""
        _, current = await self._send("GET", _CLOUD_PATH, None)
        return _check(*await self._send("PUT", _CLOUD_PATH, {**current, "spec": self._cloud_spec}))

    async def _send(
        self, method: str, path: str, body: Any, *, query: Sequence[tuple[str, str]] = ()
    ) -> tuple[int, Any]:
        content_type = MERGE_PATCH if method == "PATCH" else JSON
        data = b"" if body is None else json.dumps(body).encode()
        request = Request(method, path, query, {"Content-Type": content_type, "Accept": JSON}, data)
        response = await self._transport.send(request)
        self.answers[response.status] = self.answers.get(response.status, 0) + 1
        return response.status, json.loads(response.body)


def _weigh(fields: list[Field]) -> tuple[list[Field], list[float]]:
    return fields, list(accumulate(field.weight for field in fields))


_KINDS: Final = tuple(sorted(BASE_OBJECTS))
_KIND_WEIGHTS: Final = [_WEIGHTS.get(kind, 1) for kind in _KINDS]
_FIELDS_OF: Final = {kind: _weigh([field for field in list_fields() if field.kind == kind]) for kind in _KINDS}


def _check(status: int, answer: Any) -> list[str]:
    return [] if is_allowed(status, answer) else [f"{status}: {str(answer)[:500]}"]


def find_problems(logs: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for line in logs:
        error = line.get("exc_info")
        if error or line["log_level"] in _LEVELS or line["event"] == _SET_ASIDE:
            reported = ", ".join(f"{name}={str(value)[-1500:]}" for name, value in line.items())
            stack = "".join(traceback.format_exception(error)[-4:]) if isinstance(error, BaseException) else ""
            yield f"{reported}\n{stack}"
