"""Budgets, and input that is meant to hurt: it gets an answer, in bounded time, and never a crash."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plimsoll.objects.cel import (
    BOOL,
    BYTES,
    DURATION,
    DYN,
    INT,
    STRING,
    TIMESTAMP,
    CelBudgetExceeded,
    CelError,
    CelOptional,
    CostBudget,
    ListType,
    MapType,
    ObjectType,
    OptionalType,
    compile_expression,
)
from tests.objects.cel.expressions import evaluated, program, refusal

NUMBERS = {"self": ListType(INT)}


def test_an_evaluation_over_its_budget_is_stopped():
    rule = program("self.all(x, self.all(y, x + y >= 0))", NUMBERS)
    with pytest.raises(CelBudgetExceeded, match="cost limit exceeded"):
        rule.evaluate({"self": list(range(1000))}, budget=CostBudget(per_call=10_000))


def test_the_rules_of_an_object_share_one_budget():
    rule, budget = program("self.all(x, x >= 0)", NUMBERS), CostBudget(per_call=1000, total=1200)
    assert rule.evaluate({"self": list(range(100))}, budget=budget) is True
    assert budget.remaining < 1200
    assert rule.evaluate({"self": list(range(100))}, budget=budget) is True
    with pytest.raises(CelBudgetExceeded):
        rule.evaluate({"self": list(range(100))}, budget=budget)


def test_an_exceeded_budget_is_not_an_error_that_another_operand_absorbs():
    rule = program("self.all(x, x >= 0) || true", NUMBERS)
    with pytest.raises(CelBudgetExceeded):
        rule.evaluate({"self": list(range(1000))}, budget=CostBudget(per_call=100))


@pytest.mark.parametrize(
    "rule",
    [
        "self.all(x, (self + self).size() > 0)",
        "self.all(x, sets.contains(self, self))",
        "self.all(x, self.indexOf(-1) < 0)",
        "self.all(x, self == self)",
        "self.all(x, !(-1 in self))",
        "self.map(x, self.map(y, y)).size() > 0",
    ],
)
def test_what_looks_at_a_whole_list_is_paid_by_its_length(rule: str):
    with pytest.raises(CelBudgetExceeded):
        program(rule, NUMBERS).evaluate({"self": list(range(20_000))}, budget=CostBudget(per_call=100_000))


def test_collecting_a_long_list_is_linear():
    assert evaluated("self.map(x, x + 1).filter(x, x % 2 == 0).size()", NUMBERS, self=list(range(50_000))) == 25_000


@pytest.mark.parametrize(
    "source",
    [
        "(" * 10_000 + "1" + ")" * 10_000,
        "[" * 200 + "]" * 200,
        "{1:" * 200 + "1" + "}" * 200,
        "self" + ".a" * 1000,
        "self" + "[0]" * 1000,
        "1" + " + 1" * 1000,
        "true" + " ? true : true" * 500,
        "f(" * 500 + ")" * 500,
        "self.all(x, " * 100 + "true" + ")" * 100,
        "optional.of(1)" + ".optMap(x, x)" * 200,
    ],
)
def test_nesting_beyond_the_limit_is_refused(source: str):
    assert "ERROR: <input>:-1:0: expression recursion limit exceeded" in refusal(source, {"self": DYN})


def test_an_expression_that_is_too_long_is_refused():
    assert refusal("1" + " " * 100_000) == (
        "compilation failed: ERROR: <input>:-1:0: expression code point size exceeds limit: size: 100001, limit 100000"
    )


def test_a_thousand_alternatives_are_not_deep():
    assert evaluated(" || ".join(f"self == {number}" for number in range(2000)), self=1999) is True


def test_long_chains_within_the_limit_work():
    assert evaluated(" + ".join(["1"] * 240)) == 240
    deep: object = 7
    for _ in range(240):
        deep = {"a": deep}
    assert evaluated("self" + ".a" * 240, self=deep) == 7


def test_repeated_optional_macros_are_checked_and_priced_once_each():
    source = "optional.of(1)" + ".optMap(x, x)" * 50
    assert program(source).estimate_cost() > 2**50
    with pytest.raises(CelBudgetExceeded):
        program(source).evaluate({}, budget=CostBudget(per_call=20_000))


def test_deeply_nested_values_can_be_compared():
    one: object = []
    for _ in range(5000):
        one = [one]
    assert evaluated("self == self", self=one) is True


def test_patterns_that_hang_other_engines_do_not():
    assert evaluated("self.matches('^(a+)+$')", self="a" * 5000 + "!") is False


PIECES = (
    *("self", "old", "x", "a", "1", "2u", "1.5", "'s'", "b'x'", "null", "true", "for", "é", "@", "\\", "'", '"', "\n"),
    *(".", "(", ")", "[", "]", "{", "}", "?", ":", ",", "+", "-", "*", "/", "%", "!", "&&", "||", "==", "<", " in "),
    *(".all(x,", ".map(x,", ".exists(x,", "has(", ".size()", ".?a", "[?", ".optMap(x,", ".transformMap(x,a,", ".a"),
    *("duration(", "timestamp(", "string(", "int(", ".matches(", ".format(", "optional.of(", "quantity(", "type("),
)
DECLARED = {
    "self": ObjectType("self", {"a": INT, "l": ListType(STRING, 10)}),
    "old": OptionalType(STRING),
    "a": DYN,
    "x": MapType(STRING, INT, 5),
}
VALUES = {"self": {"a": 1, "l": ["s"]}, "old": CelOptional.of("s"), "a": {"a": [1, "s", None]}, "x": {"a": 1}}


@settings(max_examples=400, deadline=None)
@given(source=st.lists(st.sampled_from(PIECES), max_size=14).map("".join) | st.text(max_size=30))
def test_no_text_makes_anything_but_cel_errors(source: str):
    with suppress(CelError):
        compiled = compile_expression(source, variables=DECLARED, result=None)
        assert 0 <= compiled.estimate_cost() < 2**64
        compiled.evaluate(VALUES, budget=CostBudget())


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)
TYPED_RULES = [
    "self.a + 1 > 2",
    "self.s.startsWith('a') || self.s.size() > 3 || self.s.matches('a')",
    "self.l.all(x, x.contains('a')) && self.l.isSorted() && self.l == self.l",
    "self.m.exists(k, v, v > 1) || self.m == self.m",
    "self.t.getHours() > 1 || self.d > duration('1s') || self.b == b'a'",
    "self.?s.orValue('').split(',').join('') == ''",
    "self.l + self.l == self.l || self.a in [1] || string(self.a) == '1'",
]


@settings(max_examples=150, deadline=None)
@given(rule=st.sampled_from(TYPED_RULES), fields=st.dictionaries(st.sampled_from("aslmtdb"), JSON))
def test_values_that_break_their_declared_types_make_cel_errors_only(rule: str, fields: dict[str, object]):
    declared = ObjectType(
        "self",
        {
            "a": INT,
            "s": STRING,
            "l": ListType(STRING, kind="set"),
            "m": MapType(STRING, INT),
            "t": TIMESTAMP,
            "d": DURATION,
            "b": BYTES,
        },
    )
    compiled = compile_expression(rule, variables={"self": declared}, result=BOOL)
    with suppress(CelError):
        assert compiled.evaluate({"self": fields}, budget=CostBudget()) in {True, False}
