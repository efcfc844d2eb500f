"""The text form of label selectors: grammar, canonical output, and complaints as the API server words them."""

from __future__ import annotations

import pytest

from plimsoll.core.label_selector_parsing import UnparsableSelector, parse_label_selector

NAME_RULE = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character "
    "(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)


@pytest.mark.parametrize(
    ("text", "labels", "selected"),
    [
        ("", {}, True),
        ("a=b", {"a": "b"}, True),
        ("a==b", {"a": "b"}, True),
        ("a=b", {"a": "c"}, False),
        ("a=b", {}, False),
        ("a!=b", {"a": "c"}, True),
        ("a!=b", {"a": "b"}, False),
        ("a!=b", {}, True),
        ("a in (x,y)", {"a": "y"}, True),
        ("a in (x,y)", {}, False),
        ("a notin (x,y)", {"a": "x"}, False),
        ("a notin (x,y)", {"a": "z"}, True),
        ("a notin (x,y)", {}, True),
        ("a", {"a": ""}, True),
        ("a", {}, False),
        ("!a", {"a": ""}, False),
        ("!a", {}, True),
        ("n>2", {"n": "3"}, True),
        ("n>2", {"n": "2"}, False),
        ("n>2", {"n": "three"}, False),
        ("n>2", {}, False),
        ("n<1", {"n": "-7"}, True),
        ("a in ()", {"a": ""}, True),
        ("a in ()", {"a": "x"}, False),
        ("a in (,x)", {"a": ""}, True),
        ("a=", {"a": ""}, True),
        ("a=,b", {"a": "", "b": "1"}, True),
        ("in=in", {"in": "in"}, True),
        ("x in (in,notin)", {"x": "notin"}, True),
        (" a = b , c ", {"a": "b", "c": "1"}, True),
        ("a,!a", {"a": "1"}, False),
        ("a in (x,y),a in (y,z)", {"a": "y"}, True),
        ("a in (x,y),a in (y,z)", {"a": "x"}, False),
        ("a in (x,y),a in (y,z)", {"a": "z"}, False),
        ("n>5,n>1", {"n": "3"}, False),
        ("n<1,n<5", {"n": "3"}, False),
        ("n>1,n<4,n!=2", {"n": "3"}, True),
        ("n>1,n<4,n!=2", {"n": "2"}, False),
    ],
)
def test_matching(text: str, labels: dict[str, str], selected: bool):
    assert parse_label_selector(text).matches(labels) is selected


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("b=2,a=1", "a=1,b=2"),
        ("x in (c, a,b)", "x in (a,b,c)"),
        ("x  notin (a)", "x notin (a)"),
        ("a==b", "a==b"),
        ("!a,b", "!a,b"),
        ("n>1,m<2", "m<2,n>1"),
        ("x in ()", "x in ()"),
        ("x in (,a)", "x in (,a)"),
    ],
)
def test_canonical_text(text: str, canonical: str):
    assert str(parse_label_selector(text)) == canonical


@pytest.mark.parametrize(
    ("text", "complaint", "position"),
    [
        ("=x", "found '=', expected: !, identifier, or 'end of string'", 0),
        ("a=b=c", "found '=', expected: ',' or 'end of string'", 3),
        ("n in (1", "unable to parse requirement: found '', expected: ',' or ')'", 7),
        (
            "Bad Key=1",
            "unable to parse requirement: found 'Key', expected: in, notin, =, ==, !=, gt, lt",
            4,
        ),
        (
            f"k={'v' * 64}",
            (
                f'unable to parse requirement: values[0][k]: Invalid value: "{"v" * 64}": '
                "must be no more than 63 characters"
            ),
            0,
        ),
        ("a,", "found '', expected: identifier after ','", 2),
        ("a,=", "found '=', expected: identifier after ','", 2),
        ("!=a", "found '!=', expected: !, identifier, or 'end of string'", 0),
        ("!,a", "unable to parse requirement: found ',', expected: identifier", 1),
        ("!a=b", "found '=', expected: ',' or 'end of string'", 2),
        ("a in b", "unable to parse requirement: found 'b' expected: '('", 5),
        ("a in (=", "unable to parse requirement: found '=', expected: ',', ')' or identifier", 6),
        ("a in (x y)", "unable to parse requirement: found 'y', expected: ',' or ')'", 8),
        ("a in (x,=)", "unable to parse requirement: found '=', expected: ',', or identifier", 8),
        ("a=(", "unable to parse requirement: found '(', expected: identifier", 2),
        (
            "n>x",
            (
                'unable to parse requirement: values[0]: Invalid value: "x": '
                "for 'Gt', 'Lt' operators, the value must be an integer"
            ),
            0,
        ),
        ("-a=b", f'unable to parse requirement: <nil>: Invalid value: "-a": name part {NAME_RULE}', 0),
    ],
)
def test_complaints_are_the_api_servers(text: str, complaint: str, position: int):
    with pytest.raises(UnparsableSelector) as caught:
        parse_label_selector(text)

    assert caught.value.problem == complaint
    assert caught.value.position == position


def test_a_complaint_can_be_put_under_the_field_it_came_from():
    with pytest.raises(UnparsableSelector) as caught:
        parse_label_selector("=x")

    moved = caught.value.with_parent("metadata.labelSelector")

    assert isinstance(moved, UnparsableSelector)
    assert (moved.path, moved.position) == ("metadata.labelSelector", 0)
