"""`plimsoll simulate`: runs a scenario file in virtual time and prints the outcome."""

from __future__ import annotations

import math
from enum import Enum
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from plimsoll.cli.shared.output import Output, Table, echo_parts, echo_value, read_file
from plimsoll.cli.shared.slow_notice import SlowNotice
from plimsoll.core.errors import InvalidInput, PlimsollError
from plimsoll.core.formatting import format_limit

if TYPE_CHECKING:
    from collections.abc import Iterator

    from plimsoll.simulation.results import ScenarioResult

_PATIENCE_S: Final = 2.0
_PODS_SHOWN: Final = 20


class ScenarioOutput(Enum):
    """Output formats of a scenario. There is no `name`."""

    TABLE = "table"
    JSON = "json"
    YAML = "yaml"


class ExpectationsFailed(PlimsollError):
    """The scenario ran, and something in it was not as expected."""


def simulate(
    filename: Annotated[
        list[str], typer.Option("-f", "--filename", "--scenario", help="Scenario file; - is stdin.", metavar="FILE")
    ],
    output: Annotated[ScenarioOutput, typer.Option("-o", "--output", help="Output format.")] = ScenarioOutput.TABLE,
    timing: Annotated[
        bool, typer.Option("--timing", help="Print the time of each step on stderr; adds planSeconds to loops.")
    ] = False,
    verbose: Annotated[
        bool, typer.Option("-v", "--verbose", help="Also log problems of the components on stderr.")
    ] = False,
) -> None:
    """
    Run a scenario in virtual time: a simulated cluster and cloud in this process, deterministic, hours in seconds.

    Exit code 0: every expectation held. 1: one did not (its path, the expected and the actual value are on stderr).
    2: the file cannot be used. docs/scenarios.md describes the format.

    \b
    Examples:
      plimsoll simulate -f examples/scenarios/first-steps.yaml
      plimsoll simulate -f scenario.yaml -o json
      plimsoll simulate -f scenario.yaml -o json --timing
    """
    from plimsoll.cli.shared.logs import log_errors_to_stderr, log_to_stderr
    from plimsoll.simulation.files.scenario_reader import read_scenario
    from plimsoll.simulation.runner import run_scenario

    if verbose:
        log_to_stderr()
    else:
        log_errors_to_stderr()
    # With JSON output errors are JSON too, so nothing else is written to stderr.
    patience_s = _PATIENCE_S if output is ScenarioOutput.TABLE else math.inf
    if len(filename) > 1:
        raise InvalidInput(f"a scenario is one file, got {len(filename)}: {', '.join(filename)}", path="-f")
    source = filename[0]
    stopwatch = _Stopwatch(source, prints_steps=timing, patience_s=patience_s)
    scenario = read_scenario(read_file(source), source=source)
    with SlowNotice(f"simulating {source}", is_silent=timing or patience_s == math.inf):
        result = run_scenario(scenario, is_timed=timing, on_step=stopwatch.begin)
    stopwatch.end()
    for warning in result.warnings:
        typer.echo(f"warning: {warning}", err=True)
    if output is ScenarioOutput.TABLE:
        echo_parts(_format_result(result))
    else:
        echo_value(result.outcome, Output(output.value))
    if result.failed:
        failures = "\n".join(f"  {failed_expectation}" for failed_expectation in result.failed)
        raise ExpectationsFailed(f"{len(result.failed)} of {result.expectations} expectations failed:\n{failures}")


class _Stopwatch:
    """Real seconds on stderr: of every step with `--timing`, otherwise only of slow ones."""

    def __init__(self, title: str, *, prints_steps: bool, patience_s: float) -> None:
        import time

        self._now_s = time.monotonic
        self._title = title
        self._prints_steps = prints_steps
        self._patience_s = patience_s
        self._began_s = self._step_began_s = self._now_s()
        self._step = ""

    def begin(self, step: str) -> None:
        self._print_step()
        self._step, self._step_began_s = step, self._now_s()
        if not self._prints_steps and self._now_s() - self._began_s > self._patience_s:
            typer.echo(f"{self._title}: {step}", err=True)

    def end(self) -> None:
        self._print_step()
        if self._prints_steps:
            typer.echo(f"{self._now_s() - self._began_s:9.3f} s in total", err=True)

    def _print_step(self) -> None:
        if self._prints_steps and self._step:
            typer.echo(f"{self._now_s() - self._step_began_s:9.3f} s {self._step}", err=True)


def _format_result(result: ScenarioResult) -> Iterator[str | Table]:
    """A summary for people; `-o json` has everything."""
    outcome: dict[str, Any] = result.outcome
    if "fleet" in outcome:
        yield from _format_fleet(outcome)
    else:
        yield from _format_cluster(outcome)
    held = result.expectations - len(result.failed)
    yield f"{held} of {result.expectations} expectations held"


def _format_fleet(outcome: dict[str, Any]) -> Iterator[str | Table]:
    fleet = outcome["fleet"]
    yield Table(
        ("CLUSTER", "REGION", "STATUS", "INSTANCE TYPES", "UNITS"),
        [
            (
                row["cluster"] or "-",
                f"{row['cloudProvider']} {row['region']}",
                row["status"],
                row["instanceTypes"],
                ", ".join(
                    f"{name} {info['maxUnits'] - info['remainingUnits']}/{info['maxUnits']}"
                    for name, info in row["capacity"].items()
                )
                or "-",
            )
            for row in fleet["clusters"]
        ],
    )
    yield Table(
        ("KAFKA", "STATUS", "CLUSTER"),
        [(name, kafka["status"], kafka["cluster"] or "-") for name, kafka in fleet["kafkas"].items()],
    )
    for name, cluster in outcome["clusters"].items():
        yield f"cluster {name}: {len(cluster['nodes'])} nodes, {len(cluster['pods'])} pods"


def _format_cluster(outcome: dict[str, Any]) -> Iterator[str | Table]:
    yield Table(
        ("NODE GROUP", "TARGET", "MIN", "MAX", "MACHINE TYPE"),
        [
            (name, group["target"], group["min"], format_limit(group["max"]), group["machineType"] or "-")
            for name, group in outcome["nodeGroups"].items()
        ],
    )
    yield Table(
        ("NODE", "NODE GROUP", "PODS"),
        [(name, node["group"] or "-", len(node["pods"])) for name, node in outcome["nodes"].items()],
    )
    pending = [name for name, node in outcome["pods"].items() if node is None]
    yield f"{len(outcome['pods'])} pods, {len(pending)} of them without a node"
    for name in pending[:_PODS_SHOWN]:
        yield f"  {name}"
    if len(pending) > _PODS_SHOWN:
        yield f"  and {len(pending) - _PODS_SHOWN} more"
    yield ""
    yield Table(
        ("CALLED AT", "NODE GROUP", "CALL", "ARG", "ANSWER"),
        [
            (
                call["time"],
                call["group"],
                call["call"],
                call["arg"] or "",
                "ok" if call["ok"] else call.get("message", ""),
            )
            for call in outcome["providerCalls"]
        ],
    )
