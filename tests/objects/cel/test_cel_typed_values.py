"""JSON seen through declared types: escaped names, formats, and how lists are compared and joined."""

from __future__ import annotations

import pytest

from plimsoll.objects.cel import (
    BYTES,
    DOUBLE,
    DURATION,
    DYN,
    INT,
    STRING,
    TIMESTAMP,
    CelType,
    ListType,
    MapType,
    ObjectType,
    escape_field,
)
from tests.objects.cel.expressions import evaluated, failure


@pytest.mark.parametrize(
    ("name", "escaped"),
    [
        ("plain", "plain"),
        ("namespace", "__namespace__"),
        ("in", "__in__"),
        ("x-y", "x__dash__y"),
        ("a.b", "a__dot__b"),
        ("a/b", "a__slash__b"),
        ("a__b", "a__underscores__b"),
        ("_a", "_a"),
        ("int", "int"),
        ("with space", None),
        ("1st", None),
        ("", None),
        ("é", None),
    ],
)
def test_a_property_is_spelled_escaped(name: str, escaped: str | None):
    assert escape_field(name) == escaped


@pytest.mark.parametrize("name", ["namespace", "x-y", "a.b", "a/b", "a__b", "plain"])
def test_an_escaped_name_reaches_the_property(name: str):
    declared = {"self": ObjectType("self", {name: INT})}
    assert evaluated(f"has(self.{escape_field(name)}) && self.{escape_field(name)} == 5", declared, self={name: 5})


@pytest.mark.parametrize(
    ("declared", "raw", "rule"),
    [
        (TIMESTAMP, "2024-01-02T03:04:05Z", "self.getDate() == 2"),
        (TIMESTAMP, "2024-01-02", "self.getHours() == 0"),
        (DURATION, "1h", "self == duration('60m')"),
        (BYTES, "aGk=", "self == b'hi'"),
        (DOUBLE, 3, "self == 3.0"),
        (INT, 3.0, "self == 3"),
        (ListType(DOUBLE), [1, 2], "self[0] + self[1] == 3.0"),
        (MapType(STRING, TIMESTAMP), {"a": "2024-01-02T00:00:00Z"}, "self.a.getFullYear() == 2024 && 'a' in self"),
        (ListType(ObjectType("e", {"d": DURATION})), [{"d": "1s"}], "self.all(e, e.d < duration('2s'))"),
        (DYN, {"a": [1, "x"]}, "self.a[0] == 1 && self.a[1] == 'x'"),
    ],
)
def test_json_is_read_as_the_schema_declares_it(declared: CelType, raw: object, rule: str):
    assert evaluated(rule, {"self": declared}, self=raw) is True


def test_text_that_is_no_timestamp_fails_when_it_is_read_and_not_before():
    declared = {"self": ObjectType("self", {"at": TIMESTAMP, "n": INT})}
    assert evaluated("self.n == 1", declared, self={"n": 1, "at": "noon"}) is True
    assert "type conversion error" in failure("self.at == self.at", declared, self={"n": 1, "at": "noon"})


def test_a_field_that_is_null_counts_as_absent():
    declared = {"self": ObjectType("self", {"s": STRING})}
    assert evaluated("has(self.s) || self.?s.hasValue()", declared, self={"s": None}) is False
    assert failure("self.s.startsWith('a')", declared, self={"s": None}) == "no such key: s"


def test_an_element_that_is_null_is_an_error_of_the_rule_not_of_the_program():
    assert failure("self[0].startsWith('a')", {"self": ListType(STRING)}, self=[None]) == "no such overload: startsWith"


def test_an_absent_field_is_named():
    declared = {"self": ObjectType("self", {"s": STRING})}
    assert failure("self.s == 'a'", declared, self={}) == "no such key: s"


SET = ListType(STRING, kind="set")
BY_NAME = ListType(ObjectType("item", {"name": STRING, "v": INT}), kind="map", map_keys=("name",))


def test_a_list_of_type_set_is_compared_without_order():
    assert evaluated("self == oldSelf", {"self": SET, "oldSelf": SET}, self=["a", "b"], oldSelf=["b", "a"]) is True
    assert evaluated("self == oldSelf", {"self": SET, "oldSelf": SET}, self=["a", "b"], oldSelf=["b", "c"]) is False


def test_an_atomic_list_is_compared_in_order():
    plain = ListType(STRING)
    assert evaluated("self == oldSelf", {"self": plain, "oldSelf": plain}, self=["a", "b"], oldSelf=["b", "a"]) is False


def test_a_list_of_type_map_is_compared_by_its_keys():
    first, second = {"name": "a", "v": 1}, {"name": "b", "v": 2}
    declared = {"self": BY_NAME, "oldSelf": BY_NAME}
    assert evaluated("self == oldSelf", declared, self=[first, second], oldSelf=[second, first]) is True
    changed = {"name": "b", "v": 3}
    assert evaluated("self == oldSelf", declared, self=[first, second], oldSelf=[changed, first]) is False


def test_joining_sets_keeps_each_element_once():
    declared = {"self": SET, "oldSelf": SET}
    assert evaluated("(self + oldSelf).size()", declared, self=["a", "b"], oldSelf=["b", "c"]) == 3
    assert evaluated("self + oldSelf == ['c', 'b', 'a']", declared, self=["a", "b"], oldSelf=["b", "c"]) is True


def test_joining_lists_of_type_map_overwrites_in_place_and_appends_the_rest():
    declared = {"self": BY_NAME, "oldSelf": BY_NAME}
    old = [{"name": "a", "v": 1}, {"name": "b", "v": 2}]
    new = [{"name": "a", "v": 9}, {"name": "c", "v": 3}]
    assert evaluated("(self + oldSelf).map(e, e.name + string(e.v))", declared, self=old, oldSelf=new) == [
        "a9",
        "b2",
        "c3",
    ]


def test_objects_are_compared_field_by_field():
    declared = ObjectType("self", {"a": DOUBLE, "b": DYN})
    types = {"self": declared, "oldSelf": declared}
    assert evaluated("self == oldSelf", types, self={"a": 1, "b": [1]}, oldSelf={"a": 1.0, "b": [1.0]}) is True
    assert evaluated("self == oldSelf", types, self={"a": 1}, oldSelf={"a": 1, "b": None}) is False


@pytest.mark.parametrize(
    ("declared", "raw", "words"),
    [(BYTES, "\x80", "failed to convert byte formatted string"), (DOUBLE, 10**400, "that a double can hold")],
)
def test_what_does_not_hold_its_type_is_an_error_of_the_rule(declared: CelType, raw: object, words: str):
    assert words in failure("self == self", {"self": declared}, self=raw)
