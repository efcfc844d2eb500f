"""`plimsoll tour`: a guided story through every level, on a world of its own. Each step is checked."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from plimsoll.cli.shared.logs import log_errors_to_stderr
from plimsoll.cli.shared.output import Output, OutputOption

if TYPE_CHECKING:
    from collections.abc import Sequence

    from plimsoll.app.tour.run import TourSettings
    from plimsoll.app.tour.steps import Step
    from plimsoll.app.tour.story import StepResult

_DEFAULT_SPEED = 10.0
_SHOWN_REASONS = 3


class Fault(StrEnum):
    """What can be broken, to see that the tour notices."""

    NO_KAFKA_OPERATOR = "no-kafka-operator"
    """No cluster has one."""
    ENDLESS_STOCK_OUT = "endless-stock-out"
    """The cloud of the main cluster never sells again."""


def tour(
    *,
    fast: Annotated[bool, typer.Option("--fast", help="In virtual time: seconds instead of minutes.")] = False,
    speed: Annotated[
        float,
        typer.Option("--speed", help="How many times as fast as real time it runs.", min=1.0, max=50.0),
    ] = _DEFAULT_SPEED,
    console_port: Annotated[
        int, typer.Option("--console-port", help="Port of the console; 0: any free one.", min=0, max=65_535)
    ] = 0,
    break_: Annotated[
        Fault | None, typer.Option("--break", help="Break the story, to see that the tour notices.")
    ] = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """
    Play a story on a world of its own: clusters, machines, gangs of pods, TiDB and Kafka, with the reasons.

    Each step does something, waits for what must follow, and names the decisions behind it. Nothing is left behind,
    and no cluster is needed. The console beside it shows the same in a browser.

    Exit code 0: every step happened. 1: one did not; it is named.

    \b
    Examples:
      plimsoll tour
      plimsoll tour --fast
      plimsoll tour --fast -o json
      plimsoll tour --fast --break endless-stock-out
    """
    from plimsoll.app.tour.run import TourSettings
    from plimsoll.core.errors import InvalidInput

    if output not in {Output.TABLE, Output.JSON}:
        raise InvalidInput("the tour is printed as a table or as JSON", path="-o")
    log_errors_to_stderr()
    settings = TourSettings(
        speed=speed,
        console_port=console_port,
        has_kafka_operator=break_ is not Fault.NO_KAFKA_OPERATOR,
        sells_again=break_ is not Fault.ENDLESS_STOCK_OUT,
    )
    printer = _Printer(to_stderr=output is Output.JSON)
    results = _run(settings, printer, fast=fast)
    if output is Output.JSON:
        _echo_json(results)
    else:
        _echo_table(results)
    if not results or results[-1].problem:
        raise typer.Exit(1)


def _run(settings: TourSettings, printer: _Printer, *, fast: bool) -> tuple[StepResult, ...]:
    import asyncio

    from plimsoll.app.tour.accelerated_loop import AcceleratedLoop
    from plimsoll.app.tour.run import run_fast, run_live
    from plimsoll.runtime.signals import run_until_signalled

    if fast:
        return run_fast(settings, printer)
    results: list[StepResult] = []

    async def run() -> None:
        results.extend(await run_live(settings, printer, on_console=printer.show_console))

    with asyncio.Runner(loop_factory=lambda: AcceleratedLoop(settings.speed)) as runner:
        if runner.run(run_until_signalled(run())) is not None:
            typer.echo("stopped", err=True)
    return tuple(results)


class _Printer:
    """Progress as lines of text."""

    def __init__(self, *, to_stderr: bool) -> None:
        self._to_stderr = to_stderr

    def show_console(self, address: str) -> None:
        self._echo(f"Console: {address}")

    def show_step(self, number: int, of: int, step: Step) -> None:
        typer.echo("", err=self._to_stderr)
        self._echo(f"{number}/{of} {step.title}")

    def show_progress(self, seconds: float, text: str) -> None:
        self._echo(f"  {_format_time(seconds)}  {text}")

    def show_end(self, result: StepResult) -> None:
        for evidence in result.evidence[:_SHOWN_REASONS]:
            self._echo(f"   why  {evidence.ref}: {evidence.reason.message}")
        if result.problem:
            self._echo(f"failed  {result.name}: {result.problem}")

    def _echo(self, line: str) -> None:
        from plimsoll.journal.rendering import remove_control_characters

        typer.echo(remove_control_characters(line), err=self._to_stderr)


def _format_time(seconds: float) -> str:
    return f"{int(seconds) // 60:3d}:{int(seconds) % 60:02d}"


def _echo_table(results: Sequence[StepResult]) -> None:
    from plimsoll.cli.shared.output import Table, echo_parts

    head = ("step", "", "time", "added", "removed", "machines", "cost/h", "bound/h", "decisions")
    rows = [
        (
            step.name,
            "failed" if step.problem else "done",
            _format_time(step.seconds).strip(),
            step.added,
            step.removed,
            step.costs.machines,
            f"{step.costs.cost_per_hour:.2f}",
            f"{step.costs.bound_per_hour:.2f}",
            " ".join(f"{evidence.journal[:8]}#{evidence.number}" for evidence in step.evidence),
        )
        for step in results
    ]
    echo_parts(["", Table(head, rows, is_spaced=True), _format_end(results)])


def _format_end(results: Sequence[StepResult]) -> str:
    if not results:
        return "The tour was stopped before its first step ended."
    if results[-1].problem:
        return f"The tour ended at step {results[-1].name}: {results[-1].problem}"
    added, removed = results[-1].costs.added, results[-1].costs.removed
    return (
        f"Every step happened: {added} machines were added and {removed} removed again. Time is that of the story; "
        "cost per hour is that of all machines at the end of a step, the bound what their pods need at least."
    )


def _echo_json(results: Sequence[StepResult]) -> None:
    from plimsoll.cli.shared.output import echo_value

    echo_value({"steps": [_build_document(step) for step in results]}, Output.JSON)


def _build_document(step: StepResult) -> dict[str, object]:
    return {
        "name": step.name,
        "title": step.title,
        "happened": not step.problem,
        **({"problem": step.problem} if step.problem else {}),
        "seconds": round(step.seconds, 3),
        "machinesAdded": step.added,
        "machinesRemoved": step.removed,
        "machines": step.costs.machines,
        "costPerHour": round(step.costs.cost_per_hour, 6),
        "lowerBoundPerHour": round(step.costs.bound_per_hour, 6),
        "decisions": [
            {
                "journal": evidence.journal,
                "entry": evidence.number,
                "at": evidence.at.isoformat(),
                "about": str(evidence.ref),
                "code": evidence.reason.code,
                "reason": evidence.reason.message,
            }
            for evidence in step.evidence
        ],
    }
