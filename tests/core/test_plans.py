from __future__ import annotations

from datetime import UTC, datetime

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.core.errors import InvalidInput
from plimsoll.core.plans import Action, NotDone, Outcome, Plan, Reason, Ref, Result, encode

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def reason(code: str = "PodsPending", message: str = "41 pods wait", **facts: object) -> Reason:
    return Reason(code=code, message=message, facts=facts)


def increase(group: str = "batch", *, size: int = 5, was: int = 2) -> Action:
    return Action(
        verb="resize",
        target=Ref(kind="nodegroup", name=group),
        arguments={"size": size},
        precondition={"size": was},
        reason=reason(),
    )


def kept(node: str = "n7") -> NotDone:
    return NotDone(
        what="kept",
        about=(Ref(kind="node", name=node),),
        reason=reason("NoController", "pod db-0 has no controller"),
    )


def plan(*actions: Action, not_done: tuple[NotDone, ...] = ()) -> Plan:
    return Plan(subsystem="nodes", snapshot=7, at=NOON, actions=actions, not_done=not_done, budgets={"columns": 400})


def test_a_thing_done_reads_as_a_sentence_with_its_reason():
    assert str(increase()) == "resize nodegroup/batch size=5: 41 pods wait"


def test_a_thing_left_reads_as_a_sentence_with_its_reason():
    assert str(kept()) == "node/n7 kept: pod db-0 has no controller"


def test_many_things_left_are_counted_after_the_first_three():
    pods = tuple(Ref(kind="pod", namespace="ml", name=f"train-{i}") for i in range(5))
    left = NotDone(what="fit no machine type", about=pods, reason=reason("NoGpu", "gpu"))
    assert str(left) == "pod/ml/train-0, pod/ml/train-1, pod/ml/train-2 and 2 more fit no machine type: gpu"


def test_things_without_names_are_counted():
    left = NotDone(what="fit no machine type", about=(), unnamed=5, reason=reason("NoGpu", "gpu"))
    assert str(left) == "5 fit no machine type: gpu"
    assert plan(not_done=(left,)).format_sentence() == "nodes: nothing to do; 5 unchanged"


def test_causes_stand_behind_their_reason():
    because = Reason(code="NoRoom", message="no room", because=(reason("Cpu", "cpu is short"), reason("Max", "at max")))
    assert str(because) == "no room (cpu is short; at max)"


def test_the_log_sentence_counts_what_is_done_and_what_is_left():
    assert plan(increase(), increase("web"), not_done=(kept(),)).format_sentence() == "nodes: resize x2; 1 unchanged"
    assert plan().format_sentence() == "nodes: nothing to do"


def test_the_log_sentence_of_a_reconcile_names_its_object():
    about = msgspec.structs.replace(plan(increase()), subject=Ref(kind="kafka", namespace="prod", name="c"))
    assert about.format_sentence() == "kafka/prod/c: resize x1"


def test_why_shows_only_what_concerns_the_thing():
    whole = plan(increase("batch"), increase("web"), not_done=(kept("n7"), kept("n8")))
    assert whole.filter_by_ref(Ref(kind="nodegroup", name="web")).format_lines() == [
        "+ resize nodegroup/web size=5: 41 pods wait"
    ]
    assert whole.filter_by_ref(Ref(kind="node", name="n8")).format_lines() == [
        "- node/n8 kept: pod db-0 has no controller"
    ]


def test_outcomes_say_how_it_ended():
    ended = Outcome(action=increase(), result=Result.HELD_BACK, reason=reason("Paused", "paused by annotation"))
    assert str(ended) == "resize nodegroup/batch: held back, paused by annotation"
    assert str(Outcome(action=increase(), result=Result.DONE)) == "resize nodegroup/batch: done"


def test_json_keeps_units_and_names_of_the_wire():
    assert b'"notDone":[' in encode(plan())


@pytest.mark.parametrize(
    ("text", "ref"),
    [
        ("pod/default/web-0", Ref(kind="pod", namespace="default", name="web-0")),
        ("Node/n7", Ref(kind="node", name="n7")),
    ],
)
def test_refs_are_read_as_they_are_written_on_the_command_line(text: str, ref: Ref):
    assert Ref.parse(text) == ref


@pytest.mark.parametrize("text", ["", "pod", "pod/", "/x", "a/b/c/d", "pod//x"])
def test_what_names_nothing_is_refused_with_the_form(text: str):
    with pytest.raises(InvalidInput, match="KIND/NAME"):
        Ref.parse(text)


NAMES = st.text("abcxyz-", min_size=1, max_size=8)
REFS = st.builds(Ref, kind=NAMES, name=NAMES, namespace=st.one_of(st.just(""), NAMES))
FACTS = st.dictionaries(NAMES, st.one_of(st.integers(-(2**60), 2**60), st.text(max_size=5), st.booleans()), max_size=3)
REASONS = st.recursive(
    st.builds(Reason, code=NAMES, message=st.text(max_size=20), facts=FACTS),
    lambda inner: st.builds(
        Reason, code=NAMES, message=st.text(max_size=9), because=st.lists(inner, max_size=2).map(tuple)
    ),
    max_leaves=4,
)
ACTIONS = st.builds(Action, verb=NAMES, target=REFS, reason=REASONS, arguments=FACTS, precondition=FACTS)
LEFT = st.builds(
    NotDone, what=NAMES, about=st.lists(REFS, max_size=4).map(tuple), reason=REASONS, unnamed=st.integers(0, 9)
)
PLANS = st.builds(
    Plan,
    subsystem=NAMES,
    snapshot=st.integers(0, 2**53),
    at=st.datetimes(timezones=st.just(UTC)),
    actions=st.lists(ACTIONS, max_size=3).map(tuple),
    not_done=st.lists(LEFT, max_size=3).map(tuple),
    budgets=st.dictionaries(NAMES, st.integers(0, 9), max_size=2),
)


@given(PLANS)
def test_a_plan_survives_json_and_gives_the_same_bytes(made: Plan):
    again = msgspec.json.decode(encode(made), type=Plan)
    assert again == made
    assert encode(again) == encode(made)
    assert len(again.format_lines()) == len(made.actions) + len(made.not_done)
