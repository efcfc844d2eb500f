"""Search expressions: what is read, and the sentence about what is not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from plimsoll.fleet.api.errors import RequestRefused
from plimsoll.fleet.api.parsing.search import MOST_JOINS, parse_search
from plimsoll.fleet.model.search import Comparison, Conjunction, Disjunction, Operator

if TYPE_CHECKING:
    from tests.golden.reviewed_sentences import ReviewedSentences


@pytest.mark.parametrize(
    "text",
    [
        "name",
        "name =",
        "name = = x",
        "name == x",
        "secret = x",
        "NAME = x",
        "name = x y",
        "name = x; drop table kafkas",
        "name = x -- comment",
        "name = x /* comment */",
        "name = 'x",
        "name = x'",
        'name = "x"',
        "name = x or",
        "or name = x",
        "name in x",
        "name in ()",
        "name in (x,)",
        "name in (x",
        "(name = x",
        "name = x)",
        "not name = x",
        "name not = x",
        "name = and",
        "name like",
        "1 = 1",
        "name is null",
        "name = x\\",
        "name = 'a' 'b'",
        "(" * 21 + "name = x" + ")" * 21,
        "name = '" + "x" * 300 + "'",
        "name in (" + ",".join("x" for _ in range(101)) + ")",
        " or ".join("name = x" for _ in range(MOST_JOINS + 2)),
        "name = x" + " " * 5000 + "or name = y",
        "name = \u00e9",
        "(" * 4000,
    ],
)
def test_a_search_that_cannot_be_read_is_refused(text: str, reviewed: ReviewedSentences):
    with pytest.raises(RequestRefused) as caught:
        parse_search(text)
    assert (caught.value.status, int(caught.value.code)) == (400, 23)
    reviewed(caught.value.reason)


def test_and_binds_stronger_than_or():
    name, region, owner = (
        Comparison(column=column, operator=Operator.EQUAL, values=("x",)) for column in ("name", "region", "owner")
    )
    text = "name = x or region = x and owner = x"
    assert parse_search(text) == Disjunction(parts=(name, Conjunction(parts=(region, owner))))
    text = "(name = x or region = x) and owner = x"
    assert parse_search(text) == Conjunction(parts=(Disjunction(parts=(name, region)), owner))


def test_values_keep_quotes_wildcards_and_reserved_words():
    found = parse_search("name in ('it''s', '100%', 'and', a_b, '', ')') AND name NOT LIKE 'x%'")
    assert isinstance(found, Conjunction)
    first, second = found.parts
    assert isinstance(first, Comparison)
    assert first.values == ("it's", "100%", "and", "a_b", "", ")")
    assert isinstance(second, Comparison)
    assert second.operator is Operator.NOT_LIKE


@pytest.mark.parametrize("text", ["", "  "])
def test_an_empty_search_selects_everything(text: str):
    assert parse_search(text) is None
