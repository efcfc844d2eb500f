"""Sums and decisions of a simulation as rows of text, for the terminal and for pages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from plimsoll.core.formatting import format_money

if TYPE_CHECKING:
    from plimsoll.simulation.tidb.simulator import SimulatedDecision
    from plimsoll.simulation.tidb.summary import Summary

SUMMARY_HEAD: Final = (
    "COMPONENT",
    "INSTANCES",
    "INSTANCE HOURS",
    "CORE HOURS",
    "COST",
    "OUT/IN",
    "ABOVE MAX",
    "UNSERVED",
    "FIXED SIZE",
    "SAVED",
)
DECISION_HEAD: Final = ("TIME", "COMPONENT", "INSTANCES OF", "DECISION", "WHY")


def format_summary(one: Summary) -> tuple[str, ...]:
    fixed = f"{one.fixed.instances} ({one.fixed.core_hours:.1f} core h{_with_cost(one.fixed.cost)})"
    return (
        one.component.value,
        f"{one.fewest_instances} to {one.peak_instances}",
        f"{one.instance_hours:.1f}",
        f"{one.core_hours:.1f}",
        "-" if one.cost is None else format_money(one.cost),
        f"{one.scale_outs}/{one.scale_ins}",
        f"{one.above_max_s / 60:.1f} min",
        f"{one.unserved_core_hours:.2f} core h",
        fixed,
        f"{one.saved_share:.1%}",
    )


def format_decision(one: SimulatedDecision) -> tuple[str, ...]:
    return format_clock(one.at_s), one.component.value, one.kind or "all", one.what, "; ".join(dict.fromkeys(one.why))


def format_clock(seconds: float) -> str:
    """Time since the beginning: hours, minutes, seconds."""
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes // 60:02d}:{minutes % 60:02d}:{rest:02d}"


def _with_cost(cost: float | None) -> str:
    return "" if cost is None else f", {format_money(cost)}"
