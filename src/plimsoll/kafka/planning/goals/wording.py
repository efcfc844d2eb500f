"""Sentences about goals that are violated or do not apply."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from plimsoll.core.formatting import choose_form, format_bytes, format_count
from plimsoll.core.plans import Reason
from plimsoll.kafka.planning.loads import Metric

if TYPE_CHECKING:
    from plimsoll.kafka.planning.placement import Limits, Placement

_NAMED_AT_MOST: Final = 5
_NOUNS: Final = {
    Metric.REPLICAS: "replicas",
    Metric.DISK: "bytes on disk",
    Metric.NW_IN: "inbound traffic",
    Metric.NW_OUT: "outbound traffic",
    Metric.CPU: "processor use",
    Metric.POTENTIAL_NW_OUT: "potential outbound traffic",
    Metric.LEADERS: "leaders",
    Metric.LEADER_NW_IN: "inbound traffic of leaders",
}


def format_value(metric: Metric, value: float) -> str:
    """A value with its unit."""
    if metric is Metric.REPLICAS:
        return format_count(round(value), "replica")
    if metric is Metric.LEADERS:
        return format_count(round(value), "leader")
    if metric is Metric.CPU:
        return f"{value:.1f} %"
    return format_bytes(value) if metric is Metric.DISK else f"{format_bytes(value)}/s"


def describe_outside(placement: Placement, limits: Limits) -> Reason | None:
    """Which brokers are outside their limits; None: none is."""
    excess = limits.measure_excess(placement.load)
    outside = np.flatnonzero(excess)
    if not len(outside):
        return None
    worst = limits.find_worst(placement.load)
    value = float(placement.load[limits.metric, worst])
    broker = int(placement.model.broker_ids[worst])
    low, high = float(limits.low[worst]), float(limits.high[worst])
    bound = high if excess[worst] > 0 else low
    word = "at most" if excess[worst] > 0 else "at least"
    judged = int((np.isfinite(limits.high) | np.isfinite(limits.low)).sum())
    facts = {
        "brokers": placement.model.broker_ids[outside[:_NAMED_AT_MOST]].tolist(),
        "outside": len(outside),
        "judged": judged,
        "broker": broker,
        "value": value,
        "low": low if np.isfinite(low) else None,
        "high": high if np.isfinite(high) else None,
    }
    count = f"{len(outside)} of {format_count(judged, 'broker')} {choose_form(len(outside), 'is', 'are')}"
    return Reason(
        code="OutsideLimits",
        message=f"{count} outside: broker {broker} has {format_value(limits.metric, value)}, "
        f"{word} {format_value(limits.metric, bound)} is the limit",
        facts=facts,
    )


def find_full_rack(placement: Placement, limits: Limits) -> Reason | None:
    """A rack that must hold a replica of every partition and has too few brokers for them."""
    model, is_above = placement.model, limits.measure_excess(placement.load) > 0
    factors = np.diff(model.offsets)
    racks = placement.racks_left
    needed = int((factors >= len(racks)).sum())
    for rack in racks.tolist():
        members = np.flatnonzero((model.rack_of == rack) & placement.scope.is_balanced)
        if len(members) and is_above[members].all() and needed:
            name = model.rack_names[rack]
            return Reason(
                code="RackIsFull",
                message=f"rack {name} has {format_count(len(members), 'broker')} and needs a replica of each of "
                f"{format_count(needed, 'partition')}",
                facts={"rack": name, "brokers": len(members), "partitions": needed},
            )
    return None


def describe_rack_part(placement: Placement, broker: int) -> Reason:
    """The rack of a broker that has as much as its rack's part of the replicas allows."""
    model = placement.model
    rack = int(model.rack_of[broker])
    name, brokers = model.rack_names[rack], int((placement.scope.is_balanced & (model.rack_of == rack)).sum())
    most = format_count(int(-(-np.diff(model.offsets).max(initial=0) // max(len(placement.racks_left), 1))), "replica")
    return Reason(
        code="RackHasItsPart",
        message=f"rack {name} has {format_count(brokers, 'broker')} and at most {most} of each of "
        f"{format_count(model.partition_count, 'partition')}",
        facts={"rack": name, "brokers": brokers, "partitions": model.partition_count},
    )


def describe_no_rates(metric: Metric, *, has_rates: bool) -> Reason:
    """Why a goal over rates says nothing."""
    if metric is Metric.CPU and has_rates:
        return Reason(code="NoProcessorUse", message="the processor use of brokers is not known")
    return Reason(code="NoRates", message=f"no rates are known, so {_NOUNS[metric]} cannot be judged")


def describe_no_capacity(metric: Metric) -> Reason:
    """Why a capacity goal says nothing."""
    return Reason(code="NoCapacity", message=f"no capacity for {_NOUNS[metric]} is configured or reported")
