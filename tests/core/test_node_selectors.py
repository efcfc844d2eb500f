from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plimsoll.core.errors import InvalidSelector
from plimsoll.core.node_selectors import NodeSelector, NodeSelectorTerm, build_field_requirement, build_node_requirement

KEYS = st.sampled_from(["zone", "size", "disk"])
VALUES = st.sampled_from(["a", "b", "1", "2"])
EXPRESSIONS = st.one_of(
    st.builds(build_node_requirement, KEYS, st.sampled_from(["In", "NotIn"]), st.lists(VALUES, min_size=1, max_size=3)),
    st.builds(build_node_requirement, KEYS, st.sampled_from(["Exists", "DoesNotExist"])),
    st.builds(build_node_requirement, KEYS, st.sampled_from(["Gt", "Lt"]), st.sampled_from([["0"], ["1"], ["2"]])),
)
FIELDS = st.builds(
    build_field_requirement,
    st.just("metadata.name"),
    st.sampled_from(["In", "NotIn"]),
    st.sampled_from([["n1"], ["n2"]]),
)
TERMS = st.builds(NodeSelectorTerm, st.lists(EXPRESSIONS, max_size=3), st.lists(FIELDS, max_size=2))


def selector(*terms: dict[str, Any]) -> NodeSelector:
    return NodeSelector(
        NodeSelectorTerm(
            [build_node_requirement(*requirement) for requirement in term.get("expressions", [])],
            [build_field_requirement(*requirement) for requirement in term.get("fields", [])],
        )
        for term in terms
    )


@pytest.mark.parametrize(
    ("expression", "selected"),
    [
        (("zone", "In", ["a", "b"]), True),
        (("zone", "In", ["b"]), False),
        (("zone", "NotIn", ["b"]), True),
        (("none", "NotIn", ["b"]), True),
        (("zone", "Exists"), True),
        (("none", "Exists"), False),
        (("none", "DoesNotExist"), True),
        (("cpus", "Gt", ["7"]), True),
        (("cpus", "Gt", ["8"]), False),
        (("cpus", "Lt", ["9"]), True),
        (("zone", "Gt", ["1"]), False),
        (("none", "Lt", ["1"]), False),
    ],
)
def test_expressions(expression: tuple[Any, ...], selected: bool):
    assert selector({"expressions": [expression]}).matches({"zone": "a", "cpus": "8"}) is selected


def test_terms_are_alternatives_and_conditions_hold_together():
    either = selector(
        {"expressions": [("zone", "In", ["a"]), ("disk", "Exists")]},
        {"fields": [("metadata.name", "In", ["n9"])]},
    )

    assert either.matches({"zone": "a", "disk": "ssd"}, name="n1")
    assert either.matches({}, name="n9")
    assert not either.matches({"zone": "a"}, name="n1")


def test_an_empty_term_matches_nothing():
    assert not selector({}).matches({"zone": "a"}, name="n1")
    assert selector({}, {"expressions": [("zone", "Exists")]}).matches({"zone": "a"})


def test_a_selector_without_terms_matches_nothing():
    assert not selector().matches({"zone": "a"}, name="n1")


def test_named_nodes_are_known_when_every_term_names_some():
    one = {"fields": [("metadata.name", "In", ["n1"])]}
    other = {"fields": [("metadata.name", "In", ["n2"])], "expressions": [("zone", "Exists")]}

    assert selector(one, other).get_named_nodes() == {"n1", "n2"}
    assert selector(one, {"expressions": [("zone", "Exists")]}).get_named_nodes() is None
    assert (
        selector({"fields": [("metadata.name", "In", ["n1"]), ("metadata.name", "In", ["n2"])]}).get_named_nodes()
        == set()
    )


@pytest.mark.parametrize(
    ("expression", "complaint"),
    [
        (
            ("cpus", "Gt", ["many"]),
            "values[0]: Invalid value: \"many\": for 'Gt', 'Lt' operators, the value must be an integer",
        ),
        (("cpus", "Gt", []), "values: Invalid value: []: for 'Gt', 'Lt' operators, exactly one value is required"),
        (("cpus", "Near", ["1"]), '"Near" is not a valid node selector operator'),
    ],
)
def test_bad_expressions(expression: tuple[Any, ...], complaint: str):
    with pytest.raises(InvalidSelector) as caught:
        build_node_requirement(*expression)

    assert str(caught.value) == complaint


def test_fields_take_one_value_and_two_operators():
    with pytest.raises(InvalidSelector, match="values: must have one element"):
        build_field_requirement("metadata.name", "In", ["a", "b"])
    with pytest.raises(InvalidSelector, match="not a valid node field selector operator"):
        build_field_requirement("metadata.name", "Exists")


@settings(max_examples=300, deadline=None)
@given(st.lists(TERMS, max_size=4), st.dictionaries(KEYS, VALUES), st.sampled_from(["n1", "n2", "n3"]))
def test_filing_terms_by_value_changes_no_answer(terms: list[NodeSelectorTerm], labels: dict[str, str], name: str):
    plainly = any(term.matches(labels, {"metadata.name": name}) for term in terms)

    assert NodeSelector(terms).matches(labels, name=name) == plainly


def test_ten_thousand_terms_are_asked_only_where_a_value_is_listed(monkeypatch: pytest.MonkeyPatch):
    many = selector(*({"expressions": [("zone", "In", [f"z{number}"])]} for number in range(10_000)))
    asked = []
    original = NodeSelectorTerm.matches

    def counting(term: NodeSelectorTerm, labels: dict[str, str], fields: dict[str, str]) -> bool:
        asked.append(term)
        return original(term, labels, fields)

    monkeypatch.setattr(NodeSelectorTerm, "matches", counting)

    assert many.matches({"zone": "z9999"})
    assert not many.matches({"zone": "elsewhere"})
    assert len(asked) == 1
