"""Label sets: the design's examples and the rules of docs/design/nodes.md 5.6."""

from collections.abc import Iterable

from hypothesis import given, settings
from hypothesis import strategies as st

from plimsoll.nodes.model.scale_up_plan import LabelSet
from plimsoll.nodes.planning.autoprovisioning.label_sets import (
    SelectorDemand,
    merge_label_set,
    order_by_popularity,
    satisfies,
)

S1 = {"x": "a", "machine_type": "n1-standard-2"}
S2 = {"y": "b"}
S3 = {"x": "c"}
S4 = {"machine_type": "n1-standard-16"}


def best_label_set(asked: Iterable[SelectorDemand]) -> LabelSet:
    return merge_label_set([demand.selector for demand in order_by_popularity(asked)])


def by_popularity(*selectors: dict[str, str]) -> LabelSet:
    """Of the selectors in falling order of popularity."""
    top = len(selectors)
    return best_label_set(
        SelectorDemand(selector=selector, popularity=top - rank) for rank, selector in enumerate(selectors)
    )


def test_first_example_of_the_design():
    found = by_popularity(S1, S2, S3, S4)
    assert found.labels == {"x": "a", "y": "b", "machine_type": "n1-standard-2"}
    assert found.merged == (S1, S2, S4)
    assert found.served == (S1, S2)


def test_second_example_of_the_design():
    found = by_popularity(S3, S2, S4, S1)
    assert found.labels == {"x": "c", "y": "b", "machine_type": "n1-standard-16"}
    assert found.merged == (S3, S2, S4)
    assert found.served == (S3, S2, S4)


def test_pairs_of_the_design():
    def compatible(one: dict[str, str], other: dict[str, str]) -> bool:
        return len(by_popularity(one, other).merged) == 2

    pairs = [(S1, S2), (S1, S4), (S2, S3), (S2, S4), (S3, S4)]
    assert all(compatible(first, other) and compatible(other, first) for first, other in pairs)
    assert not compatible(S1, S3)


def test_the_first_selector_is_copied_not_written_into():
    first = {"x": "a"}
    by_popularity(first, {"y": "b"})
    assert first == {"x": "a"}


def test_equal_selectors_add_up():
    found = best_label_set(
        [
            SelectorDemand(selector={"x": "a"}, popularity=3),
            SelectorDemand(selector={"x": "b"}, popularity=2),
            SelectorDemand(selector={"x": "b"}, popularity=2),
        ]
    )
    assert found.labels == {"x": "b"}


def test_ties_are_decided_by_what_is_written():
    found = best_label_set(
        [SelectorDemand(selector={"x": "b"}, popularity=1), SelectorDemand(selector={"x": "a"}, popularity=1)]
    )
    assert found.labels == {"x": "a"}


def test_keys_of_the_system_are_not_added_by_merging_but_may_come_first():
    guarded = {"example.kubernetes.io/pool": "a"}
    assert by_popularity({"x": "a"}, guarded).labels == {"x": "a"}
    assert by_popularity(guarded, {"x": "a"}).labels == {**guarded, "x": "a"}
    alias = {"node.kubernetes.io/instance-type": "m"}
    assert by_popularity({"x": "a"}, alias).labels == {"x": "a", **alias}


def test_all_spellings_of_the_machine_type_are_one_key():
    found = by_popularity({"machine_type": "m"}, {"node.kubernetes.io/instance-type": "m", "x": "a"})
    assert found.labels == {"machine_type": "m", "x": "a"}
    assert len(found.served) == 2


SELECTORS = st.dictionaries(st.sampled_from(["x", "y", "z", "machine_type"]), st.sampled_from("ab"), max_size=4)


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(SELECTORS, st.integers(1, 9)), min_size=1, max_size=8))
def test_a_class_is_served_if_and_only_if_the_labels_satisfy_it(asked: list[tuple[dict[str, str], int]]):
    found = best_label_set(SelectorDemand(selector=selector, popularity=count) for selector, count in asked)
    assert found.merged[0] in found.served
    for selector, _ in asked:
        assert (selector in found.served) == satisfies(found.labels, selector)
    reordered = best_label_set(
        SelectorDemand(selector=selector, popularity=count) for selector, count in reversed(asked)
    )
    assert reordered.labels == found.labels
