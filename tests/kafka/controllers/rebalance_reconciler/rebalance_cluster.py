"""An API server with a Kafka, rebalances, and a Cruise Control that does what its script says.

    with RebalanceCluster() as world:
        world.create("r")
        world.reconcile()
        assert world.state("r") == "ProposalReady"

Every reconcile is one of a new process: nothing is kept in memory. `through` is passed every port that a process has.
"""

from __future__ import annotations

import asyncio
import json
import uuid
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

from plimsoll.journal.entries import Query
from plimsoll.journal.memory import MemoryJournal
from plimsoll.kafka.controllers.rebalance_reconciler import (
    RebalanceDependencies,
    RebalanceReconciler,
)
from plimsoll.kafka.model.rebalances import (
    Computing,
    ExecutorSubstate,
    NoSuchTask,
    Proposed,
    RebalanceRefused,
    RebalanceTask,
    RebalanceTaskStatus,
    TransientReason,
)
from plimsoll.kafka.reporting.rebalance_reporter import RebalanceReporter
from plimsoll.kafka.wire.rebalance_specs import write_rebalance_spec
from plimsoll.kube.client import Client
from plimsoll.kube.recorder import EventRecorder
from plimsoll.kube.requests.options import ClientSettings
from plimsoll.local.apiserver.http_types import Request as HttpRequest
from plimsoll.local.apiserver.transport.kube_transport import EmbeddedTransport
from plimsoll.objects.api.events import EventSource
from plimsoll.objects.api.meta import format_time
from plimsoll.objects.custom_kinds import OUR_KINDS
from plimsoll.operator.pause import ActionGuard
from plimsoll.runtime.entropy import SeededEntropy
from tests.kafka.cruise_control.client.recorded import read_recorded
from tests.local.apiserver.builders import ADMIN, JSON, MERGE, ApiServerHarness
from tests.objects.crds.kafka_definitions import DEFINITIONS, NAMESPACE, list_our_definitions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from plimsoll.core.clock import Clock
    from plimsoll.core.selectors import LabelSelector
    from plimsoll.journal.entries import Entry
    from plimsoll.kafka.cruise_control.client.ports import CruiseControls
    from plimsoll.kafka.model.rebalances import RebalanceAnswer, RebalanceSpec, RebalanceTaskAnswer
    from plimsoll.kafka.reporting.rebalance_reporter import RebalanceResult
    from plimsoll.kube.transport import Request, Response, Transport
    from plimsoll.objects.api.kafka import Kafka
    from plimsoll.operator.reconcile_all import FailedReconcile

Json = dict[str, Any]

KAFKA = f"/apis/kafka.strimzi.io/v1/namespaces/{NAMESPACE}"
CONFIG_MAPS = f"/api/v1/namespaces/{NAMESPACE}/configmaps"
LISTENERS = [{"name": "plain", "port": 9092, "type": "internal", "tls": False}]
UNREACHABLE = RebalanceRefused(reason=TransientReason.CONNECTION, message="connection refused", is_transient=True)
ONGOING = RebalanceRefused(
    reason="IllegalStateException",
    message="Cannot start a new execution while there is an ongoing execution.",
    is_transient=True,
)


def _read_proposal() -> Json:
    body = dict(read_recorded("add-broker-dryrun-verbose")["response"]["json"])
    body.pop("proposals")
    return body


PROPOSAL = _read_proposal()


@dataclass
class Task:
    """A user task of Cruise Control."""

    id: str
    spec: RebalanceSpec
    is_dry_run: bool
    status: RebalanceTaskStatus


@dataclass
class ScriptedCruiseControl:
    """A Cruise Control. Tests set what it answers; without a script everything works at once."""

    clock: Clock
    is_down: bool = False
    is_slow: bool = False
    """Requests are answered with 202; `compute` finishes the computations."""
    refusal: RebalanceAnswer | None = None
    """The answer to every request."""
    loses_answer: Callable[[str], bool] = lambda _call: False
    """Whether a call takes effect and its caller hears nothing."""
    stops_slowly: bool = False
    """After a stop the executor is stopping until `finish_stop`."""
    tasks: list[Task] = field(default_factory=list)
    calls: list[str] = field(default_factory=list)
    executed: list[tuple[int, ...]] = field(default_factory=list)
    """The brokers of each execution that was accepted."""
    running: Task | None = None
    foreign: bool = False
    """An execution of another client runs."""
    moved_mb: float = 0.0
    executor_state: str = "INTER_BROKER_REPLICA_MOVEMENT_TASK_IN_PROGRESS"
    """While an execution runs."""

    async def find(self, _kafka: Kafka) -> ScriptedCruiseControl | RebalanceRefused:
        return self

    # ---- the port

    async def request_rebalance(self, spec: RebalanceSpec, *, is_dry_run: bool) -> RebalanceAnswer:
        answer = self._request(spec, is_dry_run=is_dry_run)
        return self._reply("dry-run" if is_dry_run else "real-run", answer)

    async def read_user_task(self, session_id: str) -> RebalanceTaskAnswer:
        found = next((task for task in self.tasks if task.id == session_id), None)
        if found is None:
            return self._reply("user-task", NoSuchTask())
        has_body = found.status is not RebalanceTaskStatus.ACTIVE
        task = RebalanceTask(id=found.id, status=found.status, body=PROPOSAL if has_body else None)
        return self._reply("user-task", task)

    async def find_execution(self, spec: RebalanceSpec) -> RebalanceTaskAnswer:
        found = [task for task in self.tasks if not task.is_dry_run and task.spec == spec]
        answer = RebalanceTask(id=found[-1].id, status=found[-1].status) if found else NoSuchTask()
        return self._reply("find-execution", answer)

    async def stop_execution(self) -> RebalanceRefused | None:
        if not self.is_down and self.running is not None:
            self.running.status = RebalanceTaskStatus.COMPLETED_WITH_ERROR
            if not self.stops_slowly:
                self.running = None
        return self._reply("stop", None)

    async def read_executor_state(self) -> ExecutorSubstate | RebalanceRefused:
        return self._reply("executor", self._describe_executor())

    # ---- what happens

    def finish(self) -> None:
        """The execution comes to its end."""
        assert self.running is not None
        self.running.status = RebalanceTaskStatus.COMPLETED
        self.running = None

    def finish_stop(self) -> None:
        """An execution that is being stopped comes to its end."""
        if self.running is not None and self.running.status is RebalanceTaskStatus.COMPLETED_WITH_ERROR:
            self.running = None

    def compute(self) -> None:
        """Computations come to their end; real runs are executed."""
        for task in self.tasks:
            if task.status is RebalanceTaskStatus.ACTIVE:
                task.status = RebalanceTaskStatus.COMPLETED if task.is_dry_run else RebalanceTaskStatus.IN_EXECUTION

    def restart(self) -> None:
        """It knows no task any more, and moves nothing."""
        self.tasks.clear()
        self.running = None

    @property
    def changes(self) -> list[str]:
        """The calls that change something."""
        return [call for call in self.calls if call in {"dry-run", "real-run", "stop"}]

    # ---- inside

    def _request(self, spec: RebalanceSpec, *, is_dry_run: bool) -> RebalanceAnswer:
        if self.is_down:
            return UNREACHABLE
        if self.refusal is not None:
            return self.refusal
        if not is_dry_run and (self.running is not None or self.foreign):
            return ONGOING
        finished = RebalanceTaskStatus.COMPLETED if is_dry_run else RebalanceTaskStatus.IN_EXECUTION
        status = RebalanceTaskStatus.ACTIVE if self.is_slow else finished
        task = Task(str(uuid.UUID(int=len(self.tasks) + 1)), spec, is_dry_run, status)
        self.tasks.append(task)
        if not is_dry_run:
            self.executed.append(spec.brokers)
            self.running = task
        return Computing(session_id=task.id) if self.is_slow else Proposed(session_id=task.id, body=PROPOSAL)

    def _describe_executor(self) -> ExecutorSubstate:
        if self.running is None and not self.foreign:
            return ExecutorSubstate(state="NO_TASK_IN_PROGRESS", body={"state": "NO_TASK_IN_PROGRESS"})
        is_stopping = self.running is not None and self.running.status is RebalanceTaskStatus.COMPLETED_WITH_ERROR
        state = "STOPPING_EXECUTION" if is_stopping else self.executor_state
        return ExecutorSubstate(
            state=state,
            finished_data_mb=self.moved_mb,
            total_data_mb=100,
            triggered_task_id="foreign" if self.running is None else self.running.id,
            triggered_task_reason=f"No reason provided (Client: 127.0.0.1, Date: {format_time(self.clock.now())})",
            body={"state": state},
        )

    def _reply(self, call: str, answer: Any) -> Any:
        self.calls.append(call)
        if self.is_down:
            return UNREACHABLE
        if self.loses_answer(call):
            return RebalanceRefused(reason=TransientReason.TIMEOUT, message="no answer in time", is_transient=True)
        return answer


class RecordingTransport:
    """Keeps what changes something."""

    def __init__(self, inner: Transport) -> None:
        self.writes: list[tuple[str, str]] = []
        self._inner = inner

    async def send(self, call: Request) -> Response:
        if not call.is_safe and "/events" not in call.path:
            self.writes.append((call.method, call.path))
        return await self._inner.send(call)

    async def aclose(self) -> None:
        await self._inner.aclose()


class RebalanceCluster(ApiServerHarness):
    """With the namespace `kafka` and the Ready Kafka `c` that has Cruise Control."""

    def __init__(
        self,
        *,
        definitions: Iterable[Json] | None = None,
        through: Callable[[Any], Any] = lambda port: port,
        selector: LabelSelector | None = None,
    ) -> None:
        super().__init__()
        self.cruise_control = ScriptedCruiseControl(self.run.clock)
        self.journal = MemoryJournal()
        self.writes: list[tuple[str, str]] = []
        self.results: tuple[RebalanceResult | FailedReconcile, ...] = ()
        self.through = through
        self.wraps_cruise_control = True
        self.controls: CruiseControls | None = None
        """Used in place of the script."""
        self.selector = selector
        self.guard = ActionGuard()
        self._definitions = list_our_definitions() if definitions is None else list(definitions)

    def __enter__(self) -> Self:
        super().__enter__()
        self.run.run_until(self.application.start())
        for body in self._definitions:
            self.made(DEFINITIONS, body)
        self.run.settle()
        self.namespace(NAMESPACE)
        self.make_kafka("c")
        return self

    # ---- people

    def make_kafka(self, name: str, *, is_ready: bool = True, spec: Json | None = None, **metadata: Any) -> None:
        body = {
            "apiVersion": "kafka.strimzi.io/v1",
            "kind": "Kafka",
            "metadata": {"name": name, **metadata},
            "spec": {"kafka": {"listeners": LISTENERS}, **({"cruiseControl": {}} if spec is None else spec)},
        }
        self.made(f"{KAFKA}/kafkas", body)
        self.set_kafka(name, is_ready=is_ready)

    def set_kafka(self, name: str = "c", *, is_ready: bool) -> None:
        condition = {"type": "Ready" if is_ready else "NotReady", "status": "True"}
        self.patch(f"{KAFKA}/kafkas/{name}/status", {"status": {"conditions": [condition]}})

    def create(self, name: str = "r", *, cluster: str = "c", spec: Any = None, **metadata: Any) -> Json:
        labels = {"strimzi.io/cluster": cluster} if cluster else {}
        body = {
            "apiVersion": "kafka.strimzi.io/v1",
            "kind": "KafkaRebalance",
            "metadata": {"name": name, "labels": labels, **metadata},
            "spec": {"mode": "add-brokers", "brokers": [3]} if spec is None else spec,
        }
        made: Json = self.made(f"{KAFKA}/kafkarebalances", body)
        return made

    def create_automatic(self, name: str = "r", spec: RebalanceSpec | None = None) -> None:
        """As the cluster reconciler creates one."""
        self.create(
            name,
            spec=None if spec is None else write_rebalance_spec(spec),
            annotations={"strimzi.io/rebalance-auto-approval": "true"},
            finalizers=["strimzi.io/auto-rebalancing"],
        )

    def annotate(self, word: str | None, name: str = "r") -> None:
        self.edit({"metadata": {"annotations": {"strimzi.io/rebalance": word}}}, name)

    def edit(self, patch: Json, name: str = "r", *, part: str = "") -> None:
        self.patch(f"{KAFKA}/kafkarebalances/{name}{f'/{part}' if part else ''}", patch)

    def patch(self, url: str, body: Json) -> None:
        reply = self.ask("PATCH", url, body, content=MERGE)
        assert reply.status == 200, reply

    async def patch_later(self, patch: Json, name: str = "r") -> None:
        """As `edit`, from inside a pass."""
        headers = {"Authorization": f"Bearer {ADMIN}", "Content-Type": MERGE, "Accept": JSON}
        url = f"{KAFKA}/kafkarebalances/{name}"
        request = HttpRequest.build("PATCH", url, headers=headers, body=json.dumps(patch).encode())
        assert (await self.application.handle(request)).status == 200

    def delete(self, name: str = "r") -> None:
        assert self.ask("DELETE", f"{KAFKA}/kafkarebalances/{name}").status == 200

    # ---- passes

    def reconcile(self, passes: int = 1, *, every_s: float = 10) -> None:
        """So many passes over everything, each by a new process."""
        for number in range(passes):
            if number:
                self.run.advance_by(every_s)
            self.run.run_until(self.run_pass())

    async def run_pass(self) -> None:
        transport = RecordingTransport(self.through(EmbeddedTransport(self.application, token=ADMIN)))
        try:
            self.results = await self._run_all(transport)
        finally:
            self.writes = transport.writes

    def reconcile_one(self, name: str) -> RebalanceResult | None:
        """A pass over one rebalance."""
        transport = RecordingTransport(EmbeddedTransport(self.application, token=ADMIN))
        reporter = RebalanceReporter(journal=self.journal)
        reconciler = RebalanceReconciler(self._build_dependencies(transport, reporter))
        result = self.run.run_until(reconciler.run(NAMESPACE, name))
        self.writes = transport.writes
        return result

    async def _run_all(self, transport: RecordingTransport) -> tuple[RebalanceResult | FailedReconcile, ...]:
        clock = self.run.clock
        events = self._build_client(EmbeddedTransport(self.application, token=ADMIN))
        source = EventSource(component="plimsoll-kafka")
        recorder = EventRecorder(events, source, clock=clock, entropy=SeededEntropy("names"))
        reporter = RebalanceReporter(recorder=recorder, journal=self.journal)
        recording = asyncio.create_task(recorder.run())
        try:
            results = await RebalanceReconciler(self._build_dependencies(transport, reporter)).run_all()
            await asyncio.sleep(0.1)
        finally:
            recording.cancel()
            await asyncio.wait((recording,))
        return results

    def _build_dependencies(self, transport: Transport, reporter: RebalanceReporter) -> RebalanceDependencies:
        port = self.through(self.cruise_control) if self.wraps_cruise_control else self.cruise_control
        return RebalanceDependencies(
            client=self._build_client(transport),
            clock=self.run.clock,
            cruise_controls=self.controls or _Controls(port),
            reporter=reporter,
            selector=self.selector,
            read_guard=self._read_guard,
        )

    def _build_client(self, transport: Transport) -> Client:
        settings = ClientSettings(field_manager="plimsoll-kafka", qps=0)
        clock, entropy = self.run.clock, SeededEntropy("kafka")
        return Client(transport, clock=clock, entropy=entropy, settings=settings, kinds=OUR_KINDS)

    async def _read_guard(self) -> ActionGuard:
        return self.guard

    # ---- what is to be seen

    def get(self, name: str = "r") -> Json | None:
        reply = self.ask("GET", f"{KAFKA}/kafkarebalances/{name}")
        return reply.body if reply.status == 200 else None

    def status(self, name: str = "r") -> Json:
        found = self.get(name)
        assert found is not None, f"{name} is gone"
        status: Json = found.get("status", {})
        return status

    def state(self, name: str = "r") -> str:
        """The types of the conditions but warnings."""
        conditions = self.status(name).get("conditions", [])
        return " ".join(condition["type"] for condition in conditions if condition["type"] != "Warning")

    def reason(self, name: str = "r") -> str:
        reason: str = self.status(name)["conditions"][0].get("reason", "")
        return reason

    def message(self, name: str = "r") -> str:
        message: str = self.status(name)["conditions"][0].get("message", "")
        return message

    def warnings(self, name: str = "r") -> list[str]:
        conditions = self.status(name).get("conditions", [])
        return [condition["reason"] for condition in conditions if condition["type"] == "Warning"]

    def annotations(self, name: str = "r") -> Json:
        found = self.get(name)
        assert found is not None
        annotations: Json = found["metadata"].get("annotations", {})
        return annotations

    def config_map(self, name: str = "r") -> Json | None:
        reply = self.ask("GET", f"{CONFIG_MAPS}/{name}")
        return reply.body if reply.status == 200 else None

    def loads(self, name: str = "r") -> Json:
        found = self.config_map(name)
        assert found is not None
        loads: Json = json.loads(found["data"]["brokerLoad.json"])
        return loads

    def entries(self) -> list[Entry]:
        """The journal, the oldest entry first."""
        return list(reversed(self.run.run_until(self.journal.list_entries(Query()))))

    def events(self) -> list[str]:
        return [event["reason"] for event in self.ask("GET", f"/api/v1/namespaces/{NAMESPACE}/events").body["items"]]


class _Controls:
    """Finds the scripted Cruise Control, behind whatever its port is wrapped in."""

    def __init__(self, control: ScriptedCruiseControl) -> None:
        self._control = control

    async def find(self, _kafka: Kafka) -> Any:
        found = await self._control.find(_kafka)
        return self._control if isinstance(found, ScriptedCruiseControl) else found
