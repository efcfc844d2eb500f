"""Answers of a provider that cannot be true count as not answered, and are named."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from plimsoll.core.resources import ResourceVector
from plimsoll.core.value_parsing import HIGHEST_PRICE, LONGEST_S
from plimsoll.nodes.model.instances import InstanceState
from plimsoll.nodes.model.snapshot import MachineType
from plimsoll.nodes.observing.provider_bounds import bound_group, bound_machine_type
from plimsoll.nodes.observing.provider_state import NodeGroupState
from plimsoll.nodes.providers.values import GroupOptions, Instance

if TYPE_CHECKING:
    from tests.golden.reviewed_sentences import ReviewedSentences

DEFAULTS = GroupOptions(
    utilization_threshold=0.5,
    gpu_utilization_threshold=0.5,
    unneeded_s=600,
    unready_s=1200,
    provision_s=900,
    startup_s=900,
)
NO_NUMBERS = (math.nan, math.inf, -math.inf, -1.0, 1e308)


def build_options(value: float, **other: float) -> GroupOptions:
    found: dict[str, Any] = {**dict.fromkeys(DEFAULTS.__struct_fields__[:6], value), **other}
    return GroupOptions(**found)


def read_group(**changed: Any) -> NodeGroupState:
    port = cast("Any", SimpleNamespace(id="g"))
    instances = tuple(Instance(id=f"cloud://{number}", state=InstanceState.RUNNING) for number in range(3))
    found = {"target": 3, "options": DEFAULTS, "price_per_hour": 1.0, **changed}
    return NodeGroupState(port=port, instances=instances, template=None, **found)


@pytest.mark.parametrize("target", [-1, -(2**63), 2**31, 2**63 - 1])
def test_a_size_out_of_range_becomes_the_number_of_instances(target: int, reviewed: ReviewedSentences):
    group, [ignored] = bound_group(read_group(target=target), DEFAULTS)
    assert group.target == 3
    assert (str(ignored.ref), ignored.field) == ("nodegroup/g", "targetSize")
    reviewed(ignored.problem)


@pytest.mark.parametrize("price", NO_NUMBERS)
def test_a_price_out_of_range_is_unknown(price: float):
    group, [ignored] = bound_group(read_group(price_per_hour=price), DEFAULTS)
    assert group.price_per_hour is None
    assert ignored.field == "price"
    sold = MachineType(name="m", capacity=ResourceVector(), allocatable=ResourceVector(), price_per_hour=price)
    machine_type, [ignored] = bound_machine_type(sold)
    assert machine_type.price_per_hour is None
    assert str(ignored.ref) == "machinetype/m"


@pytest.mark.parametrize("value", NO_NUMBERS)
@pytest.mark.parametrize("name", ["unneeded_s", "unready_s", "provision_s", "startup_s", "utilization_threshold"])
def test_an_option_out_of_range_is_that_of_the_flags(name: str, value: float):
    own = build_options(0.25, **{name: value})
    group, [ignored] = bound_group(read_group(options=own), DEFAULTS)
    assert getattr(group.options, name) == getattr(DEFAULTS, name)
    assert group.options.gpu_utilization_threshold == 0.25
    assert ignored.field == name


def test_what_is_in_range_stays_as_it_is():
    own = build_options(0.0)
    longest = build_options(1.0, provision_s=LONGEST_S)
    for group in (
        read_group(),
        read_group(target=0, price_per_hour=HIGHEST_PRICE, options=own),
        read_group(target=2**31 - 1, options=longest, price_per_hour=None),
    ):
        assert bound_group(group, DEFAULTS) == (group, ())
