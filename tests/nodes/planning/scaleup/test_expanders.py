"""Expanders: which group of several is grown (docs/design/nodes.md 6.7)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from plimsoll.core.errors import InvalidInput
from plimsoll.core.resources import CPU, MEMORY, ResourceVector
from plimsoll.nodes.model.scale_up_plan import ScaleUpOption
from plimsoll.nodes.planning.scaleup.balancing import SimilarityRules, split_nodes
from plimsoll.nodes.planning.scaleup.expanders import ExpanderContext, ExpanderOption, choose, compute_price_score
from plimsoll.objects.api.meta import ObjectMeta
from plimsoll.objects.api.nodes import Node

if TYPE_CHECKING:
    from tests.golden.reviewed_sentences import ReviewedSentences

GIB = 1 << 30


def offer(
    group: str, *, cores: int = 4, gib: int = 16, price: float = 0.2, exists: bool = True, **labels: str
) -> ScaleUpOption:
    size = ResourceVector({CPU: cores * 1000, MEMORY: gib * GIB, "pods": 110})
    return ScaleUpOption(
        group=group,
        node=Node(metadata=ObjectMeta(labels=labels)),
        daemons=(),
        free=size,
        capacity=size,
        price_per_hour=price,
        planning_price=price,
        size=0,
        max_size=10,
        room=10,
        exists=exists,
    )


def option(group: str, *, nodes: int, pods: int = 10, **shape: object) -> ExpanderOption:
    requests = ResourceVector({CPU: pods * 1000, MEMORY: pods * GIB})
    return ExpanderOption(scale_up_option=offer(group, **shape), nodes=nodes, pods=pods, requests=requests)  # type: ignore[arg-type]


def chosen(*options: ExpanderOption, chain: str, **around: object) -> str:
    found = choose(options, chain.split(","), ExpanderContext(**around))  # type: ignore[arg-type]
    assert found is not None
    return found.scale_up_option.group


A = option("A", nodes=3, price=0.20)
B = option("B", nodes=1, cores=16, gib=16, price=0.50)


@pytest.mark.parametrize("chain", ["least-waste", "least-nodes", "cost"])
def test_n36_ten_pods_go_to_the_one_big_node(chain: str):
    assert chosen(A, B, chain=chain) == "B"


def test_n36_priorities_come_before_waste():
    assert chosen(A, B, chain="priority,least-waste", priorities={10: ["^A$"], 5: [".*"]}) == "A"


def test_priorities_that_match_no_group_leave_all_in():
    assert chosen(A, B, chain="priority,least-waste", priorities={10: ["^C$"]}) == "B"


def test_a_priority_pattern_is_searched_not_matched_whole():
    assert (
        chosen(option("pool-a", nodes=1), option("spot-b", nodes=1), chain="priority", priorities={1: ["spot"]})
        == "spot-b"
    )


def test_a_pattern_that_is_none_is_named(reviewed: ReviewedSentences):
    with pytest.raises(InvalidInput) as raised:
        chosen(A, B, chain="priority", priorities={1: ["("]})
    reviewed(str(raised.value))


def test_most_pods_wins_whatever_it_takes():
    assert chosen(option("few", nodes=1, pods=3), option("many", nodes=9, pods=30), chain="most-pods") == "many"


def test_a_chain_narrows_down_filter_by_filter():
    options = [option("a", nodes=2, price=0.3), option("b", nodes=2, price=0.2), option("c", nodes=3, price=0.1)]
    assert chosen(*options, chain="least-nodes,cost") == "b"


def test_what_is_tied_is_decided_by_the_seed_alone():
    tied = [option(name, nodes=1) for name in "abcdef"]
    first = chosen(*tied, chain="random")
    assert chosen(*reversed(tied), chain="random") == first
    assert {chosen(*tied, chain="random", seed=str(seed)) for seed in range(40)} == set("abcdef")


def test_nothing_is_chosen_of_nothing():
    assert choose([], ["least-waste"], ExpanderContext()) is None


class TestThePriceExpander:
    def test_a_group_that_does_not_exist_costs_double(self):
        there, not_there = option("a", nodes=1), option("a", nodes=1, exists=False)
        assert compute_price_score(not_there, cluster_nodes=3) == pytest.approx(
            2 * compute_price_score(there, cluster_nodes=3)
        )

    def test_the_formula_of_the_specification(self):
        # 1 node of 4 cores where 2 are preferred: unfit 2, tanh(0) = 0. C 0.2; T 10 x (0.033174 + 0.004446).
        small = 0.033174 * 0.5 + 0.004446 * 500 / 1024
        expected = 2 * (0.2 + small) / (10 * (0.033174 + 0.004446) + small)
        assert compute_price_score(option("a", nodes=1), cluster_nodes=5) == pytest.approx(expected)

    def test_the_taste_for_a_size_fades_with_many_nodes(self):
        big = option("big", nodes=100, cores=64, price=0.2)
        assert compute_price_score(big, cluster_nodes=1) == pytest.approx(
            compute_price_score(big, cluster_nodes=1000), rel=0.001
        )


class TestSimilarGroups:
    def test_groups_that_differ_by_zone_only_are_similar(self):
        one = offer("a", **dict[str, Any]({"topology.kubernetes.io/zone": "a", "team": "x"}))
        other = offer("b", **dict[str, Any]({"topology.kubernetes.io/zone": "b", "team": "x"}))
        assert SimilarityRules().holds(one, other)

    def test_another_label_makes_them_different_unless_it_is_ignored(self):
        one, other = offer("a", team="x"), offer("b", team="y")
        assert not SimilarityRules().holds(one, other)
        assert SimilarityRules(ignored_labels=frozenset({"team"})).holds(one, other)

    def test_memory_may_differ_a_little_cores_may_not(self):
        assert SimilarityRules(memory_ratio=0.1, free_ratio=0.1).holds(offer("a", gib=100), offer("b", gib=95))
        assert not SimilarityRules().holds(offer("a", gib=100), offer("b", gib=95))
        assert not SimilarityRules(free_ratio=1, allocatable_ratio=1).holds(offer("a", cores=4), offer("b", cores=5))

    def test_given_labels_decide_alone(self):
        one, other = offer("a", cores=4, pool="p"), offer("b", cores=64, pool="p")
        assert SimilarityRules(only_labels=("pool",)).holds(one, other)

    def test_nodes_go_to_the_smallest_group_first(self):
        assert split_nodes(5, [1, 3, 0], [10, 10, 10]) == [2, 0, 3]

    def test_a_full_group_gets_no_more(self):
        assert split_nodes(6, [0, 0], [1, 10]) == [1, 5]
        assert split_nodes(9, [0, 0], [1, 2]) == [1, 2]

    def test_many_nodes_are_shared_as_one_by_one(self):
        given = split_nodes(1000, [5, 0, 700], [1000, 1000, 1000])
        assert sum(given) == 1000
        assert abs(5 + given[0] - given[1]) <= 1
        assert given[2] == 0
