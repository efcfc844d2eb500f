"""`plimsoll tidb simulate`: simulates an autoscaler over a load curve."""

from __future__ import annotations

import math
import time
from datetime import UTC, datetime
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from plimsoll.cli.shared.output import Output, Table, echo_parts, echo_value, read_file
from plimsoll.cli.shared.slow_notice import SlowNotice
from plimsoll.core.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from plimsoll.local.tidb.load.curves import LoadCurve
    from plimsoll.objects.api.tidb import TidbCluster, TidbClusterAutoScaler
    from plimsoll.simulation.tidb.closed_loop import SimulationSetup
    from plimsoll.simulation.tidb.outcome import SimulationOutcome
    from plimsoll.simulation.tidb.simulator import SimulationInput

_BEGIN: Final = datetime(2026, 1, 1, tzinfo=UTC)
"""Midnight, so that times in reasons are hours of the curve."""
_PATIENCE_S: Final = 2.0
_PLOT_SUFFIXES: Final = (".png", ".svg", ".html")


class SimulationOutput(Enum):
    """Output formats."""

    TABLE = "table"
    JSON = "json"


def simulate(
    *,
    load: Annotated[str, typer.Option("--load", help="Load over time, as CSV.", metavar="FILE")],
    filename: Annotated[
        str, typer.Option("-f", "--filename", help="File with the TidbClusterAutoScaler.", metavar="FILE")
    ],
    tc: Annotated[str, typer.Option("--tc", help="File with the TidbCluster.", metavar="FILE")],
    nodes: Annotated[
        int | None,
        typer.Option(
            "--nodes", help="Number of nodes, one instance of a component per node. Default: unlimited.", min=0
        ),
    ] = None,
    price: Annotated[
        float | None, typer.Option("--price-per-core-hour", help="Price of a core per hour.", min=0.0)
    ] = None,
    step: Annotated[str, typer.Option("--step", help="Time between two reconciles.", metavar="DURATION")] = "30s",
    start_delay: Annotated[
        str, typer.Option("--start-delay", help="Time until a new instance works.", metavar="DURATION")
    ] = "60s",
    drain_delay: Annotated[
        str, typer.Option("--drain-delay", help="Time until a removed TiKV store is empty.", metavar="DURATION")
    ] = "3m",
    skewed_tidb: Annotated[
        bool,
        typer.Option("--skewed-tidb", help="Also simulate hot TiDB instances, as with long-lived connections."),
    ] = False,
    plot: Annotated[
        str, typer.Option("--plot", help="Write a plot: .png, .svg, or .html with all decisions.", metavar="FILE")
    ] = "",
    output: Annotated[SimulationOutput, typer.Option("-o", "--output", help="Output format.")] = SimulationOutput.TABLE,
) -> None:
    """
    Simulate an autoscaler and its cluster over a load curve: instances, decisions, reasons and cost.

    Planner and decisions are those of the controller. The columns of the curve are seconds, tikv_cores, tidb_cores,
    storage_gib, hot_instances and hot_share (of the work, on that many TiKV stores); all but the first may be omitted.
    The fixed size in the output is a cluster that is always large enough for the peak at max_threshold.

    \b
    Examples:
      plimsoll tidb simulate --load examples/tidb/day.csv -f examples/tidb/tac.yaml --tc examples/tidb/tc.yaml
      plimsoll tidb simulate --load day.csv -f tac.yaml --tc tc.yaml --price-per-core-hour 0.04 --plot day.html
    """
    from plimsoll.simulation.tidb.closed_loop import SimulationSetup
    from plimsoll.simulation.tidb.simulated_sets import Delays
    from plimsoll.simulation.tidb.simulator import SimulationInput

    if plot and Path(plot).suffix not in _PLOT_SUFFIXES:
        raise InvalidInput(f"{plot!r} does not end in one of {', '.join(_PLOT_SUFFIXES)}", path="--plot")
    if price is not None and not math.isfinite(price):
        raise InvalidInput(f"{price} is not a price", path="--price-per-core-hour")
    delays = Delays(
        start_s=_parse_seconds(start_delay, path="--start-delay"),
        drain_s=_parse_seconds(drain_delay, path="--drain-delay"),
    )
    effective, base = _read_autoscaler(filename, tc)
    setting = SimulationSetup(
        effective=effective,
        base=base,
        begin=_BEGIN,
        node_count=nodes,
        delays=delays,
        is_tidb_skewed=skewed_tidb,
    )
    run = SimulationInput(
        setting=setting, curve=_build_curve(load), step_s=_parse_seconds(step, path="--step", least=1.0)
    )
    with SlowNotice(f"simulating {load}", is_silent=output is SimulationOutput.JSON):
        outcomes = _simulate_components(run, price, load=load)
    if plot:
        _write(plot, _draw(plot, outcomes, title=_format_title(setting, load)))
    if output is SimulationOutput.JSON:
        decisions = [decision for outcome in outcomes for decision in outcome.simulated.decisions]
        echo_value({"summaries": [outcome.summary for outcome in outcomes], "decisions": decisions}, Output.JSON)
    else:
        echo_parts(_format_outcomes(outcomes))


# ---- input


def _parse_seconds(written: str, *, path: str, least: float = 0.0) -> float:
    from plimsoll.core.value_parsing import read_duration_s

    seconds = read_duration_s(written)
    if seconds is None or seconds < least:
        raise InvalidInput(f"{written!r} is not a duration such as 30s or 5m", path=path)
    return seconds


def _build_curve(load: str) -> LoadCurve:
    from plimsoll.local.tidb.load.curves import read_curve

    try:
        return read_curve(read_file(load).decode())
    except UnicodeDecodeError as error:
        raise InvalidInput("is not text", path=load) from error
    except InvalidInput as error:
        raise error if error.path == load else error.with_parent(load) from error


def _read_autoscaler(filename: str, tc: str) -> tuple[TidbClusterAutoScaler, TidbCluster]:
    """The effective autoscaler and its cluster; problems are printed as by `validate`."""
    from plimsoll.cli.tidb.files import read_autoscaler, read_cluster_file
    from plimsoll.tidb.planning.api.defaults import apply_defaults
    from plimsoll.tidb.planning.api.validation import find_warnings

    given, world = read_autoscaler(filename), read_cluster_file(tc)
    problems = given.find_problems(world)
    for line in problems:
        typer.echo(line, err=True)
    if problems or given.autoscaler is None:
        raise typer.Exit(1)
    for warning in find_warnings(given.autoscaler):
        typer.echo(f"warning: {warning}", err=True)
    base = world.find_base(given.autoscaler)
    assert base is not None, "problems were asked of it"
    return apply_defaults(given.autoscaler, base), base


# ---- simulation


def _simulate_components(run: SimulationInput, price: float | None, *, load: str) -> list[SimulationOutcome]:
    from plimsoll.simulation.tidb.outcome import SimulationOutcome
    from plimsoll.simulation.tidb.simulator import list_simulated_components, simulate
    from plimsoll.simulation.tidb.summary import read_thresholds, summarise

    components = list_simulated_components(run.setting)
    if not components:
        raise InvalidInput("no component has rules, and external services cannot be simulated", path="-f")
    outcomes = []
    for component in components:
        try:
            simulated = simulate(run, component, on_step=_Patience(component.value).report)
        except InvalidInput as error:
            raise error.with_parent(load) from error
        outcomes.append(
            SimulationOutcome(
                simulated=simulated,
                summary=summarise(simulated, run, price_per_core_hour=price),
                thresholds=read_thresholds(run.setting, component),
            )
        )
    return outcomes


class _Patience:
    """Prints the progress on stderr every two seconds."""

    def __init__(self, title: str) -> None:
        self._title = title
        self._printed_s = time.monotonic()

    def report(self, part: float) -> None:
        now_s = time.monotonic()
        if now_s - self._printed_s >= _PATIENCE_S:
            self._printed_s = now_s
            typer.echo(f"{self._title}: {part:.0%} simulated", err=True)


def _draw(plot: str, outcomes: Sequence[SimulationOutcome], *, title: str) -> bytes:
    try:
        from plimsoll.simulation.tidb.plots import draw_plot
    except ImportError as error:
        raise InvalidInput(f"needs matplotlib ({error}): install plimsoll[plots]", path="--plot") from error
    from plimsoll.simulation.tidb.html_page import build_page

    suffix = Path(plot).suffix
    if suffix == ".html":
        return build_page(title, draw_plot("", outcomes, form="svg"), outcomes)
    return draw_plot(title, outcomes, form="png" if suffix == ".png" else "svg")


def _write(plot: str, data: bytes) -> None:
    try:
        Path(plot).write_bytes(data)
    except OSError as error:
        raise InvalidInput(f"cannot be written: {error.strerror}", path=plot) from error
    typer.echo(f"plot: {plot}", err=True)


def _format_title(setting: SimulationSetup, load: str) -> str:
    metadata = setting.effective.metadata
    place = f"{metadata.namespace}/" if metadata.namespace else ""
    return f"Autoscaler {place}{metadata.name} of cluster {setting.base.metadata.name}, load of {Path(load).name}"


def _format_outcomes(outcomes: Sequence[SimulationOutcome]) -> Iterator[str | Table]:
    from plimsoll.simulation.tidb.tables import DECISION_HEAD, SUMMARY_HEAD, format_decision, format_summary

    yield Table(SUMMARY_HEAD, [format_summary(outcome.summary) for outcome in outcomes])
    decisions = sorted(
        (d for outcome in outcomes for d in outcome.simulated.decisions), key=lambda decision: decision.at_s
    )
    if not decisions:
        yield "No decisions: the cluster stays as it is."
    yield Table(DECISION_HEAD, [format_decision(decision) for decision in decisions])
