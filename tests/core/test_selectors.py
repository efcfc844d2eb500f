"""matchLabels and matchExpressions, compared with the plainest possible reading of the rules."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plimsoll.core.errors import InvalidSelector
from plimsoll.core.label_selector_parsing import parse_label_selector
from plimsoll.core.selectors import (
    EVERYTHING,
    NOTHING,
    LabelSelector,
    Operator,
    Requirement,
    build_requirement,
    parse_decimal_int64,
    parse_requirement,
)

# Few keys and values, so that requirements meet on the same key.
KEYS = st.sampled_from(["a", "x.io/b"])
VALUES = st.sampled_from(["", "1", "2", "10", "v", "w"])
# Real labels cannot be negative numbers, but hostile objects may hold anything.
LABELS = st.dictionaries(KEYS, VALUES | st.just("-3"), max_size=4)
MANY_VALUES = st.frozensets(VALUES, min_size=1, max_size=3)
ORDERED = st.sampled_from([Operator.GREATER_THAN, Operator.LESS_THAN])
SINGLE = st.sampled_from([Operator.EQUALS, Operator.DOUBLE_EQUALS, Operator.NOT_EQUALS])
REQUIREMENTS = st.one_of(
    st.builds(build_requirement, KEYS, st.sampled_from([Operator.IN, Operator.NOT_IN]), MANY_VALUES),
    st.builds(build_requirement, KEYS, SINGLE, VALUES.map(lambda value: (value,))),
    st.builds(build_requirement, KEYS, st.sampled_from([Operator.EXISTS, Operator.DOES_NOT_EXIST])),
    st.builds(build_requirement, KEYS, ORDERED, st.sampled_from([("0",), ("2",), ("5",)])),
)
SELECTORS = st.lists(REQUIREMENTS, max_size=4).map(LabelSelector)
FEW = settings(max_examples=500, deadline=None)


def plainly(one: Requirement, labels: dict[str, str]) -> bool:
    """One requirement, read off the documentation."""
    there = one.key in labels
    value = labels.get(one.key, "")
    number = parse_decimal_int64(value)
    bound = parse_decimal_int64(next(iter(one.values), ""))
    return {
        Operator.IN: there and value in one.values,
        Operator.EQUALS: there and value in one.values,
        Operator.DOUBLE_EQUALS: there and value in one.values,
        Operator.NOT_IN: not there or value not in one.values,
        Operator.NOT_EQUALS: not there or value not in one.values,
        Operator.EXISTS: there,
        Operator.DOES_NOT_EXIST: not there,
        Operator.GREATER_THAN: number is not None and bound is not None and number > bound,
        Operator.LESS_THAN: number is not None and bound is not None and number < bound,
    }[one.operator]


@FEW
@given(SELECTORS, LABELS)
def test_a_selector_matches_when_each_requirement_does(selector: LabelSelector, labels: dict[str, str]):
    assert selector.matches(labels) == all(plainly(requirement, labels) for requirement in selector)


@FEW
@given(SELECTORS)
def test_canonical_text_reads_back_to_the_same_selector(selector: LabelSelector):
    again = parse_label_selector(str(selector))

    assert again == selector
    assert str(again) == str(selector)


@FEW
@given(SELECTORS, REQUIREMENTS, LABELS)
def test_narrowing_never_selects_more(selector: LabelSelector, more: Requirement, labels: dict[str, str]):
    assert selector.with_requirements(more).matches(labels) == (selector.matches(labels) and more.matches(labels))


@given(LABELS)
def test_empty_selects_everything_and_nothing_selects_nothing(labels: dict[str, str]):
    assert EVERYTHING.matches(labels)
    assert not NOTHING.matches(labels)
    assert not NOTHING.with_requirements(build_requirement("a", Operator.DOES_NOT_EXIST)).matches(labels)


def test_empty_and_nothing_say_what_they_are():
    assert EVERYTHING.is_empty
    assert not NOTHING.is_empty
    assert NOTHING.selects_nothing
    assert NOTHING != EVERYTHING


def test_match_labels_and_expressions_hold_together():
    selector = LabelSelector.from_parts({"app": "web"}, [parse_requirement("tier", "NotIn", ["test"])])

    assert selector.matches({"app": "web"})
    assert not selector.matches({"app": "web", "tier": "test"})
    assert str(selector) == "app=web,tier notin (test)"


def test_exact_gives_the_only_value_left():
    selector = parse_label_selector("a in (x,y),a!=z,b=1,c,a in (x)")

    assert [selector.get_exact_value(key) for key in "abcd"] == ["x", "1", None, None]


@pytest.mark.parametrize(
    ("operator", "values", "complaint"),
    [
        ("In", [], "m.values: Invalid value: []: for 'in', 'notin' operators, values set can't be empty"),
        (
            "Exists",
            ["v"],
            'm.values: Invalid value: ["v"]: values set must be empty for exists and does not exist',
        ),
        ("Near", ["v"], 'm: "Near" is not a valid label selector operator'),
    ],
)
def test_bad_expressions_say_where(operator: str, values: list[str], complaint: str):
    with pytest.raises(InvalidSelector) as caught:
        parse_requirement("k", operator, values, path="m")

    assert str(caught.value) == complaint


def test_several_complaints_are_put_in_brackets():
    with pytest.raises(InvalidSelector) as caught:
        build_requirement("/k", Operator.IN, [], path="m")

    assert str(caught.value) == (
        '[m.key: Invalid value: "/k": prefix part must be non-empty, '
        "m.values: Invalid value: []: for 'in', 'notin' operators, values set can't be empty]"
    )


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("007", 7),
        ("+5", 5),
        ("-5", -5),
        ("", None),
        ("-", None),
        ("1_0", None),
        (" 1", None),
        ("٣", None),
        ("1.0", None),
    ],
)
def test_integers_of_labels(text: str, number: int | None):
    assert parse_decimal_int64(text) == number


def test_integers_beyond_64_bits_do_not_count():
    assert parse_decimal_int64(str(2**63 - 1)) == 2**63 - 1
    assert parse_decimal_int64(str(2**63)) is None
    assert parse_decimal_int64("9" * 100_000) is None


def test_ten_thousand_requirements_are_matched_without_looking_at_each():
    absent = LabelSelector(build_requirement(f"k{number}", Operator.DOES_NOT_EXIST) for number in range(10_000))
    present = LabelSelector(build_requirement(f"k{number}", Operator.EXISTS) for number in range(10_000))

    class Counting(dict[str, str]):
        looked = 0

        def __contains__(self, key: object) -> bool:
            Counting.looked += 1
            return super().__contains__(key)

    labels = Counting(app="web")

    assert absent.matches(labels)
    assert not present.matches(labels)
    assert Counting.looked < 10
