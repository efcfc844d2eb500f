"""`plimsoll journal --follow`: what is printed while the journal grows."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from plimsoll.cli.journal.following import follow_entries
from plimsoll.cli.shared.output import Output
from plimsoll.journal.entries import Entry
from tests.journal import builders

if TYPE_CHECKING:
    from collections.abc import Sequence


class Ended(Exception):
    """Ctrl-C."""


def follow(steps: Sequence[Sequence[Entry]], output: Output) -> None:
    """Reads the journal as it is at each step, then ends."""
    rest = list(steps)

    def sleep(seconds: float) -> None:
        assert seconds > 0
        if len(rest) == 1:
            raise Ended
        rest.pop(0)

    with pytest.raises(Ended):
        follow_entries(lambda: rest[0], output, sleep=sleep)


def entry(number: int, *, is_done: bool = True) -> Entry:
    return Entry(number=number, plan=builders.plan(number), outcomes=(builders.done(),) if is_done else ())


def test_entries_come_oldest_first_and_each_once(capsys: pytest.CaptureFixture[str]) -> None:
    follow([[entry(2), entry(1)], [entry(2), entry(1)], [entry(3), entry(2), entry(1)]], Output.NAME)
    assert capsys.readouterr().out.split() == ["entry/1", "entry/2", "entry/3"]


def test_an_entry_is_printed_again_when_its_outcome_is_known(capsys: pytest.CaptureFixture[str]) -> None:
    follow([[entry(1, is_done=False)], [entry(1)]], Output.TABLE)
    planned, done = capsys.readouterr().out.splitlines()
    assert "planned" in planned
    assert "planned" not in done


def test_json_is_one_object_per_line(capsys: pytest.CaptureFixture[str]) -> None:
    follow([[entry(2), entry(1)]], Output.JSON)
    assert [json.loads(line)["number"] for line in capsys.readouterr().out.splitlines()] == [1, 2]


def test_an_entry_that_left_the_window_is_forgotten_and_not_repeated(capsys: pytest.CaptureFixture[str]) -> None:
    follow([[entry(number)] for number in range(1, 1_200)], Output.NAME)
    assert len(capsys.readouterr().out.split()) == 1_199
