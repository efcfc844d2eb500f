"""Search, order and pages: the same answers on every database."""

from __future__ import annotations

import itertools
import re
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plimsoll.core.errors import InvalidInput
from plimsoll.fleet.model.search import Comparison, Conjunction, Disjunction, Operator
from plimsoll.fleet.model.statuses import KafkaStatus
from plimsoll.fleet.ports import KafkaFilter, Page
from tests.fleet.store.databases import CHECK, at, build_kafka

if TYPE_CHECKING:
    from plimsoll.fleet.model.search import Search
    from plimsoll.fleet.ports import FleetStore
    from tests.fleet.store.databases import DatabaseUnderTest

ALL = KafkaFilter()


def compare(column: str, operator: Operator, *values: str) -> Comparison:
    return Comparison(column=column, operator=operator, values=values)


async def find(store: FleetStore, search: Search | None, page: Page | None = None) -> list[str]:
    total, kafkas = await store.search_kafkas(ALL, search, page or Page())
    assert page is not None or total == len(kafkas)
    return [kafka.name for kafka in kafkas]


async def fill(store: FleetStore, *names: str) -> None:
    for number, name in enumerate(names):
        await store.insert_kafka(build_kafka(str(number), name=name), CHECK)


@pytest.mark.parametrize(
    ("operator", "value", "found"),
    [
        (Operator.EQUAL, "abc", ["abc"]),
        (Operator.NOT_EQUAL, "abc", ["ABC", "a%c", "a\\c", "a_c", "äbc"]),
        (Operator.LIKE, "a_c", ["a%c", "a\\c", "a_c", "abc"]),
        (Operator.LIKE, "a\\_c", ["a_c"]),
        (Operator.LIKE, "a\\%c", ["a%c"]),
        (Operator.LIKE, "a\\\\c", ["a\\c"]),
        (Operator.LIKE, "\\abc", ["abc"]),
        (Operator.LIKE, "A%", ["ABC"]),
        (Operator.LIKE, "%\\", []),
        (Operator.LIKE, "a", []),
        (Operator.LIKE, "%", ["ABC", "a%c", "a\\c", "a_c", "abc", "äbc"]),
        (Operator.LIKE, "_bc", ["abc", "äbc"]),
        (Operator.ILIKE, "abc", ["ABC", "abc"]),
        (Operator.ILIKE, "Ä%", []),
        (Operator.NOT_LIKE, "a%", ["ABC", "äbc"]),
        (Operator.NOT_ILIKE, "a%", ["äbc"]),
        (Operator.LIKE, "' OR 1=1 --", []),
        (Operator.LIKE, "[a]bc", []),
        (Operator.LIKE, "*bc", []),
    ],
)
def test_patterns_mean_the_same_everywhere(
    database: DatabaseUnderTest, operator: Operator, value: str, found: list[str]
):
    async def story(store: FleetStore) -> list[str]:
        await fill(store, "abc", "ABC", "a%c", "a_c", "a\\c", "äbc")
        return await find(store, compare("name", operator, value))

    assert database.play_store(story) == found


alphabet = st.text("aA%_\\", max_size=6)


def to_expression(pattern: str) -> str:
    """The pattern as a regular expression."""
    parts, escaped = [], False
    for character in pattern:
        if escaped or character not in "%_\\":
            parts.append(re.escape(character))
            escaped = False
        elif character == "\\":
            escaped = True
        else:
            parts.append(".*" if character == "%" else ".")
    return "".join(parts) + (re.escape("\\") if escaped else "")


def test_like_is_what_it_says(database: DatabaseUnderTest):
    """Against a regular expression: wildcards, escapes and case in every combination."""

    @settings(max_examples=60)
    @given(names=st.lists(alphabet, unique=True, max_size=8), pattern=alphabet)
    def check(names: list[str], pattern: str) -> None:
        async def story() -> list[str]:
            for number, name in enumerate(names):
                await opened.store.insert_kafka(build_kafka(f"{next(numbers)}-{number}", name=name), CHECK)
            found = await find(opened.store, compare("name", Operator.LIKE, pattern))
            for kafka in await opened.store.list_kafkas(tuple(KafkaStatus)):
                await opened.store.remove_kafka(kafka.id, statuses=tuple(KafkaStatus))
            return found

        assert database.run(story()) == sorted(name for name in names if re.fullmatch(to_expression(pattern), name))

    numbers = itertools.count()
    with database.open() as opened:
        check()


def test_lists_and_joins(database: DatabaseUnderTest):
    async def story(store: FleetStore) -> None:
        await fill(store, "a", "b", "c")
        assert await find(store, compare("name", Operator.IN, "a", "c", "x")) == ["a", "c"]
        assert await find(store, compare("name", Operator.NOT_IN, "a", "c")) == ["b"]
        first, second = compare("name", Operator.EQUAL, "a"), compare("region", Operator.EQUAL, "us-east-1")
        assert await find(store, Conjunction(parts=(first, second))) == ["a"]
        assert await find(store, Disjunction(parts=(first, compare("name", Operator.EQUAL, "b")))) == ["a", "b"]
        nested = Conjunction(parts=(second, Disjunction(parts=(first, compare("name", Operator.EQUAL, "c")))))
        assert await find(store, nested) == ["a", "c"]

    database.play_store(story)


@pytest.mark.parametrize(
    "search",
    [
        compare("client_secret", Operator.EQUAL, "x"),
        compare("name", Operator.IN),
        compare("name", Operator.IN, *map(str, range(1001))),
        compare("name", Operator.LIKE, "%" * 10_001),
        compare("name", Operator.LIKE, "a\0"),
        compare("name", Operator.EQUAL, "\ud800"),
        compare("name", Operator.IN, "a", "\ud800"),
        compare("name", Operator.ILIKE, "\udfff"),
    ],
)
def test_what_no_database_can_compare_is_refused(database: DatabaseUnderTest, search: Comparison):
    async def story(store: FleetStore) -> None:
        await store.search_kafkas(ALL, search, Page())

    with pytest.raises(InvalidInput) as raised:
        database.play_store(story)
    assert raised.value.path == search.column


def test_names_are_ordered_by_code_point(database: DatabaseUnderTest):
    names = ["b", "a", "B", "ä", "_", "a-b", "aB", "\U0001f600", "\uffff", "é", "e\u0301"]

    async def story(store: FleetStore) -> tuple[list[str], list[str]]:
        await fill(store, *names)
        return await find(store, None), await find(store, None, Page(order_by=(("name", False),)))

    up, down = database.play_store(story)
    assert up == sorted(names)
    assert down == sorted(names, reverse=True)


def test_what_is_empty_comes_last(database: DatabaseUnderTest):
    async def story(store: FleetStore) -> list[list[str]]:
        for number, expires_at in enumerate([None, at(2), at(1)]):
            await store.insert_kafka(build_kafka(str(number), name=str(number), expires_at=expires_at), CHECK)
        return [await find(store, None, Page(order_by=(("expires_at", ascends),))) for ascends in (True, False)]

    assert database.play_store(story) == [["2", "1", "0"], ["1", "2", "0"]]


def test_pages_do_not_overlap_and_ties_end_at_the_id(database: DatabaseUnderTest):
    async def story(store: FleetStore) -> list[str]:
        await fill(store, *(f"{number:02}" for number in range(7)))
        found = []
        for number in (1, 2, 3, 4):
            page = Page(number=number, size=3, order_by=(("region", True),))
            total, kafkas = await store.search_kafkas(ALL, None, page)
            assert total == 7
            found += [kafka.name for kafka in kafkas]
        return found

    assert database.play_store(story) == [f"{number:02}" for number in range(7)]


@pytest.mark.parametrize("number", [2**31, 2**63, 2**200])
def test_pages_behind_the_end_are_empty(database: DatabaseUnderTest, number: int):
    async def story(store: FleetStore) -> None:
        await fill(store, "a")
        assert await store.search_kafkas(ALL, None, Page(number=number, size=65_500)) == (1, ())
        assert len((await store.search_kafkas(ALL, None, Page(size=2**70)))[1]) == 1

    database.play_store(story)


@pytest.mark.parametrize(
    "page", [Page(order_by=(("canary_service_account_client_secret", True),)), Page(order_by=(("x; --", True),))]
)
def test_columns_that_are_none_are_not_ordered_by(database: DatabaseUnderTest, page: Page):
    async def story(store: FleetStore) -> None:
        await store.search_kafkas(ALL, None, page)

    with pytest.raises(InvalidInput, match="orderBy"):
        database.play_store(story)


def test_a_caller_sees_its_organisation_or_its_own(database: DatabaseUnderTest):
    async def story(store: FleetStore) -> None:
        await store.insert_kafka(build_kafka("1", organisation_id="o1", owner="ann"), CHECK)
        await store.insert_kafka(build_kafka("2", organisation_id="o2", owner="ann"), CHECK)
        await store.insert_kafka(build_kafka("3", organisation_id="", owner="ann"), CHECK)
        await store.insert_kafka(build_kafka("4", organisation_id="", owner="bob"), CHECK)
        for visible, expected in (
            (KafkaFilter(organisation_id="o1", owner="bob"), ["1"]),
            (KafkaFilter(owner="ann"), ["1", "2", "3"]),
            (KafkaFilter(), ["1", "2", "3", "4"]),
        ):
            _, kafkas = await store.search_kafkas(visible, None, Page())
            assert [kafka.id for kafka in kafkas] == expected

    database.play_store(story)
