"""Literals, operators and their errors: the language without its libraries."""

from __future__ import annotations

import math

import pytest

from tests.objects.cel.expressions import evaluated, failure, refusal


@pytest.mark.parametrize(
    ("source", "value"),
    [
        ("1", 1),
        ("-9223372036854775808", -(2**63)),
        ("0x1F", 31),
        ("-0x10", -16),
        ("18446744073709551615u", 2**64 - 1),
        ("1.5", 1.5),
        (".5", 0.5),
        ("1e3", 1000.0),
        ("-2.5e-1", -0.25),
        ("true", True),
        ("null", None),
        ("'it\\'s'", "it's"),
        ('"a\\tb\\n"', "a\tb\n"),
        (r"'\x41\u00e9\U0001F600\101'", "Aé😀A"),
        (r"r'\n'", "\\n"),
        ('R"\\d"', "\\d"),
        ("'''a\n'b\"c'''", "a\n'b\"c"),
        ('"""x\ny"""', "x\ny"),
        ("b'abc'", b"abc"),
        (r"b'\xff\001é'", b"\xff\x01\xc3\xa9"),
        ("br'\\x'", b"\\x"),
        ("[1, 2, 3,]", [1, 2, 3]),
        ("{'a': 1, 'b': 2,}", {"a": 1, "b": 2}),
        ("1 // the rest is not looked at", 1),
    ],
)
def test_a_literal_stands_for_its_value(source: str, value: object):
    assert evaluated(source) == value


@pytest.mark.parametrize(
    ("source", "value"),
    [
        ("1 + 2 * 3 - 4 / 2 % 2", 7),
        ("(1 + 2) * 3", 9),
        ("-7 / 2", -3),
        ("-7 % 2", -1),
        ("7 % -2", 1),
        ("2 - 3 - 4", -5),
        ("--5", 5),
        ("-(-5)", 5),
        ("!!true", True),
        ("!true", False),
        ("1.0 / 0.0", math.inf),
        ("3u - 1u", 2),
        ("'a' + 'b'", "ab"),
        ("b'a' + b'b'", b"ab"),
        ("[1] + [2]", [1, 2]),
        ("true ? 1 : 2", 1),
        ("false ? 1 : true ? 3 : 2", 3),
        ("1 < 2 && 2 <= 2 && 3 > 2 && 3 >= 3 && 1 != 2", True),
        ("'a' < 'b' && b'a' < b'b' && false < true", True),
        ("1 < 1.5 && 2u > 1 && 1.0 <= 1u", True),
        ("1 in [1, 2] && !(3 in [1, 2])", True),
        ("'a' in {'a': 1}", True),
        ("[[1], [2]][1][0]", 2),
        ("{'a': {'b': 3}}.a.b", 3),
        ("{'a': 1}['a']", 1),
        ("{1: 'x'}[1]", "x"),
        ("[1, 2] == [1, 2] && {'a': 1} == {'a': 1}", True),
        ("[1, 2] != [2, 1]", True),
        ("dyn(1) == dyn(1.0) && dyn(1) == dyn(1u)", True),
        ("dyn(1) == dyn(true) || dyn('1') == dyn(1)", False),
        ("{1: 1.0} == {dyn(1u): dyn(1)}", True),
        ("null == null", True),
    ],
)
def test_operators(source: str, value: object):
    assert evaluated(source) == value


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("9223372036854775807 + 1", "integer overflow"),
        ("-9223372036854775808 - 1", "integer overflow"),
        ("9223372036854775807 * 2", "integer overflow"),
        ("-(-9223372036854775808)", "integer overflow"),
        ("-9223372036854775808 / -1", "integer overflow"),
        ("0u - 1u", "unsigned integer overflow"),
        ("1 / 0", "divide by zero"),
        ("1 % 0", "modulus by zero"),
        ("[1][1]", "index out of bounds: 1"),
        ("[1][-1]", "index out of bounds: -1"),
        ("{'a': 1}['b']", "no such key: b"),
        ("{'a': 1}.b", "no such key: b"),
        ("dyn(1) + dyn('a')", "no such overload: _+_"),
        ("dyn('a').b", "no such overload"),
        ("dyn(1) ? 1 : 2", "no such overload"),
        ("dyn(null).startsWith('a')", "no such overload: startsWith"),
        ("{dyn('a'): 1, dyn('a'): 2}", "Failed with repeated key: a"),
    ],
)
def test_what_goes_wrong_while_evaluating_is_reported_in_cels_words(source: str, message: str):
    assert failure(source) == message


@pytest.mark.parametrize(
    ("source", "value"),
    [
        ("1 / 0 == 1 || true", True),
        ("true || 1 / 0 == 1", True),
        ("1 / 0 == 1 && false", False),
        ("false && 1 / 0 == 1", False),
        ("[0, 1].exists(x, 1 / x == 1)", True),
        ("[0, 2].all(x, 1 / x == 1)", False),
    ],
)
def test_an_error_does_not_matter_where_the_other_operand_decides(source: str, value: object):
    assert evaluated(source) is value


@pytest.mark.parametrize("source", ["1 / 0 == 1 || false", "1 / 0 == 1 && true", "[0, 1].all(x, 1 / x == 1)"])
def test_an_error_matters_where_nothing_else_decides(source: str):
    assert failure(source) == "divide by zero"


def test_text_is_counted_in_code_points():
    assert evaluated("size('añ😀')") == 3


@pytest.mark.parametrize(
    ("source", "complaint"),
    [
        ("9223372036854775808", "invalid int literal"),
        ("18446744073709551616u", "invalid uint literal"),
        ("1e999", "invalid double literal"),
        (r"'\ud800'", "invalid unicode code point"),
        ("while", "reserved identifier: while"),
    ],
)
def test_a_literal_without_a_value_is_refused(source: str, complaint: str):
    assert refusal(source).startswith(f"compilation failed: ERROR: <input>:1:1: {complaint}\n")


def test_a_message_literal_names_a_type_that_does_not_exist():
    assert "undeclared reference to 'Foo' (in container '')" in refusal("Foo{a: 1}")
