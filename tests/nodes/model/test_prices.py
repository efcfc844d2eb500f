"""Prices: given, overlaid or estimated, and what planning adds to money (docs/design/nodes.md 8.4)."""

import pytest

from plimsoll.nodes.config.flags import InvalidOptions
from plimsoll.nodes.config.price_overlays import read_overlay
from plimsoll.nodes.model.prices import Overlay, are_prices_known, compute_price, estimate_price
from tests.nodes.planning.builders import amounts, group, machine, snapshot

SIZE = amounts(4, 16)


def test_what_the_provider_says_is_the_price():
    assert compute_price("m", SIZE, given=0.2, exists=True).per_hour == 0.2


def test_an_unknown_price_is_estimated_from_cores_memory_and_accelerators():
    assert estimate_price(amounts(8, 30, gpu=2)) == pytest.approx(0.033174 * 8 + 0.004446 * 30 + 0.7 * 2)
    assert compute_price("m", SIZE, given=None, exists=True).per_hour == estimate_price(SIZE)


def test_the_overlay_replaces_a_price_or_scales_it():
    overlay = read_overlay({"a": 0.5, "b": {"factor": 0.5}, "c": {"price": 2}})
    assert overlay == {"a": Overlay(price=0.5), "b": Overlay(factor=0.5), "c": Overlay(price=2.0)}
    prices = [compute_price(name, SIZE, given=0.2, exists=True, overlay=overlay).per_hour for name in "abcd"]
    assert prices == [0.5, 0.1, 2.0, 0.2]


def test_every_mistake_of_an_overlay_is_reported():
    with pytest.raises(InvalidOptions) as caught:
        read_overlay({"a": -1, "b": {"factor": "x"}, "c": {}, "d": True, "e": {"price": 1, "factor": 2}, "f": 1})
    assert [path for path, _ in caught.value.problems] == [f"price-overlay.{name}" for name in "abcde"]


def test_a_group_that_exists_goes_before_a_new_one_up_to_two_percent():
    there = compute_price("m", SIZE, given=1.0, exists=True).planning
    assert there < compute_price("m", SIZE, given=0.99, exists=False).planning
    assert there > compute_price("m", SIZE, given=0.97, exists=False).planning


def test_for_the_same_money_fewer_nodes_are_better():
    small = compute_price("m", SIZE, given=0.2, exists=True).planning
    large = compute_price("m", amounts(8, 32), given=0.4, exists=True).planning
    assert large < 2 * small


def test_prices_are_known_when_any_group_has_one():
    assert not are_prices_known(snapshot(machine_types=(machine("m", 4, 16),)), {})
    assert are_prices_known(snapshot(groups=(group("g", machine("m", 4, 16, price=0.2)),)), {})
    assert are_prices_known(snapshot(machine_types=(machine("m", 4, 16, price=0.2),)), {})
