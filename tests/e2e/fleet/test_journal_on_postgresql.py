"""The journal of a fleet on PostgreSQL: the tests of the other drivers, with another one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from plimsoll.fleet.store.journal import DatabaseJournal
from tests.journal.test_drivers import (  # noqa: F401 - these tests are the tests here
    test_a_closed_journal_says_so,
    test_an_entry_comes_back_as_it_was_written,
    test_entries_about_one_thing_are_found_by_actions_and_by_what_was_left,
    test_entries_come_newest_first_and_no_more_than_asked_for,
    test_entries_of_a_subsystem,
    test_entries_of_a_time_both_ends_included,
    test_entries_older_than_are_kept_go,
    test_more_entries_than_are_kept_drop_the_oldest,
    test_outcomes_are_added_when_they_are_known,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from plimsoll.journal.entries import Retention
    from tests.fleet.store.databases import DatabaseUnderTest


@pytest.fixture
def opening(database: DatabaseUnderTest) -> Iterator[Callable[..., Any]]:
    """The journal of a new database."""
    with database.open() as opened:

        def open_journal(retention: Retention | None = None) -> DatabaseJournal:
            return DatabaseJournal(opened.transactions, retention)

        yield open_journal
