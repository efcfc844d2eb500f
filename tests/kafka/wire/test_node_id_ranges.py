"""Annotations with node ids: lists and ranges in either direction, as wide as the numbers go."""

from __future__ import annotations

from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.kafka.model.node_ids import NodeIdRanges
from plimsoll.kafka.wire.names import NEXT_NODE_IDS_ANNOTATION, REMOVE_NODE_IDS_ANNOTATION
from plimsoll.kafka.wire.node_id_ranges import parse_node_id_ranges, read_next_node_ids, read_remove_node_ids

PATH = "kafkanodepool/ns/p"


def parse(text: str) -> NodeIdRanges:
    parsed = parse_node_id_ranges(text)
    assert isinstance(parsed, NodeIdRanges), parsed
    return parsed


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("[0, 5, 10-12, 30-28]", [0, 5, 10, 11, 12, 30, 29, 28]),
        ("  [ 7 ]  ", [7]),
        ("[3 - 1]", [3, 2, 1]),
        ("[4-4]", [4]),
        ("", []),
        ("   ", []),
        ("[]", []),
        ("[  ]", []),
        ("[2147483647]", [2147483647]),
    ],
)
def test_ids_come_in_the_order_of_the_annotation(text: str, ids: list[int]):
    assert list(parse(text).iterate_unused(frozenset())) == ids


@pytest.mark.parametrize(
    "text",
    [
        *("1,2", "[1", "1]", "[1,]", "[,1]", "[1,,2]", "[-1]", "[1--2]", "[a]", "[1-]", "[-]", "[1.5]", "[1 2]", "[٣]"),
        *("[2147483648]", "[0-2147483648]", "[99999999999999999999]", "[[1]]", f"[{','.join(['1'] * 1001)}]"),
    ],
)
def test_what_cannot_be_read_is_ignored_with_a_warning(text: str):
    for read, annotation in (
        (read_next_node_ids, NEXT_NODE_IDS_ANNOTATION),
        (read_remove_node_ids, REMOVE_NODE_IDS_ANNOTATION),
    ):
        ranges, warnings = read({annotation: text}, PATH)
        assert ranges == NodeIdRanges()
        assert [warning.code for warning in warnings] == ["NodeIdRangesInvalid"]
        assert warnings[0].facts["field"] == f"metadata.annotations[{annotation}]"
        assert len(warnings[0].message) < 400


def test_a_range_of_a_milliard_ids_is_not_expanded():
    wide = parse("[5-1000000000, 2000000000-0]")
    assert list(islice(wide.iterate_unused({5, 6}), 3)) == [7, 8, 9]
    assert list(wide.iterate_existing([3, 700, 800_000_000, 2_147_000_000])) == [700, 800_000_000, 3]


def test_an_id_that_two_ranges_name_is_chosen_once():
    assert list(parse("[1-3, 3-1, 2]").iterate_existing([1, 2, 3])) == [1, 2, 3]


@given(
    ranges=st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40)), min_size=1, max_size=5),
    ids=st.frozensets(st.integers(0, 40)),
)
def test_selecting_ids_equals_walking_through_the_ranges(ranges: list[tuple[int, int]], ids: frozenset[int]):
    parsed = parse("[" + ", ".join(f"{first}-{last}" for first, last in ranges) + "]")
    walked = dict.fromkeys(node_id for node_id in parsed.iterate_unused(frozenset()) if node_id in ids)
    assert list(parsed.iterate_existing(ids)) == list(walked)


@given(st.text(alphabet="[]0123456789-, a\n", max_size=30))
def test_no_text_raises(text: str):
    assert isinstance(parse_node_id_ranges(text), NodeIdRanges | str)
