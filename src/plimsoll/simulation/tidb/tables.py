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


def format_summary(summary: Summary) -> tuple[str, ...]:
    fixed = f"{summary.fixed.instances} ({summary.fixed.core_hours:.1f} core h{_with_cost(summary.fixed.cost)})"
    return (
        summary.component.value,
        f"{summary.fewest_instances} to {summary.peak_instances}",
        f"{summary.instance_hours:.1f}",
        f"{summary.core_hours:.1f}",
        "-" if summary.cost is None else format_money(summary.cost),
        f"{summary.scale_outs}/{summary.scale_ins}",
        f"{summary.above_max_s / 60:.1f} min",
        f"{summary.unserved_core_hours:.2f} core h",
        fixed,
        f"{summary.saved_share:.1%}",
    )


def format_decision(decision: SimulatedDecision) -> tuple[str, ...]:
    return (
        format_clock(decision.at_s),
        decision.component.value,
        decision.kind or "all",
        decision.what,
        "; ".join(dict.fromkeys(decision.why)),
    )


def format_clock(seconds: float) -> str:
    """Time since the beginning: hours, minutes, seconds."""
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes // 60:02d}:{minutes % 60:02d}:{rest:02d}"


def _with_cost(cost: float | None) -> str:
    return "" if cost is None else f", {format_money(cost)}"
