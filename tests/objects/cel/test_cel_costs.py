"""Estimated costs: the numbers Kubernetes' own tests expect, and that more is never cheaper."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plimsoll.objects.cel import (
    BOOL,
    DOUBLE,
    DURATION,
    DYN,
    INT,
    STRING,
    TIMESTAMP,
    BytesType,
    CelType,
    ListType,
    MapType,
    ObjectType,
    OptionalType,
    StringType,
)
from tests.objects.cel.expressions import cost

# The longest text of a 3 MiB request; a schema's maxLength counts four bytes a character.
FREE = StringType(3 * 1024 * 1024 - 2)
OBJECT = ObjectType("item", {"required": FREE, "optional": FREE})


def text(max_length: int) -> StringType:
    return StringType(4 * max_length)


def replacing(of: StringType) -> ObjectType:
    return ObjectType("self", {"str": of, "before": text(2), "after": text(4)})


def splitting(of: StringType) -> ObjectType:
    return ObjectType("self", {"str": of, "separator": of})


@pytest.mark.parametrize(
    ("rule", "declared", "expected"),
    [
        ("self.all(x, true)", ListType(DOUBLE, 1_572_863), 4_718_591),
        ("self.all(x, true)", ListType(DOUBLE, 10), 32),
        ("self.all(x, true)", ListType(FREE, 20), 62),
        ("self.all(x, true)", MapType(STRING, DOUBLE, 10), 32),
        ("self.all(x, self.all(y, true))", ListType(DOUBLE, 10), 352),
        ("self.all(x, self.all(y, self.all(z, true)))", ListType(DOUBLE, 10), 3552),
        ("self.all(x, x == 0.0)", ListType(DOUBLE, 3 * 1024 * 2048), 25_165_826),
        ("self.all(x, x.contains(self[x]))", MapType(STRING, text(10), 10), 72),
        ('self.all(x, x["y"].required == "z")', ListType(MapType(STRING, OBJECT, 10), 10), 72),
        ("self.all(x, x.y == 25.2)", ListType(MapType(STRING, DOUBLE, 100), 12), 74),
        ("self.contains('test')", FREE, 314_574),
        ("self.contains('test')", text(10), 5),
        ("self.contains('A')", StringType(9), 2),
        ("self.contains('A')", text(1000), 401),
        ("self.startsWith('test')", FREE, 2),
        ("self.endsWith('test')", text(30), 2),
        ('size(self + "hello") > size("hello")', FREE, 314_578),
        ('size(self + "hello") > size("hello")', text(4), 7),
        ('self.matches("x")', FREE, 314_574),
        ('self.matches("x")', text(50), 22),
        ('"".matches("(((((((((())))))))))[0-9]")', FREE, 7),
        ('self.matches("")', FREE, 1),
        ('self == "x"', text(0), 1),
        ('self == "x"', FREE, 2),
        ('self == b"x"', BytesType(0), 1),
        ("self[1] == 0.0", ListType(DOUBLE, 5000), 2),
        ("self[1] == self[1]", ListType(FREE, 8), 314_577),
        ('self["x"] == 0.0', MapType(STRING, DOUBLE, 0), 2),
        ("self[0] == 5", ListType(DYN, 10), 3),
        ("self[0] == false", ListType(BOOL, 25), 2),
        ("self[0] == null", ListType(OBJECT, 422), 2),
        ("self[0][0] == -1.0", ListType(ListType(DOUBLE, 100), 51), 3),
        ("self[0].x > 2.0", ListType(MapType(STRING, DOUBLE, 100), 3000), 4),
        ("self[0].getHours() == 2", ListType(DURATION, 525), 4),
        ("self[2].getDayOfMonth() == 13", ListType(TIMESTAMP, 42), 4),
        ('self["a"] == self["b"]', MapType(STRING, TIMESTAMP, 7), 8),
        ('self["c"] == self["d"]', MapType(STRING, DURATION, 42), 8),
        ("oldSelf.size() == self.size()", MapType(STRING, INT, 10), 5),
        ("self.find('[0-9]+') == ''", FREE, 629_147),
        ("self.find('[0-9]+') == ''", text(10), 11),
        ("self.join(' ') == 'aa bb'", ListType(text(10), 10), 43),
        ("self.isSorted() == true", ListType(text(10), 10), 52),
        ("self.str.replace(self.before, self.after) == 'does not matter'", replacing(FREE), 629_154),
        ("self.str.replace(self.before, self.after) == 'does not matter'", replacing(text(4)), 12),
        ("self.str.split(self.separator) == []", splitting(FREE), 629_160),
        ("self.str.split(self.separator) == []", splitting(text(10)), 22),
        ("self.lowerAscii() == 'lower!'", FREE, 314_575),
        ("self.lowerAscii() == 'lower!'", text(10), 6),
    ],
)
def test_a_rule_costs_what_kubernetes_expects(rule: str, declared: CelType, expected: int):
    assert cost(rule, {"self": declared, "oldSelf": declared}) == expected


def test_the_length_of_a_number_as_text_is_not_known():
    assert cost("'got ' + string(self.size())", {"self": text(50)}) > 100 * 10_000_000


def test_a_size_that_is_not_declared_is_as_large_as_can_be():
    assert cost("self.all(x, true)", {"self": ListType(INT)}) == 2**64 - 1


def test_an_optional_variable_has_the_size_of_its_content():
    declared = {"self": FREE, "oldSelf": OptionalType(FREE)}
    assert cost('oldSelf.hasValue() || self == "new"', declared) == 4


RULES = [
    "self.all(x, x == 'a')",
    "self.map(x, x + x).join(',').size() > 3",
    "self.filter(x, x.matches('^[a-z]+$')) == self",
    "self.exists(x, x in self)",
    "sets.contains(self, self)",
    "self.transformMap(i, x, x.upperAscii()).size() > 1",
]


@settings(max_examples=80, deadline=None)
@given(
    rule=st.sampled_from(RULES),
    items=st.integers(0, 10_000),
    more_items=st.integers(0, 10_000),
    length=st.integers(0, 10_000),
    more_length=st.integers(0, 10_000),
)
def test_larger_limits_never_make_a_rule_cheaper(rule: str, items: int, more_items: int, length: int, more_length: int):
    small = cost(rule, {"self": ListType(StringType(length), items)})
    large = cost(rule, {"self": ListType(StringType(length + more_length), items + more_items)})
    assert 0 < small <= large < 2**64
