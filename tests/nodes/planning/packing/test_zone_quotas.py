"""Pods shared out over zones under a spread constraint."""

from __future__ import annotations

from itertools import product

from hypothesis import given, settings
from hypothesis import strategies as st

from plimsoll.nodes.planning.packing.zone_quotas import Quotas, Spreading, compute_quotas, shift_to_cheap_domains


def shared(count: int, open_: str, *, skew: int = 1, most: dict[str, int] | None = None, **spreading: object) -> Quotas:
    of = Spreading(max_skew=skew, **{"counts": {}, **spreading})  # type: ignore[arg-type]
    return compute_quotas(count, of, open_domains=list(open_), most=most or {})


def test_pods_are_shared_evenly_over_empty_zones():
    assert shared(7, "abc").pods == {"a": 3, "b": 2, "c": 2}


def test_what_is_there_already_is_levelled_first():
    assert shared(4, "ab", counts={"a": 3, "b": 0}).pods == {"a": 1, "b": 3}


def test_a_zone_that_is_full_holds_the_others_at_its_level_and_the_skew():
    answer = shared(20, "ab", counts={"a": 2, "b": 2, "c": 1})
    assert (answer.pods, answer.left, answer.held_by) == ({"a": 0, "b": 0}, 20, ("c",))
    answer = shared(20, "ab", skew=3, counts={"a": 2, "b": 2, "c": 1})
    assert (answer.pods, answer.left, answer.held_by) == ({"a": 2, "b": 2}, 16, ("c",))


def test_a_zone_with_a_ceiling_stops_the_others_one_above_it():
    answer = shared(20, "abc", most={"b": 2})
    assert (answer.pods, answer.left, answer.held_by) == ({"a": 3, "b": 2, "c": 3}, 12, ("b",))


def test_too_few_domains_leave_each_at_the_skew():
    assert shared(9, "ab", skew=2, min_domains=3).pods == {"a": 2, "b": 2}


def test_pods_that_do_not_count_go_wherever_one_may_go():
    answer = shared(10, "abc", counts={"a": 0, "b": 5, "c": 1}, counts_itself=False)
    assert answer.pods == {"a": 5, "b": 0, "c": 5}


def test_many_pods_are_not_many_turns():
    assert shared(3_000_001, "abc").pods == {"a": 1_000_001, "b": 1_000_000, "c": 1_000_000}


@settings(max_examples=300, deadline=None)
@given(data=st.data())
def test_quotas_equal_placing_pods_one_by_one(data: st.DataObject):
    """The oracle: always the lowest open domain that may take one; the number placed and every level must agree."""
    domains = "abcd"
    counts = data.draw(st.dictionaries(st.sampled_from(domains), st.integers(0, 6)))
    open_ = data.draw(st.lists(st.sampled_from(domains), unique=True, max_size=4))
    most = data.draw(st.dictionaries(st.sampled_from(domains), st.integers(0, 5)))
    skew, least = data.draw(st.integers(1, 3)), data.draw(st.integers(1, 5))
    count = data.draw(st.integers(0, 30))
    answer = shared(count, "".join(open_), skew=skew, most=most, counts=counts, min_domains=least)
    assert sum(answer.pods.values()) + answer.left == count

    level = {name: counts.get(name, 0) for name in open_}
    frozen = [number for name, number in counts.items() if name not in level]
    placed = dict.fromkeys(open_, 0)
    for _ in range(count):
        every = [*level.values(), *frozen]
        minimum = min(every, default=0) if len(every) >= least else 0
        able = [name for name in open_ if placed[name] < most.get(name, count) and level[name] + 1 - minimum <= skew]
        if not able:
            break
        lowest = min(able, key=lambda name: (level[name], open_.index(name)))
        level[lowest] += 1
        placed[lowest] += 1
    assert answer.pods == placed


def cheaper(
    count: int, prices: dict[str, float], *, skew: int, most: dict[str, int] | None = None, **of: object
) -> Quotas:
    spreading = Spreading(max_skew=skew, **{"counts": {}, **of})  # type: ignore[arg-type]
    even = compute_quotas(count, spreading, open_domains=list(prices), most=most or {})
    return shift_to_cheap_domains(even, spreading, prices=prices, most=most or {})


def test_a_skew_of_one_leaves_no_freedom():
    assert cheaper(6, {"a": 3.0, "b": 1.0, "c": 2.0}, skew=1).pods == {"a": 2, "b": 2, "c": 2}


def test_a_larger_skew_sends_pods_where_they_cost_less():
    assert cheaper(6, {"a": 3.0, "b": 1.0, "c": 2.0}, skew=3).pods == {"a": 1, "b": 4, "c": 1}


def test_zones_of_one_price_stay_even():
    assert cheaper(6, dict.fromkeys("abc", 1.0), skew=3).pods == {"a": 2, "b": 2, "c": 2}


def test_a_cheap_zone_takes_no_more_than_it_can():
    assert cheaper(6, {"a": 3.0, "b": 1.0}, skew=6, most={"b": 4}).pods == {"a": 2, "b": 4}


def test_pods_are_not_moved_out_of_zones_without_a_price():
    spreading = Spreading(max_skew=4, counts={})
    even = compute_quotas(6, spreading, open_domains=list("abc"), most={})
    assert shift_to_cheap_domains(even, spreading, prices={"a": 1.0, "b": 2.0}, most={}).pods == {
        "a": 4,
        "b": 0,
        "c": 2,
    }


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_no_legal_shares_are_cheaper(data: st.DataObject):
    """Of all ways to share pods out whose levels lie within the skew of the lowest, it finds one of the cheapest."""
    prices = {name: float(data.draw(st.integers(1, 4))) for name in "abc"[: data.draw(st.integers(2, 3))]}
    counts = data.draw(st.dictionaries(st.sampled_from("abc"), st.integers(0, 3)))
    most = data.draw(st.dictionaries(st.sampled_from("abc"), st.integers(0, 6)))
    skew, count = data.draw(st.integers(1, 4)), data.draw(st.integers(0, 9))
    found = cheaper(count, prices, skew=skew, most=most, counts=counts)
    if found.left:
        return

    def is_legal(given: dict[str, int]) -> bool:
        levels = {name: counts.get(name, 0) + given.get(name, 0) for name in {*counts, *given}}
        lowest = min(levels.values())
        fits = all(pods <= most.get(name, count) for name, pods in given.items())
        return fits and all(levels[name] <= lowest + skew for name, pods in given.items() if pods)

    def cost(given: dict[str, int]) -> float:
        return sum(prices[name] * pods for name, pods in given.items())

    every = (dict(zip(prices, pods, strict=True)) for pods in product(range(count + 1), repeat=len(prices)))
    legal = [quotas for quotas in every if sum(quotas.values()) == count and is_legal(quotas)]
    assert is_legal(dict(found.pods))
    assert cost(dict(found.pods)) == min(map(cost, legal))
