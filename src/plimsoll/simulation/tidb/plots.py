"""A simulation as a picture: load, usage, instances and cost of each component, below one another.

For `plimsoll tidb simulate --plot`. matplotlib is imported here only, and through its figures alone: no window, no
state that outlives a picture. Everything that differs in colour differs in line or hatching too, so that it can be read
in grey. The same simulation gives the same bytes of SVG.
"""

from __future__ import annotations

from io import BytesIO
from typing import TYPE_CHECKING, Final

import matplotlib as mpl
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator, MultipleLocator

from plimsoll.simulation.tidb.simulated_component import BASE

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Literal

    from matplotlib.axes import Axes

    from plimsoll.simulation.tidb.outcome import SimulationOutcome

_HOUR_S: Final = 3600.0
_NAMES: Final = {"tikv": "TiKV", "tidb": "TiDB"}
# Neighbours differ in lightness, so that they differ in grey as well.
_COLOURS: Final = ("#86a3cf", "#1f3b73", "#e0a030", "#2f7f6c", "#b5507a")
_HATCHES: Final = ("", "///", "...", "xxx", "\\\\\\")
_LOAD: Final = "#8a8a8a"
_LIMIT: Final = "#b03020"
_DISKS: Final = "#c98a10"
_TICKS_H: Final = (0.25, 0.5, 1, 2, 3, 6, 12, 24, 48, 168)
_MOST_TICKS: Final = 9


def draw_plot(title: str, outcomes: Sequence[SimulationOutcome], *, form: Literal["png", "svg"]) -> bytes:
    """Components side by side."""
    with mpl.rc_context({"svg.hashsalt": "plimsoll", "font.size": 9, "axes.titlesize": 10, "hatch.linewidth": 0.6}):
        figure = Figure(figsize=(7.2 * len(outcomes) + 0.8, 10.5), layout="constrained")
        if title:
            figure.suptitle(title, fontsize=12, fontweight="bold")
        rows = figure.subplots(4, len(outcomes), sharex=True, squeeze=False, height_ratios=(3, 2, 2, 2))
        for column, outcome in zip(rows.T.tolist(), outcomes, strict=True):
            for axes, draw in zip(column, (_draw_load, _draw_usage, _draw_instances, _draw_cost), strict=True):
                draw(axes, outcome)
            _finish(column, outcome)
        buffer = BytesIO()
        figure.savefig(buffer, format=form, dpi=110, metadata={"Date": None} if form == "svg" else None)
    return buffer.getvalue()


def _draw_load(axes: Axes, outcome: SimulationOutcome) -> None:
    samples, hours = outcome.simulated.samples, _list_hours(outcome)
    cores = [sample.cores for sample in samples]
    axes.fill_between(
        hours, [sample.requested_cores for sample in samples], color=_LOAD, alpha=0.45, lw=0, label="work"
    )
    axes.plot(hours, cores, color="black", lw=1.6, drawstyle="steps-post", label="cores there are")
    for share, style, label in (
        (outcome.thresholds.cpu_high, "--", "of them max_threshold"),
        (outcome.thresholds.cpu_low, ":", "of them min_threshold"),
    ):
        if share is not None:
            level = [share * core for core in cores]
            axes.plot(
                hours, level, color=_LIMIT, lw=1.0, ls=style, drawstyle="steps-post", label=f"{label} ({share:g})"
            )
    axes.set_ylabel("cores")
    axes.set_title(f"{_NAMES[outcome.simulated.component]}: load", loc="left")
    _draw_legend(axes)


def _draw_usage(axes: Axes, outcome: SimulationOutcome) -> None:
    samples, hours = outcome.simulated.samples, _list_hours(outcome)
    average = [sample.average_usage for sample in samples]
    axes.plot(hours, average, color=_COLOURS[0], lw=3.0, label="average")
    axes.plot(hours, [sample.highest_usage for sample in samples], color="black", lw=1.1, label="busiest instance")
    if any(sample.stored_gib for sample in samples):
        filled = [sample.stored_gib / sample.capacity_gib if sample.capacity_gib else 0.0 for sample in samples]
        axes.plot(hours, filled, color=_DISKS, lw=1.2, ls="-.", label="disks")
    for share, colour, style, label in (
        (outcome.thresholds.cpu_high, _LIMIT, "--", "cpu max_threshold"),
        (outcome.thresholds.cpu_low, _LIMIT, ":", "cpu min_threshold"),
        (outcome.thresholds.storage_high, _DISKS, (0, (1, 1, 4, 1)), "storage max_threshold"),
    ):
        if share is not None:
            axes.axhline(share, color=colour, lw=1.0, ls=style, label=f"{label} ({share:g})")
    axes.set_ylim(0, 1.05)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.0%}"))
    axes.set_ylabel("usage")
    axes.set_title("usage", loc="left")
    _draw_legend(axes)


def _draw_instances(axes: Axes, outcome: SimulationOutcome) -> None:
    samples, hours = outcome.simulated.samples, _list_hours(outcome)
    ground = [0] * len(samples)
    for index, kind in enumerate(outcome.kinds):
        top = [below + sample.sizes.get(kind, 0) for below, sample in zip(ground, samples, strict=True)]
        axes.fill_between(
            hours,
            ground,
            top,
            step="post",
            facecolor=_COLOURS[index % len(_COLOURS)],
            hatch=_HATCHES[index % len(_HATCHES)],
            edgecolor="white",
            lw=0,
            label="the cluster's own" if kind == BASE else f"group {kind}",
        )
        ground = top
    axes.plot(hours, ground, color="black", lw=0.8, drawstyle="steps-post")
    axes.axhline(outcome.summary.fixed.instances, color="black", lw=1.0, ls="--", label="fixed size for the peak")
    axes.set_ylim(0, max([*ground, outcome.summary.fixed.instances]) + 0.6)
    axes.yaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_ylabel("instances")
    axes.set_title("instances, those included that start or leave", loc="left")
    _draw_legend(axes)


def _draw_cost(axes: Axes, outcome: SimulationOutcome) -> None:
    summary, samples, hours = outcome.summary, outcome.simulated.samples, _list_hours(outcome)
    price = summary.cost / summary.core_hours if summary.cost is not None and summary.core_hours else None
    step_h = summary.hours / len(samples) * (1 if price is None else price)
    spent, total = [0.0], 0.0
    for sample in samples[:-1]:
        total += sample.cores * step_h
        spent.append(total)
    fixed = [summary.fixed.cores * step_h * index for index in range(len(samples))]
    axes.fill_between(hours, spent, color=_COLOURS[0], alpha=0.6, lw=0)
    axes.plot(hours, spent, color=_COLOURS[1], lw=1.6, label="with the autoscaler")
    axes.plot(hours, fixed, color="black", lw=1.0, ls="--", label="fixed size for the peak")
    axes.set_ylim(bottom=0)
    axes.set_ylabel("core hours" if price is None else "cost")
    saved = summary.saved_share
    compared = f"{saved:.0%} less than" if saved >= 0 else f"{-saved:.0%} more than"
    what = "core hours so far" if price is None else f"cost so far, at {price:g} per core hour"
    axes.set_title(f"{what}: {compared} the fixed size", loc="left")
    _draw_legend(axes)


def _finish(column: Sequence[Axes], outcome: SimulationOutcome) -> None:
    length = outcome.summary.hours
    tick = next((hours for hours in _TICKS_H if length / hours <= _MOST_TICKS), None)
    for axes in column:
        axes.grid(visible=True, color="#dddddd", lw=0.5)
        axes.set_axisbelow(True)
        axes.set_xlim(0, length)
        axes.spines[["top", "right"]].set_visible(False)
        if tick is not None:
            axes.xaxis.set_major_locator(MultipleLocator(tick))
    column[-1].set_xlabel("hours since the beginning")


def _list_hours(outcome: SimulationOutcome) -> list[float]:
    return [sample.at_s / _HOUR_S for sample in outcome.simulated.samples]


def _draw_legend(axes: Axes) -> None:
    """Beside the drawing, so that it hides nothing."""
    axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0), frameon=False, fontsize=8, borderaxespad=0)
