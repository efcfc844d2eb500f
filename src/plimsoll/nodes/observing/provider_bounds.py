"""Bounds what a provider answers: sizes, prices and options that cannot be true count as not answered. Pure.

A wrong answer about one group must neither stop the loop nor change other groups. A size out of range becomes the
number of its instances, so that the group is neither grown nor shrunk by it; a price becomes unknown; an option becomes
that of the flags.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import msgspec

from plimsoll.core.plans import Ref
from plimsoll.core.value_parsing import HIGHEST_PRICE, LONGEST_S
from plimsoll.nodes.model.results import IgnoredField

if TYPE_CHECKING:
    from plimsoll.nodes.model.snapshot import MachineType
    from plimsoll.nodes.observing.provider_state import NodeGroupState
    from plimsoll.nodes.providers.values import GroupOptions

LARGEST_SIZE: Final = 2**31 - 1
_TIMES: Final = ("unneeded_s", "unready_s", "provision_s", "startup_s")
_SHARES: Final = ("utilization_threshold", "gpu_utilization_threshold")


def bound_group(read: NodeGroupState, defaults: GroupOptions) -> tuple[NodeGroupState, tuple[IgnoredField, ...]]:
    """The group with what can be true, and what was ignored."""
    ref = Ref(kind="nodegroup", name=read.port.id)
    ignored: list[IgnoredField] = []
    if not 0 <= read.target <= LARGEST_SIZE:
        ignored.append(_ignore(ref, "targetSize", read.target))
        read = replace(read, target=len(read.instances))
    if read.price_per_hour is not None and not is_price(read.price_per_hour):
        ignored.append(_ignore(ref, "price", read.price_per_hour))
        read = replace(read, price_per_hour=None)
    limits = {**dict.fromkeys(_TIMES, LONGEST_S), **dict.fromkeys(_SHARES, 1.0)}
    wrong = [name for name, most in limits.items() if not 0 <= getattr(read.options, name) <= most]
    if wrong:
        ignored += [_ignore(ref, name, getattr(read.options, name)) for name in wrong]
        usual = {name: getattr(defaults, name) for name in wrong}
        read = replace(read, options=msgspec.structs.replace(read.options, **usual))
    return read, tuple(ignored)


def bound_machine_type(machine_type: MachineType) -> tuple[MachineType, tuple[IgnoredField, ...]]:
    price = machine_type.price_per_hour
    if price is None or is_price(price):
        return machine_type, ()
    ignored = _ignore(Ref(kind="machinetype", name=machine_type.name), "price", price)
    return replace(machine_type, price_per_hour=None), (ignored,)


def is_price(price: float) -> bool:
    return math.isfinite(price) and 0 <= price <= HIGHEST_PRICE


def _ignore(ref: Ref, field: str, value: float) -> IgnoredField:
    return IgnoredField(ref=ref, field=field, problem=f"{value:g} is out of range")
