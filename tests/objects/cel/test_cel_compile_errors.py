"""What Kubernetes prints for an expression it refuses, to the letter."""

from __future__ import annotations

import pytest

from plimsoll.objects.cel import BOOL, INT, STRING, CelType, ListType, MapType, ObjectType
from tests.objects.cel.expressions import program, refusal

SELF = {
    "self": ObjectType(
        "self",
        {
            "a": INT,
            "s": STRING,
            "list": ListType(STRING),
            "map": MapType(STRING, INT),
            "o": ObjectType("self.o", {"x": INT}),
        },
    )
}

TERMS = (
    "{'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}"
)


@pytest.mark.parametrize(
    ("source", "place", "problem"),
    [
        ("self.b > 1", "....", "undefined field 'b'"),
        ("self.o.y == 1", "......", "undefined field 'y'"),
        ("has(self.b)", "...", "undefined field 'b'"),
        ("self.namespace == 1", "....", "undefined field 'namespace'"),
        ("x > 1", "", "undeclared reference to 'x' (in container '')"),
        ("foo(1)", "...", "undeclared reference to 'foo' (in container '')"),
        ("self.s.foo()", "..........", "undeclared reference to 'foo' (in container '')"),
        ("self.s > 1", ".......", "found no matching overload for '_>_' applied to '(string, int)'"),
        ("self.s == null", ".......", "found no matching overload for '_==_' applied to '(string, null)'"),
        ("self.a == 1.0", ".......", "found no matching overload for '_==_' applied to '(int, double)'"),
        (
            "self.s.startsWith(1)",
            ".................",
            "found no matching overload for 'startsWith' applied to 'string.(int)'",
        ),
        (
            "self.list == self.map",
            "..........",
            "found no matching overload for '_==_' applied to '(list(string), map(string, int))'",
        ),
        ("!self.a", "", "found no matching overload for '!_' applied to '(int)'"),
        ("self.a && true", ".......", "found no matching overload for '_&&_' applied to '(int, bool)'"),
        ("true ? 1 : 'a'", ".....", "found no matching overload for '_?_:_' applied to '(bool, int, string)'"),
        ("size(self)", "....", "found no matching overload for 'size' applied to '(self)'"),
        ("self.list[0].x == 1", "............", "type 'string' does not support field selection"),
        (
            "self.a.all(x, true)",
            "....",
            "expression of type 'int' cannot be range of a comprehension (must be list, map, or dynamic)",
        ),
        ("self.list.all(x, x)", ".............", "found no matching overload for '_&&_' applied to '(bool, string)'"),
        ("[1, 'a'].size() > 0", "....", "expected type 'int' but found 'string'"),
        ("{'a': 1, 'b': 'c'}.size() > 0", "..............", "expected type 'int' but found 'string'"),
        ("self.a + ", ".........", f"Syntax error: mismatched input '<EOF>' expecting {TERMS}"),
        ("self.a 1", ".......", "Syntax error: extraneous input '1' expecting <EOF>"),
        ("for", "", "reserved identifier: for"),
        ("self.s.matches('[')", "...............", "invalid matches argument"),
    ],
)
def test_one_mistake_is_printed_with_its_place(source: str, place: str, problem: str):
    column = len(place) + 1
    assert refusal(source, SELF, result=BOOL) == (
        f"compilation failed: ERROR: <input>:1:{column}: {problem}\n | {source}\n | {place}^"
    )


def test_all_mistakes_are_printed_in_their_order():
    assert refusal("self.b > self.c", SELF, result=BOOL) == (
        "compilation failed: ERROR: <input>:1:5: undefined field 'b'\n | self.b > self.c\n | ....^\n"
        "ERROR: <input>:1:14: undefined field 'c'\n | self.b > self.c\n | .............^"
    )


def test_places_in_later_lines_are_counted_from_their_line():
    assert refusal("self.a > 1 &&\n\tself.b > 1", SELF, result=BOOL) == (
        "compilation failed: ERROR: <input>:2:6: undefined field 'b'\n |  self.b > 1\n | .....^"
    )


def test_wide_characters_are_pointed_at_with_wide_dots():
    assert refusal("'é' + self.b == ''", SELF, result=BOOL).endswith("\n | .\uff0e........^")


@pytest.mark.parametrize("source", ["self.a", "self.s + 'x'", "dyn(true)"])
def test_a_rule_must_be_true_or_false(source: str):
    assert refusal(source, SELF, result=BOOL) == "cel expression must evaluate to a bool"


def test_a_message_must_be_text():
    assert refusal("self.a", SELF, result=STRING) == "messageExpression must evaluate to a string"


def test_a_message_that_does_not_compile_says_so():
    assert refusal("self.b", SELF, result=STRING).startswith(
        "messageExpression compilation failed: ERROR: <input>:1:5: undefined field 'b'\n"
    )


@pytest.mark.parametrize(
    ("result", "source", "prefix"),
    [
        (BOOL, "self.s.find('[') == ''", "program"),
        (STRING, "self.s.findAll('[')[0]", "messageExpression"),
    ],
)
def test_a_bad_pattern_to_find_is_met_when_the_program_is_made(result: CelType, source: str, prefix: str):
    assert refusal(source, SELF, result=result) == (
        f"{prefix} instantiation failed: error parsing regexp: missing closing ]: `[`"
    )


def test_a_hundred_mistakes_are_enough():
    text = refusal(" || ".join(["self.b"] * 120), SELF, result=BOOL)
    assert text.count("undefined field 'b'") == 100
    assert text.endswith("\n20 more errors were truncated")


def test_a_program_knows_which_variables_it_uses():
    declared = {"self": INT, "oldSelf": INT}
    assert program("self > oldSelf", declared).uses("oldSelf")
    assert not program("[1].all(oldSelf, oldSelf == self)", declared).uses("oldSelf")
    assert not program("self > 1", declared).uses("oldSelf")


def test_a_program_knows_its_source_and_type():
    compiled = program("self.list.map(x, x.size())", SELF)
    assert (compiled.source, str(compiled.result_type)) == ("self.list.map(x, x.size())", "list(int)")
