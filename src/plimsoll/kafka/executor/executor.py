"""The executor: one execution at a time, with progress, stop, and recovery after a crash.

Everything that must survive a crash is in the record; everything else is read from the brokers. So a new process that
calls `resume` goes on where the last one ended, and one that calls `stop` cancels what the last one began.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

import structlog

from plimsoll.core.errors import InvalidInput, PlimsollError
from plimsoll.core.plans import Reason
from plimsoll.kafka.brokers.ports import KafkaUnavailable
from plimsoll.kafka.executor import reasons
from plimsoll.kafka.executor.context import ExecutionContext, select_recent
from plimsoll.kafka.executor.errors import ExecutionRefused, RecordUnusable
from plimsoll.kafka.executor.execution import Execution
from plimsoll.kafka.executor.observing import METADATA_LAG_S
from plimsoll.kafka.executor.options import check_options
from plimsoll.kafka.executor.phases.replica_moves import list_under_replicated
from plimsoll.kafka.executor.record import RecordedPlan, RecordedState
from plimsoll.kafka.executor.throttles import NO_THROTTLES
from plimsoll.kafka.model.description import TopicPartition
from plimsoll.kafka.model.executions import NO_REQUEST, ExecutionProgress, ExecutorState
from plimsoll.operator.pause import ActionGuard

if TYPE_CHECKING:
    from collections.abc import Sequence

    from plimsoll.core.clock import Clock
    from plimsoll.journal.ports import Journal
    from plimsoll.kafka.brokers.ports import KafkaAdmin
    from plimsoll.kafka.executor.context import ReadGuard
    from plimsoll.kafka.executor.observing import ClusterView
    from plimsoll.kafka.executor.record import ExecutionRecord, ExecutionStore
    from plimsoll.kafka.model.executions import ExecutionOptions, ExecutionOutcome, ExecutionRequest
    from plimsoll.kafka.model.proposals import Proposal

log: structlog.typing.FilteringBoundLogger = structlog.get_logger(__name__)

START_S: Final = 0.1
"""How often a stop looks whether an execution that is about to start has started."""
CLEAN_UP_S: Final = 1.0
"""How often left throttles are tried while nothing is executed."""


async def _allow_all() -> ActionGuard:
    return ActionGuard()


class Executor:
    """Moves replicas of one cluster. `read_guard` gives pause and dry run, before anything new is sent.

    `journal` has the entries of executions, which it concludes, also those that an earlier process began.
    """

    def __init__(
        self,
        admin: KafkaAdmin,
        clock: Clock,
        record: ExecutionStore,
        *,
        read_guard: ReadGuard = _allow_all,
        journal: Journal | None = None,
    ) -> None:
        self._admin = admin
        self._clock = clock
        self._store = record
        self._read_guard = read_guard
        self._journal = journal
        self._removed: dict[int, int] | None = None
        """Brokers that were removed lately; None: the record was not read yet."""
        self._lock = asyncio.Lock()
        """Held while an execution runs, and while left throttles are removed."""
        self._starting_id = ""
        self._execution: Execution | None = None
        self._ended = asyncio.Event()
        self._last_outcome: ExecutionOutcome | None = None
        self._may_have_left = asyncio.Event()
        """Set: throttles of an ended execution may be left."""
        self._may_have_left.set()

    # ---- running

    async def execute(
        self,
        execution_id: str,
        proposals: Sequence[Proposal],
        options: ExecutionOptions,
        *,
        request: ExecutionRequest = NO_REQUEST,
    ) -> ExecutionOutcome:
        """Move what the proposals say. Raises `ExecutionRefused` before anything is sent."""
        options = check_options(options)
        _check_proposals(proposals)
        if not execution_id:
            raise InvalidInput("an execution needs an id", path="execution_id")
        running_id = self._starting_id if self._execution is None else self._execution.context.plan.execution_id
        if running_id:
            raise ExecutionRefused(_explain_running(running_id))
        self._starting_id = execution_id
        try:
            return await self._execute(execution_id, proposals, options, request)
        finally:
            self._starting_id = ""

    async def _execute(
        self, execution_id: str, proposals: Sequence[Proposal], options: ExecutionOptions, request: ExecutionRequest
    ) -> ExecutionOutcome:
        async with self._lock:
            left = await self._prepare(proposals, options)
            nodes = await self._admin.describe_nodes()
            plan = RecordedPlan(
                execution_id=execution_id,
                cluster_id=nodes.cluster_id,
                proposals=tuple(proposals),
                started_at=self._clock.now().isoformat(),
                request=request,
            )
            state = RecordedState(
                execution_id=execution_id,
                options=options,
                throttled_replicas=left.throttled_replicas,
                rates=left.rates,
                started_bytes=left.started_bytes,
                removed_brokers=left.removed_brokers,
            )
            context = self._build_context(plan, state)
            if options.require_planned_replicas:
                await _check_planned_replicas(context)
            if options.require_in_sync:
                await _check_in_sync(context)
            await self._store.write_plan(plan)
            await self._store.write_state(state)
            return await self._run(context)

    async def resume(self) -> ExecutionOutcome | None:
        """Go on with what an earlier process has not finished. None: there was nothing to finish."""
        async with self._lock:
            record = await self._store.read()
            if record is None or record.plan is None:
                await self._clean(record)
                return None
            return await self._run(await self._restore(record))

    async def find_unfinished(self) -> RecordedPlan | None:
        """The plan of an execution that is recorded and does not run; None: there is none."""
        if self._execution is not None or self._starting_id:
            return None
        record = await self._store.read()
        return None if record is None else record.plan

    async def list_removed_brokers(self) -> list[int]:
        """The brokers that executions have emptied lately."""
        if self._removed is None:
            record = await self._store.read()
            self._removed = {} if record is None else dict(record.state.removed_brokers)
        return sorted(select_recent(self._removed, self._clock.now().timestamp()))

    async def stop(self, *, cancel_foreign: bool = False) -> ExecutionOutcome | None:
        """Cancel what is under way, wait until it is rolled back, and give the outcome.

        Without a running execution, one that an earlier process left is stopped. `cancel_foreign` also cancels
        reassignments of other clients.
        """
        while self._starting_id and self._execution is None:
            await self._clock.sleep(START_S)
        if self._execution is not None:
            context = self._execution.context
            context.is_stopping, context.cancel_foreign = True, context.cancel_foreign or cancel_foreign
            await context.save()
            context.wake()
            await self._ended.wait()
            return self._last_outcome
        async with self._lock:
            record = await self._store.read()
            if record is not None and record.plan is not None:
                context = await self._restore(record)
                context.is_stopping, context.cancel_foreign = True, cancel_foreign
                await context.save()
                return await self._run(context)
            await self._clean(record)
            if cancel_foreign:
                await self._cancel_all()
            return None

    def change_options(self, options: ExecutionOptions) -> None:
        """Change throttle and concurrency of the running execution, from its next check on."""
        options = check_options(options)
        if self._execution is None:
            raise InvalidInput("nothing is executed")
        self._execution.context.options = options
        self._execution.context.wake()

    def get_progress(self) -> ExecutionProgress:
        if self._execution is not None:
            return self._execution.describe_progress()
        if self._starting_id:
            return ExecutionProgress(state=ExecutorState.STARTING_EXECUTION, execution_id=self._starting_id)
        return ExecutionProgress()

    def list_throttled_brokers(self) -> frozenset[int]:
        """The brokers whose rates the running execution has set, and will remove."""
        rates = () if self._execution is None else self._execution.context.throttles.rates
        return frozenset(rate.broker for rate in rates)

    async def clean_up(self) -> bool:
        """Remove throttles that an ended execution left on brokers that were down. True: nothing is left."""
        if self._execution is not None:
            return False
        async with self._lock:
            return await self._clean(await self._store.read())

    async def keep_clean(self) -> None:
        """Clean up whenever there is something left: a service for as long as the process runs."""
        while True:
            await self._may_have_left.wait()
            try:
                await self.clean_up()
            except KafkaUnavailable:
                log.debug("throttles.left")  # the next attempt is near
            except PlimsollError as error:
                log.warning("throttles.left", problem=str(error))
            await self._clock.sleep(CLEAN_UP_S)

    # ---- helpers

    async def _prepare(self, proposals: Sequence[Proposal], options: ExecutionOptions) -> RecordedState:
        """Refuse what may not start. Gives what earlier executions left in the record."""
        record = await self._store.read()
        if record is not None and record.plan is not None:
            raise ExecutionRefused(reasons.explain_unfinished(record.plan.execution_id))
        guard_reason = (await self._read_guard()).reason
        if guard_reason is not None:
            raise ExecutionRefused(guard_reason)
        if not options.is_confirmed and (refusal := find_unconfirmed(proposals, options.max_bytes_unconfirmed)):
            raise ExecutionRefused(refusal)
        return RecordedState() if record is None else record.state

    def _build_context(self, plan: RecordedPlan, state: RecordedState) -> ExecutionContext:
        return ExecutionContext(
            admin=self._admin,
            clock=self._clock,
            store=self._store,
            read_guard=self._read_guard,
            plan=plan,
            state=state,
        )

    async def _restore(self, record: ExecutionRecord) -> ExecutionContext:
        assert record.plan is not None
        recorded = record.plan.cluster_id
        found = (await self._admin.describe_nodes()).cluster_id
        if recorded and found and recorded != found:
            raise RecordUnusable(
                f"the record of execution {record.plan.execution_id} is of cluster {recorded}, and this is {found}"
            )
        return self._build_context(record.plan, record.state)

    async def _run(self, context: ExecutionContext) -> ExecutionOutcome:
        self._execution = execution = Execution(context, self._journal)
        self._ended.clear()
        self._last_outcome = None
        try:
            self._last_outcome = await execution.run()
            return self._last_outcome
        finally:
            self._execution = None
            self._removed = context.removed_brokers
            self._may_have_left.set()
            self._ended.set()

    async def _clean(self, record: ExecutionRecord | None) -> bool:
        self._may_have_left.clear()
        if record is None or record.plan is not None:
            return record is None
        state = record.state
        if not (state.rates or state.throttled_replicas):
            return True
        self._may_have_left.set()
        plan = RecordedPlan(execution_id="", cluster_id="", proposals=(), started_at="")
        context = self._build_context(plan, state)
        nodes = await self._admin.describe_nodes()
        alive = {broker.id for broker in nodes.brokers if not broker.is_fenced}
        await context.throttles.release(NO_THROTTLES, alive)
        if context.describe_state() != state:
            await context.save()
        if context.throttles.is_clear:
            self._may_have_left.clear()
        return context.throttles.is_clear

    async def _cancel_all(self) -> None:
        listed = await self._admin.list_reassignments()
        if listed:
            await self._admin.alter_reassignments(dict.fromkeys(listed))


async def _check_in_sync(context: ExecutionContext) -> None:
    view = await context.observer.observe(())
    behind = list_under_replicated(context, view)
    if behind:
        raise ExecutionRefused(reasons.explain_not_in_sync(behind))


async def _check_planned_replicas(context: ExecutionContext) -> None:
    """Refuse a plan whose partitions are elsewhere now. The answer of a broker may be old, so it must last a while."""
    topics = {proposal.topic for proposal in context.plan.proposals}
    since = context.now_s
    while True:
        view = await context.observer.observe(topics)
        moved = [task.key for task in context.tasks.inter_broker.tasks if _is_moved(task.proposal, view)]
        if not moved:
            return
        if any(key in view.reassignments for key in moved) or context.now_s - since >= METADATA_LAG_S:
            raise ExecutionRefused(reasons.explain_outdated(moved))
        await context.wait()


def _is_moved(proposal: Proposal, view: ClusterView) -> bool:
    """Whether the replicas are, or will be, neither where the plan found them nor where it takes them."""
    key = TopicPartition(proposal.topic, proposal.partition)
    listed, partition = view.reassignments.get(key), view.partitions.get(key)
    if listed is None and partition is None:
        return False  # it was deleted
    replicas = set(listed.target if listed is not None else partition.replicas if partition is not None else ())
    return replicas not in (set(proposal.old_replicas), set(proposal.new_replicas))


def _check_proposals(proposals: Sequence[Proposal]) -> None:
    known = set()
    for number, proposal in enumerate(proposals):
        path = f"proposals[{number}]"
        replicas = proposal.new_replicas
        if not replicas or len(set(replicas)) < len(replicas):
            raise InvalidInput(f"the new replicas are {list(replicas)}: none, or one broker twice", path=path)
        if (proposal.topic, proposal.partition) in known:
            raise InvalidInput(f"{proposal.topic}-{proposal.partition} has two proposals", path=path)
        known.add((proposal.topic, proposal.partition))


def _explain_running(execution_id: str) -> Reason:
    message = f"execution {execution_id} is under way, and one runs at a time"
    return Reason(code="OngoingExecution", message=message, facts={"execution": execution_id})


def find_unconfirmed(proposals: Sequence[Proposal], limit: int | None) -> Reason | None:
    """Why proposals need a confirmation; None: they need none."""
    if limit is None:
        return None
    total = sum(proposal.bytes_to_copy for proposal in proposals)
    unknown = sum(proposal.has_unknown_bytes for proposal in proposals)
    if total <= limit and not unknown:
        return None
    return reasons.explain_unconfirmed(total, limit, unknown)
