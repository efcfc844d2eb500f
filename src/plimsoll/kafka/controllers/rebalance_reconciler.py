"""Reconciles a KafkaRebalance: observe fresh, decide, call Cruise Control, write, report.

Nothing is kept in memory between reconciles: what one must know about the previous one is in the object. The order of
the writes makes a crash between any two of them harmless: the ConfigMap first, then the status, then the annotations
that are done. A real run is stored as begun before it is requested.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import msgspec
import structlog
from msgspec.structs import replace

from plimsoll.core.errors import PlimsollError
from plimsoll.kafka.controllers.config_maps.load_config_maps import write_load_config_map
from plimsoll.kafka.controllers.errors import explain_unreadable
from plimsoll.kafka.model.rebalance_steps import CallKind, IgnoredRebalance, RebalanceCall, RebalanceOutcome
from plimsoll.kafka.model.rebalances import RebalanceRefused, RebalanceState
from plimsoll.kafka.planning.scaling.rebalance_answers import find_step_to_begin, interpret_answer
from plimsoll.kafka.planning.scaling.rebalance_transitions import block_unreadable, decide_call
from plimsoll.kafka.reporting.rebalance_reporter import RebalanceResult
from plimsoll.kafka.wire.kafka_status import read_warnings
from plimsoll.kafka.wire.load_config_map import build_load_data
from plimsoll.kafka.wire.names import (
    AUTO_REBALANCING_FINALIZER,
    CLUSTER_LABEL,
    REBALANCE_ANNOTATION,
    TEMPLATE_ANNOTATION,
    is_annotated,
)
from plimsoll.kafka.wire.rebalance_objects import (
    BEGUN_ANNOTATION,
    observe_rebalance,
    read_begun,
    summarize_kafka,
    write_begun,
)
from plimsoll.kafka.wire.rebalance_status import (
    build_conditions_patch,
    build_status_patch,
    read_undecoded_state,
)
from plimsoll.kube.controller.finalizers import Finalizer
from plimsoll.kube.errors import Conflict, NotFound
from plimsoll.kube.requests.options import Selection
from plimsoll.kube.undecoded_objects import get_or_explain, patch_undecoded_status, read_undecoded
from plimsoll.objects.api.kafka import Kafka, KafkaRebalance
from plimsoll.objects.codec.decode_problems import BadObject
from plimsoll.operator.pause import ActionGuard, read_pause_annotation
from plimsoll.operator.reconcile_all import FailedReconcile, reconcile_all

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from plimsoll.core.clock import Clock
    from plimsoll.core.plans import Reason
    from plimsoll.core.selectors import LabelSelector
    from plimsoll.kafka.cruise_control.client.ports import CruiseControl, CruiseControls
    from plimsoll.kafka.model.rebalance_steps import BegunStep, KafkaSummary, RebalanceStep
    from plimsoll.kafka.planning.scaling.rebalance_answers import Answer
    from plimsoll.kafka.reporting.rebalance_reporter import RebalanceReporter
    from plimsoll.kube.client import Client
    from plimsoll.objects.codec.decoding import RawObject

    ReadGuard = Callable[[], Awaitable[ActionGuard]]

log: structlog.typing.FilteringBoundLogger = structlog.get_logger(__name__)

ATTEMPTS: Final = 5
"""How often a write is tried again after other writes came first."""
MAX_CALLS: Final = 10
"""More calls than any step needs: the limit ends a step that would go round in circles."""


async def _allow_all() -> ActionGuard:
    return ActionGuard()


@dataclass(frozen=True, slots=True, kw_only=True)
class RebalanceDependencies:
    """The dependencies of the reconciler. `selector` None: every Kafka is the operator's."""

    client: Client
    clock: Clock
    cruise_controls: CruiseControls
    reporter: RebalanceReporter
    selector: LabelSelector | None = None
    namespace: str = ""
    """Only rebalances of this namespace; empty: of all."""
    read_guard: ReadGuard = _allow_all
    """The pause of all controllers, and dry run."""


class _Overtaken(PlimsollError):
    """The status was written by another process meanwhile: what was decided may be outdated."""


class RebalanceReconciler:
    """Reconciles all rebalances, one at a time."""

    def __init__(self, dependencies: RebalanceDependencies) -> None:
        self._dependencies = dependencies
        self._finalizer = Finalizer(dependencies.client, AUTO_REBALANCING_FINALIZER)

    async def run_all(self) -> tuple[RebalanceResult | FailedReconcile, ...]:
        """Reconcile every rebalance. A failure of one does not stop the others."""
        listed = await self._dependencies.client.list(KafkaRebalance, Selection(namespace=self._dependencies.namespace))
        names = [(rebalance.metadata.namespace, rebalance.metadata.name) for rebalance in listed.items]
        unreadable = [(bad.namespace, bad.name) for bad in listed.bad]
        return await reconcile_all((*names, *unreadable), self.run, what="rebalance")

    async def run(self, namespace: str, name: str) -> RebalanceResult | None:
        """Reconcile one rebalance; None: it is gone. Raises errors that end the reconcile."""
        try:
            rebalance = await get_or_explain(self._dependencies.client, KafkaRebalance, name, namespace=namespace)
        except NotFound:
            return None
        result = await self._run(rebalance)
        if result is not None:
            await self._dependencies.reporter.report(result)
        return result

    async def _run(self, rebalance: RawObject[KafkaRebalance] | BadObject) -> RebalanceResult | None:
        if isinstance(rebalance, BadObject):
            return await self._explain_unreadable(rebalance.namespace, rebalance.name, rebalance)
        kafka = await self._read_kafka(rebalance.view)
        if isinstance(kafka, BadObject):
            return await self._explain_unreadable(rebalance.metadata.namespace, rebalance.metadata.name, kafka)
        return await _Reconcile(self._dependencies, self._finalizer, rebalance, kafka).run()

    async def _read_kafka(self, rebalance: KafkaRebalance) -> Kafka | BadObject | None:
        cluster = rebalance.metadata.labels.get(CLUSTER_LABEL, "").strip()
        if not cluster:
            return None
        try:
            found = await get_or_explain(
                self._dependencies.client, Kafka, cluster, namespace=rebalance.metadata.namespace
            )
        except NotFound:
            return None
        return found if isinstance(found, BadObject) else found.view

    async def _explain_unreadable(self, namespace: str, name: str, bad: BadObject) -> RebalanceResult | None:
        """A condition on a rebalance that cannot be decoded, or whose Kafka cannot. Cruise Control is not asked."""
        client, now = self._dependencies.client, self._dependencies.clock.now()
        found = await read_undecoded(client, KafkaRebalance, name, namespace=namespace)
        if found is None or is_annotated(found.metadata.annotations, TEMPLATE_ANNOTATION):
            return None
        conditions = found.status.get("conditions")
        reading = read_undecoded_state(conditions)
        state = reading.state if reading.problem is None else RebalanceState.NEW
        condition = (reading.condition.reason, reading.condition.message)
        outcome = block_unreadable(state, condition, explain_unreadable(bad), read_warnings(conditions))
        guard = await self._dependencies.read_guard()
        pause = guard.reason or ActionGuard(paused=read_pause_annotation(found.metadata.annotations)).reason
        patch = build_conditions_patch(found.status, outcome, now=now)
        if patch and pause is None:
            await patch_undecoded_status(client, KafkaRebalance, found.metadata, patch)
        return RebalanceResult(
            namespace=namespace,
            name=name,
            uid=found.metadata.uid,
            cluster=found.metadata.labels.get(CLUSTER_LABEL, "").strip(),
            at=now.replace(microsecond=0),
            before=reading.state,
            known_warnings=_list_known_warnings(found.status),
            outcome=outcome if pause is None else None,
            pause=pause,
            planned=outcome if pause is not None else None,
        )


class _Reconcile:
    """Reconciles a KafkaRebalance once: it holds what this reconcile has read and written."""

    def __init__(
        self,
        dependencies: RebalanceDependencies,
        finalizer: Finalizer,
        rebalance: RawObject[KafkaRebalance],
        kafka: Kafka | None,
    ) -> None:
        self._dependencies = dependencies
        self._client = dependencies.client
        self._finalizer = finalizer
        self._metadata = rebalance.view.metadata
        """As it was read, or as our last write left it."""
        self._status = _get_status(rebalance.raw)
        self._kafka = kafka
        self._summary = None if kafka is None else summarize_kafka(kafka, selector=dependencies.selector)
        self._observed = observe_rebalance(rebalance.view, kafka)
        self._now = dependencies.clock.now()
        self._calls: list[RebalanceCall] = []
        self._cruise_control: CruiseControl | RebalanceRefused | None = None

    async def run(self) -> RebalanceResult:
        if self._metadata.deletion_timestamp is not None and not self._finalizer.is_set(self._metadata):
            return self._conclude(None)
        pause = await self._find_pause()
        if pause is not None:
            return self._conclude(None, pause=pause, planned=decide_call(self._observed, self._summary))
        try:
            step = await self._decide()
            if isinstance(step, IgnoredRebalance):
                return self._conclude(step)
            assert isinstance(step, RebalanceOutcome)
            return self._conclude(await self._write(step))
        except _Overtaken as error:
            log.info("rebalance.overtaken", namespace=self._metadata.namespace, name=self._metadata.name)
            return self._conclude(None, problem=str(error), retry_after_s=0.0)

    def _conclude(
        self,
        step: RebalanceOutcome | IgnoredRebalance | None,
        *,
        pause: Reason | None = None,
        planned: RebalanceStep | None = None,
        problem: str = "",
        retry_after_s: float | None = None,
    ) -> RebalanceResult:
        outcome = step if isinstance(step, RebalanceOutcome) else None
        return RebalanceResult(
            namespace=self._metadata.namespace,
            name=self._metadata.name,
            uid=self._metadata.uid,
            cluster=self._observed.cluster,
            at=self._now.replace(microsecond=0),
            before=self._observed.state,
            known_warnings=_list_known_warnings(self._status),
            calls=tuple(self._calls),
            outcome=outcome,
            ignored=step.reason if isinstance(step, IgnoredRebalance) else None,
            pause=pause,
            planned=planned,
            problem=problem,
            retry_after_s=retry_after_s if outcome is None else outcome.retry_after_s,
        )

    async def _find_pause(self) -> Reason | None:
        guard = await self._dependencies.read_guard()
        if guard.reason is not None:
            return guard.reason
        paused = read_pause_annotation(self._metadata.annotations)
        if not paused and self._kafka is not None:
            paused = read_pause_annotation(self._kafka.metadata.annotations)
        return ActionGuard(paused=paused).reason

    # ---- calls

    async def _decide(self) -> RebalanceStep:
        """The outcome, after all calls that it needs."""
        step = decide_call(self._observed, self._summary)
        while isinstance(step, RebalanceCall):
            if len(self._calls) >= MAX_CALLS:
                raise PlimsollError(f"{self._observed.name}: no outcome after {MAX_CALLS} calls")
            assert self._summary is not None, "a missing Kafka is a guard"
            self._calls.append(step)
            step = await self._take(step, self._summary)
        return step

    async def _take(self, call: RebalanceCall, summary: KafkaSummary) -> RebalanceStep:
        if call.begins is not None and call.begins != self._observed.begun:
            await self._begin(call.begins)
        return interpret_answer(self._observed, summary, call, await self._call(call))

    async def _call(self, call: RebalanceCall) -> Answer:
        cruise_control = await self._find_cruise_control()
        if isinstance(cruise_control, RebalanceRefused):
            return cruise_control
        spec = self._observed.spec
        match call.kind:
            case CallKind.DRY_RUN | CallKind.REAL_RUN:
                assert spec is not None, "nothing is requested with a bad spec"
                return await cruise_control.request_rebalance(spec, is_dry_run=call.kind is CallKind.DRY_RUN)
            case CallKind.FIND_EXECUTION:
                assert spec is not None, "nothing is looked for with a bad spec"
                return await cruise_control.find_execution(spec)
            case CallKind.USER_TASK:
                return await cruise_control.read_user_task(call.task_id)
            case CallKind.STOP:
                return await cruise_control.stop_execution()
            case CallKind.EXECUTOR_STATE:
                return await cruise_control.read_executor_state()

    async def _find_cruise_control(self) -> CruiseControl | RebalanceRefused:
        """Looked for with the first call: a quiet reconcile reads no Secret."""
        if self._cruise_control is None:
            assert self._kafka is not None, "a missing Kafka is a guard"
            self._cruise_control = await self._dependencies.cruise_controls.find(self._kafka)
        return self._cruise_control

    # ---- writes

    async def _write(self, outcome: RebalanceOutcome) -> RebalanceOutcome:
        """The outcome with the warnings of its writes."""
        if outcome.is_released:
            await self._finalizer.remove(KafkaRebalance, self._metadata)
            return outcome
        begins = find_step_to_begin(self._observed, outcome)
        if begins is not None:
            await self._begin(begins)
        problems = await self._write_config_map(outcome)
        outcome = replace(outcome, warnings=(*outcome.warnings, *problems))
        await self._write_status(outcome)
        await self._remove_annotations(outcome)
        return outcome

    async def _begin(self, begun: BegunStep) -> None:
        """Store a step before it begins, if nothing has changed since the decision."""
        patch = {
            "metadata": {
                "resourceVersion": self._metadata.resource_version,
                "annotations": {BEGUN_ANNOTATION: write_begun(begun)},
            }
        }
        await self._patch(patch)

    async def _write_config_map(self, outcome: RebalanceOutcome) -> tuple[Reason, ...]:
        is_new = outcome.state is not self._observed.state
        if not is_new and outcome.body is None and outcome.executor is None:
            return ()
        load = build_load_data(outcome.state, body=outcome.body, executor=outcome.executor, now=self._now)
        if not load.data:
            return load.warnings
        labels = {CLUSTER_LABEL: self._observed.cluster} if self._observed.cluster else {}
        problem = await write_load_config_map(self._client, self._metadata, load.data, labels=labels)
        return load.warnings if problem is None else (*load.warnings, problem)

    async def _write_status(self, outcome: RebalanceOutcome) -> None:
        generation = self._metadata.generation
        patch = build_status_patch(
            self._status, outcome, name=self._observed.name, generation=generation, now=self._now
        )
        if not patch:
            return
        for _ in range(ATTEMPTS):
            body = {"metadata": {"resourceVersion": self._metadata.resource_version}, "status": patch}
            try:
                await self._patch(body, subresource="status")
            except _Overtaken:
                # Another writer changed labels or annotations, or the status; only the latter matters.
                await self._read_again()
                continue
            return
        raise _Overtaken("other writers were faster")

    async def _read_again(self) -> None:
        try:
            found: RawObject[KafkaRebalance] = await self._client.get_with_raw(
                KafkaRebalance, self._metadata.name, namespace=self._metadata.namespace
            )
        except NotFound:
            raise _Overtaken("it is gone") from None
        if found.view.metadata.uid != self._metadata.uid or _get_status(found.raw) != self._status:
            raise _Overtaken("another process wrote its status")
        self._metadata = found.view.metadata

    async def _remove_annotations(self, outcome: RebalanceOutcome) -> None:
        """Remove what is done, unless a user has written something else meanwhile."""
        for _ in range(ATTEMPTS):
            annotations = self._metadata.annotations
            gone: dict[str, None] = {}
            is_same = annotations.get(REBALANCE_ANNOTATION, "").strip() == self._observed.annotation
            if outcome.handles_annotation and is_same and REBALANCE_ANNOTATION in annotations:
                gone[REBALANCE_ANNOTATION] = None
            if BEGUN_ANNOTATION in annotations and not (outcome.keeps_begun and read_begun(annotations) is not None):
                gone[BEGUN_ANNOTATION] = None
            if not gone:
                return
            version = self._metadata.resource_version
            try:
                await self._patch({"metadata": {"resourceVersion": version, "annotations": gone}})
            except _Overtaken:
                await self._read_metadata()
                continue
            return
        raise _Overtaken("other writers were faster")

    async def _read_metadata(self) -> None:
        try:
            found = await self._client.get(KafkaRebalance, self._metadata.name, namespace=self._metadata.namespace)
        except NotFound:
            raise _Overtaken("it is gone") from None
        if found.metadata.uid != self._metadata.uid:
            raise _Overtaken("it was created again")
        self._metadata = found.metadata

    async def _patch(self, body: Mapping[str, Any], *, subresource: str = "") -> None:
        """Patch under the version that was read; the version that comes out is the next one to compare with."""
        name, namespace = self._metadata.name, self._metadata.namespace
        try:
            patched = await self._client.merge_patch(
                KafkaRebalance, name, body, namespace=namespace, subresource=subresource
            )
        except NotFound:
            raise _Overtaken("it is gone") from None
        except Conflict:
            raise _Overtaken("another writer came first") from None
        self._metadata = patched.metadata


def _get_status(raw: bytes) -> dict[str, Any]:
    status = msgspec.json.decode(raw).get("status")
    return status if isinstance(status, dict) else {}


def _list_known_warnings(status: Mapping[str, Any]) -> frozenset[str]:
    """The messages of the warnings that the status has already."""
    conditions = status.get("conditions")
    return frozenset(
        str(condition.get("message"))
        for condition in (conditions if isinstance(conditions, list) else ())
        if isinstance(condition, dict) and condition.get("type") == "Warning"
    )
