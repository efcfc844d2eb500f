"""Macros over one and two variables, has, and optional values."""

from __future__ import annotations

import pytest

from plimsoll.objects.cel import STRING, CelOptional, OptionalType
from tests.objects.cel.expressions import evaluated, failure, refusal


@pytest.mark.parametrize(
    ("source", "value"),
    [
        ("[1, 2].all(x, x > 0)", True),
        ("[1, 2].all(x, x > 1)", False),
        ("[].all(x, x > 1)", True),
        ("[1, 2].exists(x, x == 2)", True),
        ("[].exists(x, true)", False),
        ("[1, 2, 2].exists_one(x, x == 2)", False),
        ("[1, 2].exists_one(x, x == 2)", True),
        ("[1, 2].map(x, x * 2)", [2, 4]),
        ("[1, 2, 3].map(x, x > 1, x * 2)", [4, 6]),
        ("[1, 2, 3].filter(x, x % 2 == 1)", [1, 3]),
        ("{'a': 1, 'b': 2}.all(k, k in ['a', 'b'])", True),
        ("{'a': 1, 'b': 2}.filter(k, k != 'a')", ["b"]),
        ("[[1, 2], [3]].map(x, x.map(y, y + 1))", [[2, 3], [4]]),
        ("[1, 2].map(x, [x].map(x, x + 1)[0] + x)", [3, 5]),
    ],
)
def test_macros_over_one_variable(source: str, value: object):
    assert evaluated(source) == value


@pytest.mark.parametrize(
    ("source", "value"),
    [
        ("[1, 2].all(i, v, i < v)", True),
        ("{'a': 1}.exists(k, v, k == 'a' && v == 1)", True),
        ("{'a': 1, 'b': 1}.existsOne(k, v, v == 1)", False),
        ("{'a': 1, 'b': 2}.exists_one(k, v, v == 1)", True),
        ("[5, 6].transformList(i, v, i * v)", [0, 6]),
        ("[5, 6].transformList(i, v, i > 0, v)", [6]),
        ("{'a': 1}.transformMap(k, v, v + 1)", {"a": 2}),
        ("{'a': 1, 'b': 2}.transformMap(k, v, v > 1, v)", {"b": 2}),
        ("{'a': 'x'}.transformMapEntry(k, v, {v: k})", {"x": "a"}),
        ("['x', 'y'].transformMapEntry(i, v, {v: i})", {"x": 0, "y": 1}),
    ],
)
def test_macros_over_two_variables(source: str, value: object):
    assert evaluated(source) == value


def test_two_entries_with_one_key_cannot_be_made_a_map():
    assert failure("['x', 'x'].transformMapEntry(i, v, {v: i})") == "insert failed: key x already exists"


@pytest.mark.parametrize(
    ("source", "value"),
    [
        ("has(self.a)", True),
        ("has(self.b)", False),
        ("has(self.a.b) && !has(self.a.c)", True),
        ("self.?a.?b.value()", 1),
        ("self.?x.?y.hasValue()", False),
        ("self.?x.orValue('none')", "none"),
        ("self.?x.or(self.?a).hasValue()", True),
        ("self.?a.b.orValue(0)", 1),
        ("self.?x.y.hasValue()", False),
        ("self[?'a'].hasValue() && !self[?'q'].hasValue()", True),
        ("[1, 2][?1].orValue(0) + [1][?5].orValue(10)", 12),
        ("optional.of([1, 2])[0].value()", 1),
        ("optional.of({'k': 1}).k.value()", 1),
        ("optional.none().hasValue()", False),
        ("optional.ofNonZeroValue(0).hasValue()", False),
        ("optional.ofNonZeroValue('x').value()", "x"),
        ("optional.of(2).optMap(v, v * 3).value()", 6),
        ("optional.none().optMap(v, v).hasValue()", False),
        ("optional.of(2).optFlatMap(v, optional.of(v + 1)).value()", 3),
        ("[?optional.of(1), ?optional.none(), 3]", [1, 3]),
        ("{?'a': optional.of(1), ?'b': optional.none()}", {"a": 1}),
        ("optional.of(1) == optional.of(1) && optional.of(1) != optional.none()", True),
    ],
)
def test_presence_and_optional_values(source: str, value: object):
    assert evaluated(source, self={"a": {"b": 1}}) == value


def test_an_empty_optional_has_no_value():
    assert failure("optional.none().value()") == "optional.none() dereference"


def test_an_optional_variable_is_given_as_such():
    declared = {"oldSelf": OptionalType(STRING)}
    assert evaluated("oldSelf.hasValue()", declared, oldSelf=CelOptional.none()) is False
    assert evaluated("oldSelf.value()", declared, oldSelf=CelOptional.of("x")) == "x"


@pytest.mark.parametrize(
    ("source", "complaint"),
    [
        ("has(1)", "1:5: invalid argument to has() macro"),
        ("has(a)", "1:5: invalid argument to has() macro"),
        ("[1].all(1, true)", "1:9: argument must be a simple name"),
        ("[1].map(a.b, 1)", "1:10: argument must be a simple name"),
    ],
)
def test_macro_arguments_of_the_wrong_form_are_refused(source: str, complaint: str):
    assert f"ERROR: <input>:{complaint}\n" in refusal(source)


def test_a_macro_with_too_few_arguments_is_an_undeclared_function():
    assert "undeclared reference to 'all' (in container '')" in refusal("[1].all(x)", {"x": STRING})
