from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plimsoll.core.errors import InvalidQuantity
from plimsoll.core.resources import ZERO, ResourceVector

NAMES = st.sampled_from(["cpu", "memory", "ephemeral-storage", "pods", "nvidia.com/gpu", "hugepages-2Mi"])
AMOUNTS = st.integers(min_value=-(10**15), max_value=10**15)
VECTORS = st.dictionaries(NAMES, AMOUNTS).map(ResourceVector)
NEEDS = st.dictionaries(NAMES, st.integers(min_value=0, max_value=10**6)).map(ResourceVector)
FEW = settings(max_examples=150, deadline=None)


def test_cpu_is_counted_in_millicores_and_everything_else_in_whole_units():
    vector = ResourceVector.from_quantities({"cpu": "1500m", "memory": "1Ki", "pods": 110, "nvidia.com/gpu": "2"})

    assert dict(vector) == {"cpu": 1500, "memory": 1024, "pods": 110, "nvidia.com/gpu": 2}


def test_broken_units_are_rounded_up():
    assert dict(ResourceVector.from_quantities({"cpu": "100u", "memory": "1500m"})) == {"cpu": 1, "memory": 2}


def test_absent_resources_read_as_zero():
    assert ZERO["cpu"] == 0


def test_zeros_are_not_kept_so_that_equal_amounts_are_equal():
    assert ResourceVector({"cpu": 0, "memory": 5}) == ResourceVector({"memory": 5})
    assert "cpu" not in ResourceVector({"cpu": 0})


def test_order_is_canonical():
    names = ("nvidia.com/gpu", "pods", "memory", "cpu", "amd.com/gpu", "ephemeral-storage")

    ordered = list(ResourceVector(dict.fromkeys(names, 1)))

    assert ordered == ["cpu", "memory", "ephemeral-storage", "pods", "amd.com/gpu", "nvidia.com/gpu"]


def test_a_bad_quantity_names_the_key():
    with pytest.raises(InvalidQuantity) as caught:
        ResourceVector.from_quantities({"cpu": "1", "memory": "1.5Mi5"}, path="spec.containers[0].resources.requests")

    assert caught.value.path == "spec.containers[0].resources.requests[memory]"


def test_a_bad_quantity_without_a_path_names_the_key_alone():
    with pytest.raises(InvalidQuantity) as caught:
        ResourceVector.from_quantities({"cpu": "fast"})

    assert caught.value.path == "cpu"


def test_lacking_lists_every_short_resource_in_order():
    need = ResourceVector({"memory": 10, "cpu": 5, "pods": 1, "nvidia.com/gpu": 1})

    assert need.find_lacking(ResourceVector({"memory": 9, "cpu": 4, "pods": 1})) == ("cpu", "memory", "nvidia.com/gpu")


def test_what_is_not_asked_for_never_lacks_even_where_a_node_is_overbooked():
    assert ResourceVector({"cpu": 1}).fits_within(ResourceVector({"cpu": 1, "memory": -5}))


def test_json_form_is_a_resource_list():
    vector = ResourceVector({"cpu": 1500, "memory": 8 * 1024**3, "hugepages-2Mi": 2**21, "pods": 3})

    assert vector.to_json() == {"cpu": "1500m", "memory": "8Gi", "pods": "3", "hugepages-2Mi": "2Mi"}
    assert str(vector) == "cpu 1500m, memory 8Gi, pods 3, hugepages-2Mi 2Mi"
    assert str(ZERO) == "nothing"


@FEW
@given(VECTORS, VECTORS)
def test_adding_and_taking_away_is_exact(one: ResourceVector, other: ResourceVector):
    assert one + other - other == one


@FEW
@given(VECTORS)
def test_json_form_reads_back(vector: ResourceVector):
    assert ResourceVector.from_quantities(vector.to_json()) == vector


@FEW
@given(VECTORS, st.integers(min_value=0, max_value=20))
def test_scaling_is_repeated_addition(vector: ResourceVector, times: int):
    assert vector.scale_by(times) == sum([vector] * times, start=ZERO)


@FEW
@given(VECTORS, VECTORS)
def test_the_larger_holds_both_and_nothing_more(one: ResourceVector, other: ResourceVector):
    larger = one.take_larger(other)

    assert all(larger[name] == max(one[name], other[name]) for name in {*one, *other})


@FEW
@given(NEEDS, VECTORS)
def test_a_need_fits_exactly_when_nothing_lacks(need: ResourceVector, free: ResourceVector):
    assert need.fits_within(free) == (need.find_lacking(free) == ())
    assert need.fits_within(free) == all(amount <= free[name] for name, amount in need.items())


@FEW
@given(VECTORS)
def test_equal_vectors_have_equal_hashes(vector: ResourceVector):
    turned_round = ResourceVector(dict(reversed(list(vector.items()))))

    assert turned_round == vector
    assert hash(turned_round) == hash(vector)


def test_amounts_of_several_resources_come_in_the_order_asked_for():
    vector = ResourceVector({"cpu": 1500, "memory": 8})

    assert vector.get_amounts(("memory", "pods", "cpu")) == [8, 0, 1500]
