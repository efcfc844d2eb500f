"""`plimsoll tidb simulate`: what an autoscaler would do over a curve of load, before it is turned on."""

from __future__ import annotations

import math
import time
from datetime import UTC, datetime
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from plimsoll.cli.shared.output import Output, echo_value, format_table, read_file
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
_PICTURES: Final = (".png", ".svg", ".html")


class SimulationOutput(Enum):
    """Forms of the answer."""

    TABLE = "table"
    JSON = "json"


def simulate(
    *,
    load: Annotated[str, typer.Option("--load", help="The load over time, as CSV.", metavar="FILE")],
    filename: Annotated[str, typer.Option("-f", "--filename", help="The TidbClusterAutoScaler.", metavar="FILE")],
    tc: Annotated[str, typer.Option("--tc", help="The TidbCluster that it scales.", metavar="FILE")],
    nodes: Annotated[
        int | None,
        typer.Option("--nodes", help="Nodes there are, one instance of a component on each; else any.", min=0),
    ] = None,
    price: Annotated[
        float | None, typer.Option("--price-per-core-hour", help="What a core costs in an hour.", min=0.0)
    ] = None,
    step: Annotated[
        str, typer.Option("--step", help="Time between two passes of the controller.", metavar="DURATION")
    ] = "30s",
    start_delay: Annotated[
        str, typer.Option("--start-delay", help="Until a new instance works.", metavar="DURATION")
    ] = "60s",
    drain_delay: Annotated[
        str, typer.Option("--drain-delay", help="Until a TiKV store that leaves is empty.", metavar="DURATION")
    ] = "3m",
    skewed_tidb: Annotated[
        bool,
        typer.Option("--skewed-tidb", help="Hot instances are of TiDB too, as with connections that live long."),
    ] = False,
    plot: Annotated[
        str, typer.Option("--plot", help="Draw it: .png, .svg, or .html with all decisions.", metavar="FILE")
    ] = "",
    output: Annotated[
        SimulationOutput, typer.Option("-o", "--output", help="Form of the answer.")
    ] = SimulationOutput.TABLE,
) -> None:
    """
    Play an autoscaler and its cluster over a curve of load, in no time: how many instances, when, why, at what cost.

    Planner and decisions are those of the controller. The columns of the curve are seconds, tikv_cores, tidb_cores,
    storage_gib, hot_instances and hot_share (of the work, on that many TiKV stores); all but the first may be left out.
    The fixed size in the answer is a cluster that is always as large as the peak needs at max_threshold.

    \b
    Examples:
      plimsoll tidb simulate --load examples/tidb/day.csv -f examples/tidb/tac.yaml --tc examples/tidb/tc.yaml
      plimsoll tidb simulate --load day.csv -f tac.yaml --tc tc.yaml --price-per-core-hour 0.04 --plot day.html
    """
    from plimsoll.simulation.tidb.closed_loop import SimulationSetup
    from plimsoll.simulation.tidb.simulated_sets import Delays
    from plimsoll.simulation.tidb.simulator import SimulationInput

    if plot and Path(plot).suffix not in _PICTURES:
        raise InvalidInput(f"{plot!r} ends in none of {', '.join(_PICTURES)}", path="--plot")
    if price is not None and not math.isfinite(price):
        raise InvalidInput(f"{price} is no price", path="--price-per-core-hour")
    delays = Delays(
        start_s=_seconds(start_delay, path="--start-delay"), drain_s=_seconds(drain_delay, path="--drain-delay")
    )
    effective, base = _given(filename, tc)
    setting = SimulationSetup(
        effective=effective,
        base=base,
        begin=_BEGIN,
        node_count=nodes,
        delays=delays,
        is_tidb_skewed=skewed_tidb,
    )
    run = SimulationInput(setting=setting, curve=_curve(load), step_s=_seconds(step, path="--step", least=1.0))
    outcomes = _simulated(run, price, load=load)
    if plot:
        _write(plot, _drawn(plot, outcomes, title=_title(setting, load)))
    if output is SimulationOutput.JSON:
        decisions = [decision for outcome in outcomes for decision in outcome.simulated.decisions]
        echo_value({"summaries": [outcome.summary for outcome in outcomes], "decisions": decisions}, Output.JSON)
    else:
        for line in _lines(outcomes):
            typer.echo(line)


# ---- what is given


def _seconds(written: str, *, path: str, least: float = 0.0) -> float:
    from plimsoll.core.value_parsing import read_duration_s

    seconds = read_duration_s(written)
    if seconds is None or seconds < least:
        raise InvalidInput(f"{written!r} is no duration like 30s or 5m", path=path)
    return seconds


def _curve(load: str) -> LoadCurve:
    from plimsoll.local.tidb.load.curves import read_curve

    try:
        return read_curve(read_file(load).decode())
    except UnicodeDecodeError as error:
        raise InvalidInput("is not text", path=load) from error
    except InvalidInput as error:
        raise error if error.path == load else error.under(load) from error


def _given(filename: str, tc: str) -> tuple[TidbClusterAutoScaler, TidbCluster]:
    """The effective autoscaler and its cluster; one that is not valid is told as `validate` tells it."""
    from plimsoll.cli.tidb.files import read_autoscaler, read_cluster_file
    from plimsoll.tidb.planning.api.defaults import apply_defaults
    from plimsoll.tidb.planning.api.validation import find_warnings

    given, world = read_autoscaler(filename), read_cluster_file(tc)
    problems = given.problems(world)
    for line in problems:
        typer.echo(line, err=True)
    if problems or given.autoscaler is None:
        raise typer.Exit(1)
    for warning in find_warnings(given.autoscaler):
        typer.echo(f"warning: {warning}", err=True)
    base = world.base_of(given.autoscaler)
    assert base is not None, "problems were asked of it"
    return apply_defaults(given.autoscaler, base), base


# ---- what is done


def _simulated(run: SimulationInput, price: float | None, *, load: str) -> list[SimulationOutcome]:
    from plimsoll.simulation.tidb.outcome import SimulationOutcome
    from plimsoll.simulation.tidb.simulator import components_to_simulate, simulate
    from plimsoll.simulation.tidb.summary import read_thresholds, summarise

    components = components_to_simulate(run.setting)
    if not components:
        raise InvalidInput("no component has rules: what an external service will say cannot be played", path="-f")
    outcomes = []
    for component in components:
        try:
            simulated = simulate(run, component, on_step=_Patience(component.value).told)
        except InvalidInput as error:
            raise error.under(load) from error
        outcomes.append(
            SimulationOutcome(
                simulated=simulated,
                summary=summarise(simulated, run, price_per_core_hour=price),
                thresholds=read_thresholds(run.setting, component),
            )
        )
    return outcomes


class _Patience:
    """Says on stderr how far it is, every two seconds."""

    def __init__(self, title: str) -> None:
        self._title = title
        self._told_s = time.monotonic()

    def told(self, part: float) -> None:
        now_s = time.monotonic()
        if now_s - self._told_s >= _PATIENCE_S:
            self._told_s = now_s
            typer.echo(f"{self._title}: {part:.0%} simulated", err=True)


def _drawn(plot: str, outcomes: Sequence[SimulationOutcome], *, title: str) -> bytes:
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
    typer.echo(f"drawn: {plot}", err=True)


def _title(setting: SimulationSetup, load: str) -> str:
    metadata = setting.effective.metadata
    place = f"{metadata.namespace}/" if metadata.namespace else ""
    return f"Autoscaler {place}{metadata.name} of cluster {setting.base.metadata.name}, load of {Path(load).name}"


def _lines(outcomes: Sequence[SimulationOutcome]) -> Iterator[str]:
    from plimsoll.simulation.tidb.tables import DECISION_HEAD, SUMMARY_HEAD, format_decision, format_summary

    yield from format_table(SUMMARY_HEAD, [format_summary(outcome.summary) for outcome in outcomes])
    decisions = sorted(
        (d for outcome in outcomes for d in outcome.simulated.decisions), key=lambda decision: decision.at_s
    )
    if not decisions:
        yield "Nothing is decided: the cluster stays as it is."
    yield from format_table(DECISION_HEAD, [format_decision(decision) for decision in decisions])
