"""What `why` and `journal` print."""

import json

from msgspec import structs

from plimsoll.core.plans import Reason, Result
from plimsoll.journal.entries import Entry
from plimsoll.journal.rendering import JOURNAL_HEAD, WHY_HEAD, harmless, journal_data, journal_rows, why_data, why_rows
from tests.journal.journal_worlds import GROUP, done, failed, grow, left, plan, pod

ENTRY = Entry(number=4, plan=plan(2, not_done=(left("a", "b", unnamed=3),)), outcomes=(failed("no quota"),))


def test_an_action_is_told_with_its_reason_and_its_end():
    (row,) = why_rows([ENTRY], GROUP)
    assert row == ("2026-01-01 12:00:02", "nodes", "2", "grow size=5", "41 pods wait", "failed: no quota")
    assert len(row) == len(WHY_HEAD)


def test_what_was_left_is_told_with_its_reason():
    (row,) = why_rows([ENTRY], pod("a"))
    assert row[3:] == ("left pending", "fits no machine type", "not done")


def test_an_action_without_an_end_is_planned():
    assert why_rows([Entry(number=1, plan=plan(1))], GROUP)[0][-1] == "planned"


def test_each_of_two_actions_has_its_own_end():
    first, second = grow(size=5), grow(size=6)
    entry = Entry(number=1, plan=plan(1, actions=(first, second)), outcomes=(done(second), failed("no", first)))
    assert [row[-1] for row in why_rows([entry], GROUP)] == ["failed: no", "done"]


def test_what_lies_behind_a_reason_is_told_too():
    because = (Reason(code="Taint", message="has a taint"),)
    reason = Reason(code="NoFit", message="fits nowhere", because=because)
    entry = Entry(number=1, plan=plan(1, actions=(structs.replace(grow(), reason=reason),)))
    assert why_rows([entry], GROUP)[0][4] == "fits nowhere (has a taint)"


def test_programs_get_the_same_as_data():
    (data,) = why_data([ENTRY], pod("a"))
    assert json.loads(json.dumps(data)) == data
    assert data["number"] == 4
    assert data["at"] == "2026-01-01T12:00:02Z"
    assert data["actions"] == []
    (told,) = data["notDone"]
    assert told["about"] == [{"kind": "pod", "namespace": "default", "name": "a"}]
    assert told["unnamed"] == 4


def test_outcomes_are_among_the_data():
    (data,) = why_data([ENTRY], GROUP)
    assert data["outcomes"][0]["result"] == Result.FAILED.value


def test_the_journal_is_a_row_an_entry():
    (row,) = journal_rows([ENTRY])
    assert row == ("4", "2026-01-01 12:00:02", "nodes", "2", "1", "5", "nodes: grow x1; 5 left as they are")
    assert len(row) == len(JOURNAL_HEAD)
    (data,) = journal_data([ENTRY])
    assert json.loads(json.dumps(data))["plan"]["snapshot"] == 2


def test_text_of_objects_does_not_reach_the_terminal_as_commands():
    assert harmless("a\x1b[31mred\nb\tc\u202e") == "a?[31mred b c?"
    entry = Entry(number=1, plan=plan(1, actions=(), not_done=(left("a", why="\x1b]0;owned\x07"),)))
    assert "\x1b" not in "".join(why_rows([entry], pod("a"))[0])
