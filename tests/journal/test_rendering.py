"""What `why` and `journal` print."""

import json
from datetime import timedelta

from msgspec import structs

from plimsoll.core.plans import NotDone, Reason, Ref, Result, encode
from plimsoll.journal.decisions import ObjectDecision
from plimsoll.journal.entries import Entry
from plimsoll.journal.last_plans import build_last_plans, read_last_plans
from plimsoll.journal.rendering import (
    JOURNAL_HEAD,
    build_journal_data,
    build_journal_rows,
    format_entry,
    remove_control_characters,
)
from plimsoll.journal.rendering import build_decisions_data as story_data
from plimsoll.journal.rendering import format_decisions as story_lines
from tests.golden.reviewed_sentences import ReviewedSentences
from tests.journal.builders import GROUP, at, done, failed, grow, left, plan, pod

ENTRY = Entry(number=4, plan=plan(2, not_done=(left("a", "b", unnamed=3),)), outcomes=(failed("no quota"),))


def why_lines(entry: Entry, ref: Ref) -> list[str]:
    return list(story_lines([ObjectDecision.from_entry(entry, ref)], now=at(7)))


def test_an_action_is_reported_with_its_time_its_end_and_its_reason():
    assert why_lines(ENTRY, GROUP) == [
        "2026-01-01 12:00:02 UTC (5 s ago), nodes, entry 4",
        "  grow size=5: failed: no quota",
        "    41 pods wait",
    ]


def test_what_was_left_is_reported_with_its_reason_and_how_many_share_it():
    assert why_lines(ENTRY, pod("a"))[1:] == ["  left pending (and 4 more like it)", "    fits no machine type"]


def test_an_action_without_an_end_is_planned():
    assert why_lines(Entry(number=1, plan=plan(1)), GROUP)[1] == "  grow size=5: planned"


def test_the_object_that_an_action_changes_is_shown_under_the_others_it_concerns():
    entry = Entry(number=1, plan=plan(1, actions=(structs.replace(grow(size=5), concerns=(pod("a"),)),)))
    assert why_lines(entry, pod("a"))[1] == f"  grow {GROUP} size=5: planned"


def test_the_object_that_was_left_is_named_under_the_others_it_concerns():
    goal, kafka = Ref(kind="goal", name="RackAwareGoal"), Ref(kind="kafka", namespace="kafka", name="c")
    not_done = NotDone(
        what="does not apply", about=(goal,), reason=Reason(code="NoRates", message="no rates"), concerns=(kafka,)
    )
    entry = Entry(number=1, plan=plan(1, actions=(), not_done=(not_done,)))
    assert why_lines(entry, kafka)[1:] == ["  goal/RackAwareGoal does not apply", "    no rates"]
    assert why_lines(entry, goal)[1:] == ["  does not apply", "    no rates"]


def test_what_concerns_no_other_is_written_as_ever():
    assert b"concerns" not in encode(grow())


def test_each_of_two_actions_has_its_own_end():
    first, second = grow(size=5), grow(size=6)
    entry = Entry(number=1, plan=plan(1, actions=(first, second)), outcomes=(done(second), failed("no", first)))
    reported = [line for line in why_lines(entry, GROUP) if "grow" in line]
    assert reported == ["  grow size=5: failed: no", "  grow size=6: done"]


def test_what_lies_behind_a_reason_is_reported_below_it():
    names = {"names": ["a-large", "b-large"]}
    because = (Reason(code="Taint", message="has a taint", facts=names),)
    reason = Reason(code="NoFit", message="fits nowhere", because=because)
    entry = Entry(number=1, plan=plan(1, actions=(structs.replace(grow(), reason=reason),)))
    assert why_lines(entry, GROUP)[2:] == [
        "    fits nowhere",
        "      has a taint",
        "        all of them: a-large, b-large",
    ]


def test_names_beyond_those_listed_are_counted():
    reason = Reason(code="NoFit", message="fits nowhere", facts={"names": ["a", "b"], "groups": 5})
    entry = Entry(number=1, plan=plan(1, actions=(structs.replace(grow(), reason=reason),)))
    assert why_lines(entry, GROUP)[3:] == ["      a, b and 3 more"]


def test_names_are_never_broken_at_the_end_of_a_line():
    names = [f"machine-type-{number}" for number in range(40)]
    reason = Reason(code="NoFit", message="fits nowhere", facts={"names": names})
    entry = Entry(number=1, plan=plan(1, actions=(structs.replace(grow(), reason=reason),)))
    reported = " ".join(line.strip() for line in why_lines(entry, GROUP)[3:])
    assert reported == f"all of them: {', '.join(names)}"


def test_how_long_ago_is_reported_in_the_largest_unit(reviewed: ReviewedSentences):
    story = ObjectDecision.from_entry(ENTRY, GROUP)
    spans = {"59 s ago": 59, "1 min ago": 119, "3 h ago": 3 * 3600, "2 d ago": 50 * 3600}
    for reported, seconds in spans.items():
        assert f"({reported})" in next(story_lines([story], now=story.at + timedelta(seconds=seconds)))
    reviewed(next(story_lines([story], now=at(0))))


def test_stories_are_parted_by_an_empty_line():
    story = ObjectDecision.from_entry(ENTRY, GROUP)
    assert list(story_lines([story, story], now=at(7))).count("") == 1


def test_the_config_map_has_the_same_lines_without_a_number():
    (stated,) = (
        last_plan for last_plan in read_last_plans(build_last_plans({}, [ENTRY])).values() if last_plan.ref == pod("a")
    )
    assert ObjectDecision.from_last_plan(stated) == structs.replace(
        ObjectDecision.from_entry(ENTRY, pod("a")), number=None
    )


def test_programs_get_the_same_as_data():
    (data,) = story_data([ObjectDecision.from_entry(ENTRY, pod("a"))])
    assert json.loads(json.dumps(data)) == data
    assert data["number"] == 4
    assert data["at"] == "2026-01-01T12:00:02Z"
    assert data["actions"] == []
    (reported,) = data["notDone"]
    assert reported["about"] == [{"kind": "pod", "namespace": "default", "name": "a"}]
    assert reported["unnamed"] == 4


def test_outcomes_are_among_the_data():
    (data,) = story_data([ObjectDecision.from_entry(ENTRY, GROUP)])
    assert data["outcomes"][0]["result"] == Result.FAILED.value


def test_the_journal_is_a_row_an_entry():
    (row,) = build_journal_rows([ENTRY])
    assert row == (
        "4",
        "2026-01-01 12:00:02 UTC",
        "nodes",
        "2",
        "0",
        "0",
        "5",
        "nodes: nothing done; failed: grow x1; 5 unchanged",
    )
    assert len(row) == len(JOURNAL_HEAD)
    (data,) = build_journal_data([ENTRY])
    assert json.loads(json.dumps(data))["plan"]["snapshot"] == 2


def test_one_entry_is_reported_in_full():
    assert list(format_entry(ENTRY)) == [
        "4  2026-01-01 12:00:02 UTC  nodes: nothing done; failed: grow x1; 5 unchanged",
        "+ grow nodegroup/batch size=5: 41 pods wait [failed: no quota]",
        "- pod/default/a, pod/default/b and 3 more left pending: fits no machine type",
    ]


def test_text_of_objects_does_not_reach_the_terminal_as_commands():
    assert remove_control_characters("a\x1b[31mred\nb\tc\u202e") == "a?[31mred b c?"
    entry = Entry(number=1, plan=plan(1, actions=(), not_done=(left("a", why="\x1b]0;owned\x07"),)))
    assert "\x1b" not in "".join([*why_lines(entry, pod("a")), *format_entry(entry)])
