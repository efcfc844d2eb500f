"""The work of `plimsoll kafka rebalance`: plan, confirm, execute with progress, record."""

from __future__ import annotations

import asyncio
import signal
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeVar

import msgspec
import typer

from plimsoll.cli.kafka.executing import open_executor, open_journal
from plimsoll.cli.kafka.options import RECORD_DIRECTORY, add_capacities, connect, open_source
from plimsoll.cli.kafka.tables import (
    build_rebalance_data,
    check_answers,
    describe_progress,
    end_with_refusal,
    list_plan,
)
from plimsoll.cli.shared.output import Output, echo_parts
from plimsoll.core.errors import InvalidInput
from plimsoll.core.plans import Reason
from plimsoll.kafka.executor.errors import ExecutionRefused, RecordUnusable
from plimsoll.kafka.executor.executor import find_unconfirmed
from plimsoll.kafka.executor.journaling import record_dry_run, record_execution
from plimsoll.kafka.executor.reasons import explain_unfinished
from plimsoll.kafka.executor.record_stores import read_record
from plimsoll.kafka.model.cluster import build_model
from plimsoll.kafka.model.executions import ExecutionRequest
from plimsoll.kafka.model.proposals import OptimizationResult, Refusal
from plimsoll.kafka.model.settings import AnalyzerSettings
from plimsoll.kafka.planning.optimizer import optimize
from plimsoll.kafka.reporting.journal_plans import build_plan, build_refused_plan
from plimsoll.runtime.clocks import RealClock
from plimsoll.runtime.entropy import SystemEntropy

if TYPE_CHECKING:
    from collections.abc import Coroutine
    from pathlib import Path

    from plimsoll.cli.kafka.options import SourceOptions
    from plimsoll.journal.sqlite import SqliteJournal
    from plimsoll.kafka.brokers.kafka_python import KafkaPythonAdmin
    from plimsoll.kafka.executor.executor import Executor
    from plimsoll.kafka.model.executions import ExecutionOptions, ExecutionOutcome
    from plimsoll.kafka.model.requests import RebalanceRequest

T = TypeVar("T")

_REPORT_S: Final = 5.0
_REQUEST: Final = ExecutionRequest(reason="plimsoll kafka rebalance")


@dataclass(frozen=True, slots=True, kw_only=True)
class RebalanceRun:
    """A run of the command: where the cluster is, where its record goes, how it prints."""

    bootstrap: str
    source: SourceOptions
    directory: Path
    output: Output

    async def rebalance(
        self, request: RebalanceRequest, options: ExecutionOptions, *, confirms: bool, is_dry_run: bool
    ) -> tuple[OptimizationResult, ExecutionOutcome | None]:
        """Plan and execute; without an outcome there is nothing to move, or it is a dry run."""
        async with (
            open_journal(self.directory) as journal,
            connect(self.bootstrap, self.source.command_config) as admin,
        ):
            if not is_dry_run:
                await self._refuse_unfinished(journal)
            result = await self._plan(admin, request, options, journal)
            if is_dry_run or not result.proposals:
                if result.proposals:
                    await record_dry_run(journal, build_plan(result, at=RealClock().now()))
                    typer.echo("dry run: nothing was moved", err=True)
                return result, None
            plan = build_plan(result, at=RealClock().now())

            async def confirm_and_execute(recorded: ExecutionRequest) -> ExecutionOutcome:
                is_confirmed = options.is_confirmed
                if confirms and _needs_confirmation(result, options):
                    is_confirmed = _confirm()
                confirmed = msgspec.structs.replace(options, is_confirmed=is_confirmed)
                execution_id = SystemEntropy().generate_uid()
                async with open_executor(admin, self.directory / RECORD_DIRECTORY, journal) as executor:
                    executing = executor.execute(execution_id, result.proposals, confirmed, request=recorded)
                    return await self._watch(executor, executing)

            source = msgspec.structs.replace(_REQUEST, removed_brokers=result.emptied_brokers)
            outcome = await record_execution(journal, plan, source, confirm_and_execute)
            return result, outcome

    async def finish_earlier(self, *, stops: bool) -> ExecutionOutcome | None:
        """Stop or resume what an earlier run began; None: there is nothing."""
        async with (
            open_journal(self.directory) as journal,
            connect(self.bootstrap, self.source.command_config) as admin,
            open_executor(admin, self.directory / RECORD_DIRECTORY, journal) as executor,
        ):
            outcome = await self._watch(executor, executor.stop() if stops else executor.resume())
        if outcome is None:
            typer.echo("there is nothing to finish: no execution is recorded", err=True)
        return outcome

    async def _refuse_unfinished(self, journal: SqliteJournal) -> None:
        """Raise if an earlier run is not finished: no plan is computed that cannot be executed."""
        try:
            record = await asyncio.to_thread(read_record, self.directory / RECORD_DIRECTORY)
        except RecordUnusable:  # the execution fails with it, and that is in the journal
            return
        if record is None or record.plan is None:
            return
        reason = explain_unfinished(record.plan.execution_id)
        await journal.append(build_refused_plan(Refusal(reason=reason), at=RealClock().now()))
        raise ExecutionRefused(reason)

    async def _plan(
        self, admin: KafkaPythonAdmin, request: RebalanceRequest, options: ExecutionOptions, journal: SqliteJournal
    ) -> OptimizationResult:
        """The plan, shown to the user. A refusal ends the command."""
        async with open_source(admin, self.source) as source:
            description = add_capacities(await source.describe(), self.source.capacity)
        model = build_model(description)
        check_answers(model, is_dump=False)
        result = await asyncio.to_thread(lambda: optimize(model, request, AnalyzerSettings()))
        if isinstance(result, Refusal):
            await journal.append(build_refused_plan(result, at=RealClock().now()))
            end_with_refusal(result, self.output, build_rebalance_data)
        if self.output is Output.TABLE:
            echo_parts(list_plan(result, throttle=options.replication_throttle or 0), title=f"Plan: {request.mode}")
        return result

    async def _watch(self, executor: Executor, work: Coroutine[Any, Any, T]) -> T:
        """Report progress while it runs. Ctrl-C and SIGTERM stop the execution and wait for the roll-back."""
        running = asyncio.create_task(work)
        watching = asyncio.current_task()
        if watching is not None:
            asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, watching.cancel)
        try:
            while not running.done():
                await asyncio.wait((running,), timeout=_REPORT_S)
                if not running.done() and not self._is_silent:
                    typer.echo(describe_progress(executor.get_progress()), err=True)
        except asyncio.CancelledError:
            typer.echo("stopping: cancelling what is under way", err=True)
            await executor.stop()
        return await running

    @property
    def _is_silent(self) -> bool:
        """Whether a machine reads the output: then there is no progress."""
        return self.output in {Output.JSON, Output.YAML}


def _needs_confirmation(result: OptimizationResult, options: ExecutionOptions) -> bool:
    """Without a limit everything is confirmed, and with one what the executor would refuse."""
    limit = options.max_bytes_unconfirmed
    return limit is None or find_unconfirmed(result.proposals, limit) is not None


def _confirm() -> bool:
    """True, or an error: the user declined, or there is no terminal to ask on."""
    if not _is_terminal():
        raise InvalidInput("nothing is moved without a confirmation; add --yes", path="--yes")
    try:
        is_confirmed = typer.confirm("Move now?", err=True)
    except typer.Abort:
        is_confirmed = False
    if not is_confirmed:
        raise ExecutionRefused(Reason(code="Declined", message="the user declined; nothing was moved"))
    return True


def _is_terminal() -> bool:
    return sys.stdin.isatty()
