"""`--watch` prints the first answer and then only what changed; slow work without a loop is announced."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from plimsoll.cli.shared.output import Table
from plimsoll.cli.shared.slow_notice import SlowNotice
from plimsoll.cli.shared.watching import ChangedRows, watch_changes


def test_an_answer_that_did_not_change_is_not_printed_again():
    answers = iter(["a", "a", "b", "b", "a"])
    shown: list[str] = []
    pauses: list[float] = []
    with pytest.raises(StopIteration):
        watch_changes(lambda: next(answers), shown.append, sleep=pauses.append)
    assert shown == ["a", "b", "a"]
    assert pauses == [2.0] * 5


def test_of_a_table_only_new_and_changed_rows_are_printed_again():
    changed = ChangedRows()

    def select(*rows: tuple[Any, ...]) -> list[tuple[Any, ...]]:
        return [row for table in changed.select(Table(("NAME", "STATE"), rows)) for row in table.rows]

    assert select(("a", "New"), ("b", "New")) == [("a", "New"), ("b", "New")]
    assert select(("a", "Provisioned"), ("b", "New")) == [("a", "Provisioned")]
    assert select(("a", "Provisioned"), ("b", "New")) == []
    assert select(("c", "New")) == [("c", "New")]


def test_slow_work_is_announced_and_quick_work_is_not(capsys: pytest.CaptureFixture[str]):
    done = threading.Event()

    class Announced(SlowNotice):
        def _print(self) -> None:
            super()._print()
            done.set()

    with Announced("planning 5 pods", patience_s=0.0):
        assert done.wait(60)
    assert capsys.readouterr().err == "planning 5 pods …\n"
    with SlowNotice("planning"):
        pass
    with SlowNotice("planning", is_silent=True, patience_s=0.0):
        pass
    assert capsys.readouterr().err == ""
