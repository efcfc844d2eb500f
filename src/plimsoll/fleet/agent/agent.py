"""The agent's loop: poll, take in, reconcile every instance, report. One cycle at a time.

A cycle polls when the poll interval has passed; between polls it runs after changes of objects, so that a status is
reported soon. Nothing that matters is in memory: after a crash the next cycle begins with objects.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import structlog
from msgspec.structs import replace

from plimsoll.fleet.agent.control_plane import CallProblem, ControlPlaneAnswer
from plimsoll.fleet.agent.instance_reconciler import CycleClaims, InstanceReconciler, InstanceResult
from plimsoll.fleet.agent.intake_executor import IntakeExecutor, IntakeResult
from plimsoll.fleet.agent.model.reports import report_deleted
from plimsoll.fleet.agent.observer import read_node_group_limits, read_operators
from plimsoll.fleet.agent.planning.capacity import compute_capacity
from plimsoll.fleet.agent.planning.operator_versions import list_operator_versions
from plimsoll.fleet.agent.wire.report_documents import build_cluster_report, build_instance_report
from plimsoll.fleet.agent.wire.status_documents import build_status, is_written
from plimsoll.kube.errors import ApiCallFailed, ApiError, Conflict, NotAllowed, UnreadableAnswer
from plimsoll.operator.pause import ActionGuard, read_pause

if TYPE_CHECKING:
    from plimsoll.core.clock import Clock
    from plimsoll.core.plans import Reason
    from plimsoll.fleet.agent.actuator import AgentActuator
    from plimsoll.fleet.agent.claims_store import ClaimsStore
    from plimsoll.fleet.agent.control_plane import ControlPlane
    from plimsoll.fleet.agent.metrics import AgentMetrics
    from plimsoll.fleet.agent.model.capacity import ClusterCapacity
    from plimsoll.fleet.agent.model.operators import OperatorVersion
    from plimsoll.fleet.agent.model.reports import InstanceReport
    from plimsoll.fleet.agent.observer import ClusterView
    from plimsoll.fleet.agent.reporter import AgentReporter
    from plimsoll.fleet.agent.settings import AgentSettings
    from plimsoll.kube.client import Client

log: structlog.typing.FilteringBoundLogger = structlog.get_logger(__name__)

MISSED_POLLS: Final = 3
"""After so many polls without an answer the control plane counts as away."""
_RETRY_S: Final = 5.0
"""So long after a cycle that failed the next one begins: its poll is still due, and would be made at once."""
_SETTLE_S: Final = 1.0
"""Changes come in groups: so long a cycle waits for the rest of one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Intervals:
    """How often it polls, and how often it reports everything."""

    poll_s: float
    resync_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentDependencies:
    """What the loop is made from."""

    client: Client
    clock: Clock
    control_plane: ControlPlane
    view: ClusterView
    claims: ClaimsStore
    actuator: AgentActuator
    reporter: AgentReporter
    metrics: AgentMetrics
    settings: AgentSettings
    intervals: Intervals


@dataclass(frozen=True, slots=True, kw_only=True)
class Polled:
    """What the last successful poll gave, with what was read of the cluster for its report."""

    answer: ControlPlaneAnswer
    versions: tuple[OperatorVersion, ...]
    group_limits: dict[str, int] | None


class Agent:
    """`run` until cancelled; `run_cycle` once."""

    def __init__(self, dependencies: AgentDependencies) -> None:
        self._dependencies = parts = dependencies
        self._clock = parts.clock
        self._intake = IntakeExecutor(parts.view, parts.actuator, parts.claims)
        self._instances = InstanceReconciler(parts.view, parts.actuator, parts.clock)
        self._changed = asyncio.Event()
        self._polled: Polled | None = None
        self._missed = 0
        self._is_reachable: bool | None = None
        self._differs: dict[str, Reason] = {}
        self._gone: tuple[str, ...] = ()
        self.taken: IntakeResult | None = None
        """What the last list changed."""
        self._reported: dict[str, InstanceReport] = {}
        self._reported_cluster: dict[str, object] = {}
        self._next_poll_s = float("-inf")
        self._next_resync_s = float("-inf")
        parts.view.call_on_change(self._changed.set)

    async def run(self) -> None:
        """Until cancelled."""
        await self._dependencies.view.wait_until_synced()
        while True:
            self._changed.clear()
            try:
                await self.run_cycle()
            except NotAllowed:
                raise
            except ApiCallFailed as error:
                log.warning("agent.cycle_failed", problem=str(error))
                await self._clock.sleep(_RETRY_S)
            await self._wait()

    async def run_cycle(self) -> tuple[InstanceResult, ...]:
        """Raises `ApiCallFailed`; the next cycle begins anew."""
        parts = self._dependencies
        guard = await self._read_guard()
        claims = await self._intake.read_claims(guard)
        if self._clock.monotonic_s() >= self._next_poll_s:
            self._next_poll_s = self._clock.monotonic_s() + parts.intervals.poll_s
            await self._poll(claims, guard)
        await self._intake.release(claims, guard)
        results = await self._reconcile(claims, guard)
        capacity = self._compute_capacity(claims)
        parts.metrics.set_instances(results)
        if capacity is not None:
            parts.metrics.set_capacity(capacity)
        await self._report(results, capacity)
        return results

    async def _wait(self) -> None:
        """Until the next poll, or until something changed."""
        left_s = max(self._next_poll_s - self._clock.monotonic_s(), 0.0)
        try:
            async with asyncio.timeout(left_s):
                await self._changed.wait()
        except TimeoutError:
            return
        await self._clock.sleep(min(_SETTLE_S, left_s))

    async def _read_guard(self) -> Reason | None:
        settings = self._dependencies.settings
        paused = "" if settings.dry_run else await read_pause(self._dependencies.client, settings.namespace)
        return ActionGuard(dry_run=settings.dry_run, paused=paused).reason

    # ---- polling

    async def _poll(self, claims: CycleClaims, guard: Reason | None) -> None:
        parts = self._dependencies
        answer = await parts.control_plane.poll()
        parts.metrics.count_poll(is_success=not isinstance(answer, CallProblem))
        if isinstance(answer, CallProblem):
            self._missed += 1
            if self._missed >= MISSED_POLLS:
                self._is_reachable = False
            parts.reporter.report_silence(answer.message, missed=self._missed)
            return
        self._missed, self._is_reachable = 0, True
        limits = await read_node_group_limits(parts.client, parts.settings.node_autoscaler_namespace)
        parts.reporter.report_answer(answer, limits if isinstance(limits, str) else "")
        self._polled = Polled(
            answer=answer,
            versions=list_operator_versions(await read_operators(parts.client)),
            group_limits=limits if isinstance(limits, dict) else None,
        )
        self.taken = taken = await self._intake.take(answer.kafkas, claims, guard)
        self._differs, self._gone = dict(taken.differs), taken.gone
        await parts.reporter.report_intake(taken, now=self._clock.now(), dry_run=parts.settings.dry_run)

    def _compute_capacity(self, claims: CycleClaims) -> ClusterCapacity | None:
        """None: no poll has succeeded yet."""
        polled = self._polled
        if polled is None:
            return None
        return compute_capacity(
            polled.answer.max_nodes,
            claims.now,
            group_limits=polled.group_limits,
            units_per_node=self._dependencies.settings.units_per_node,
        )

    # ---- instances

    async def _reconcile(self, claims: CycleClaims, guard: Reason | None) -> tuple[InstanceResult, ...]:
        parts = self._dependencies
        capacity = self._compute_capacity(claims)
        results = []
        for managed in parts.view.list_managed():
            try:
                result = await self._instances.reconcile(managed, claims, capacity, guard)
                if guard is None:
                    await self._write_status(result)
            except NotAllowed:
                raise
            except Conflict as error:
                # Another agent, or a user, was faster: the next cycle sees it.
                log.info("agent.overtaken", instance=managed.metadata.name, problem=str(error))
                continue
            except (ApiError, UnreadableAnswer) as error:
                log.warning("agent.instance_failed", instance=managed.metadata.name, problem=str(error))
                continue
            except ApiCallFailed:
                raise
            except Exception:  # the work on one instance ends here; tests/architecture lists it
                # A value that no check foresaw stops this instance and no other.
                log.exception("agent.instance_crashed", instance=managed.metadata.name)
                continue
            await parts.reporter.report(result, now=self._clock.now(), dry_run=parts.settings.dry_run)
            results.append(result)
        return tuple(results)

    async def _write_status(self, result: InstanceResult) -> None:
        managed = result.managed
        status = build_status(
            managed,
            result.report,
            units=result.units,
            is_reachable=self._is_reachable,
            differs=self._differs.get(managed.metadata.namespace),
            now=self._clock.now().replace(microsecond=0),
        )
        if not is_written(managed, status):
            await self._dependencies.actuator.write_status(managed, status)

    # ---- reports

    async def _report(self, results: tuple[InstanceResult, ...], capacity: ClusterCapacity | None) -> None:
        """What changed since the last report that arrived; everything after the resync interval."""
        if self._missed or self._polled is None or capacity is None or self._dependencies.settings.dry_run:
            return
        now_s = self._clock.monotonic_s()
        is_resync = now_s >= self._next_resync_s
        cluster = build_cluster_report(self._polled.versions, capacity)
        reports = {result.report.id: result.report for result in results if result.report.id}
        reports |= {kafka_id: report_deleted(kafka_id) for kafka_id in self._gone}
        changed = {
            kafka_id: report
            for kafka_id, report in reports.items()
            if is_resync or self._reported.get(kafka_id) != report
        }
        problems: list[CallProblem | None] = []
        if is_resync or cluster != self._reported_cluster:
            problems.append(await self._dependencies.control_plane.report_cluster(cluster))
            if problems[-1] is None:
                self._reported_cluster = cluster
        if changed:
            documents = {kafka_id: build_instance_report(report) for kafka_id, report in sorted(changed.items())}
            problems.append(await self._dependencies.control_plane.report_kafkas(documents))
            if problems[-1] is None:
                self._reported = {
                    kafka_id: replace(report) if kafka_id in changed else self._reported[kafka_id]
                    for kafka_id, report in reports.items()
                    if kafka_id in changed or kafka_id in self._reported
                }
        failed = [problem.message for problem in problems if problem is not None]
        if failed:
            self._dependencies.reporter.report_silence(failed[0], missed=self._missed)
        elif is_resync:
            self._next_resync_s = now_s + self._dependencies.intervals.resync_s
