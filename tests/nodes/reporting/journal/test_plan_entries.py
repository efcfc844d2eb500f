"""Loops in the journal: every object is found by name, and nothing is written twice."""

import re
from datetime import timedelta
from functools import partial
from typing import Any

from msgspec import structs

from plimsoll.core.plans import NotDone, Reason, Ref, Result, encode
from plimsoll.journal.dedupe import PlanDeduplicator
from plimsoll.nodes.cluster_state.changes import build_size_mismatch_reason, build_unregistered_reason
from plimsoll.nodes.cluster_state.health import ClusterHealth, GroupHealth
from plimsoll.nodes.cluster_state.observed import ObservedGroup
from plimsoll.nodes.cluster_state.readiness import Readiness
from plimsoll.nodes.cluster_state.scale_up_requests import ScaleUpRequest
from plimsoll.nodes.loop_result import LoopResult, ScaleDownPart
from plimsoll.nodes.model.results import DeletedGroup, GroupRepair, RemovalResult, ScaleUpPart
from plimsoll.nodes.model.scale_up_plan import SkippedGroup
from plimsoll.nodes.model.snapshot import PendingPods
from plimsoll.nodes.reporting.journal.group_notes import GroupNotes, find_settled_pods
from plimsoll.nodes.reporting.journal.plan_entries import build_plan, build_plan_and_outcomes
from tests.nodes.planning.builders import NOON
from tests.nodes.reporting.loop_results import (
    STOCKOUT,
    ended,
    filtered_pod,
    later,
    loop_result,
    node,
    option,
    placed,
    planned,
    pod,
    removal,
    scale_down,
    scale_up,
    scale_up_result,
    scaled_up_loop,
    unneeded,
    unremovable,
    unschedulable_loop,
    waiting,
)

LIMIT = Reason(code="CpuResourceLimit", message="max cluster cpu limit reached (13 of 5 in use)")


def find_reasons(loop: LoopResult, text: str) -> list[Reason]:
    """The reasons that `plimsoll why` finds for an object. The golden file holds their wording."""
    found = build_plan(loop).filter_by_ref(Ref.parse(text)).not_done
    assert all(str(ref) == text for not_done in found for ref in not_done.about)
    return [not_done.reason for not_done in found]


def find_codes(loop: LoopResult, text: str) -> list[str]:
    return [reason.code for reason in find_reasons(loop, text)]


# ---- what is found


def test_why_a_pod_stays_without_a_place():
    one = unschedulable_loop(waiting("p"), reasons=(LIMIT, Reason(code="NoRoom", message="no room is left")))

    (reason,) = find_reasons(one, "pod/default/p")
    assert (reason.code, [cause.code for cause in reason.because]) == ("NotTriggerScaleUp", [LIMIT.code, "NoRoom"])


def test_what_a_pod_waits_for():
    one = scaled_up_loop(scale_up(option("g"), waiting("p"), nodes=1), pending=(waiting("p"),))

    (reason,) = find_reasons(one, "pod/default/p")
    assert reason.code == "TriggeredScaleUp"
    assert "{g 0->1 (max: 10)}" in reason.message


def test_a_pod_that_fits_waits_for_the_scheduler():
    one = loop_result(waiting("p"), scale_up=ScaleUpPart(plan=planned(existing={"n1": {"default/p": 1}})))

    assert find_codes(one, "pod/default/p") == ["FitsOnNodes"]


def test_why_a_pod_is_not_planned_for():
    one = loop_result(filtered_pods=(filtered_pod("p", "Expendable", message="it is expendable"),))

    assert find_codes(one, "pod/default/p") == ["Expendable"]


def test_why_each_node_is_kept():
    part = scale_down(
        unremovable=(unremovable("n1", "NotUnderutilized", "cpu is used to 60.0%"), unremovable("n2", "BookedCapacity"))
    )

    (reason,) = find_reasons(loop_result(scale_down=part), "node/n1")
    assert (reason.code, reason.message) == ("NotUnderutilized", "cpu is used to 60.0%")
    assert find_codes(loop_result(scale_down=part), "node/n2") == ["BookedCapacity"]


def test_why_an_unneeded_node_does_not_go():
    cooldown = Reason(code="ScaleDownInCooldown", message="in cooldown")
    one = loop_result(scale_down=ScaleDownPart(unneeded=(unneeded("n1"),), skipped=cooldown))

    assert find_reasons(one, "node/n1") == [cooldown]


def test_why_a_group_is_not_grown():
    full = SkippedGroup(group="g", machine_type="", code="MaxSizeReached", reason="max size reached")
    one = loop_result(scale_up=ScaleUpPart(plan=planned(skipped_groups=(full,))))

    assert find_codes(one, "nodegroup/g") == ["MaxSizeReached"]


def test_growth_names_the_group_the_size_and_its_end():
    good, bad = scale_up(option("a", size=1), nodes=2), scale_up(option("b"))
    part = ScaleUpPart(plan=planned(good, bad), results=(scale_up_result(good), scale_up_result(bad, failure=STOCKOUT)))
    plan, outcomes = build_plan_and_outcomes(loop_result(scale_up=part))

    assert [str(action.target) for action in plan.actions] == ["nodegroup/a", "nodegroup/b"]
    assert plan.actions[0].arguments == {"to": 3}
    assert plan.actions[0].precondition == {"size": 1}
    assert [outcome.result for outcome in outcomes] == [Result.DONE, Result.FAILED]
    reason = outcomes[1].reason
    assert reason is not None
    assert (reason.code, reason.message) == (STOCKOUT.kind.value, STOCKOUT.message)


def test_a_group_that_is_made_is_created():
    plan = build_plan(scaled_up_loop(scale_up(option("nap-1", exists=False), nodes=2)))

    assert plan.actions[0].verb == "create"
    assert plan.actions[0].arguments["machineType"] == "n1-standard-4"


def test_removals_have_an_outcome_once_they_ended():
    first, second, third = removal("n1"), removal("n2", "web-0"), removal("n3")
    brake = Reason(code="Paused", message="paused")
    why = Reason(code="FailedToEvictPods", message="web-0 did not go")
    before = ended(removal("n0", "db-0"), RemovalResult.FAILED, reason=why)
    part = scale_down(first, second, third, held_back={"n3": brake}, finished=(before, ended(first)))
    plan, outcomes = build_plan_and_outcomes(loop_result(scale_down=part))

    assert [action.target.name for action in plan.actions] == ["n0", "n1", "n2", "n3"]
    assert {outcome.action.target.name: outcome.result for outcome in outcomes} == {
        "n0": Result.FAILED,
        "n1": Result.DONE,
        "n3": Result.HELD_BACK,
    }


def test_repairs_and_deleted_groups_are_actions_too():
    shrunk = GroupRepair(
        group="g", reason=build_size_mismatch_reason("g", nodes=1, target=3, limit_s=900), before=3, after=1
    )
    never = GroupRepair(group="h", reason=build_unregistered_reason("h", 1, limit_s=900, kept=0), instances=("i-1",))
    plan = build_plan(loop_result(repairs=(shrunk, never), deleted_groups=(DeletedGroup(group="nap-1"),)))

    assert [(action.verb, action.target.name) for action in plan.actions] == [
        ("shrink", "g"),
        ("delete-instances", "h"),
        ("delete", "nap-1"),
    ]


def test_a_turn_that_ended_early_says_why():
    reason = Reason(code="CannotSee", message="the cloud is gone")
    plan = build_plan(loop_result(ended_early=reason))

    assert [(not_done.about, not_done.reason) for not_done in plan.not_done] == [((Ref.parse("cluster/this"),), reason)]


# ---- how much is written


def test_a_plan_names_ten_thousand_pods_and_counts_the_rest():
    names = tuple(f"p{number}" for number in range(12_000))
    many = PendingPods(key="default/many", pod=pod("many"), count=12_000, names=names)
    (one,) = build_plan(unschedulable_loop(many, reasons=(LIMIT,))).not_done

    assert len(one.about) == 10_000
    assert one.count == 12_000


def test_nodes_kept_for_the_same_reason_are_reported_together():
    part = scale_down(unremovable=tuple(unremovable(f"n{number}", "NotAutoscaled") for number in range(50)))
    (one,) = build_plan(loop_result(scale_down=part)).not_done

    assert one.count == 50


def news_of(*turns: LoopResult) -> list[list[str] | None]:
    """The things each turn writes about; None: it writes nothing."""
    news = PlanDeduplicator()
    found: list[list[str] | None] = []
    for loop in turns:
        written = news.select_changes(*build_plan_and_outcomes(loop))
        found.append(None if written is None else sorted(_named(written[0].actions, written[0].not_done)))
    return found


def _named(actions: Any, not_done: tuple[NotDone, ...]) -> list[str]:
    return [*(str(action.target) for action in actions), *(str(ref) for done in not_done for ref in done.about)]


def keeping(percent: float, *, also: str = "", seconds: float = 0) -> LoopResult:
    nodes = [unremovable("n1", "NotUnderutilized", f"cpu is used to {percent}%")]
    if also:
        nodes.append(unremovable("n2", also))
    return later(loop_result(scale_down=scale_down(unremovable=tuple(nodes))), at=NOON + timedelta(seconds=seconds))


def test_a_turn_that_says_the_same_as_the_one_before_writes_nothing():
    assert news_of(keeping(60.0), keeping(60.0), keeping(61.5)) == [["node/n1"], None, None]


def test_only_what_changed_is_written():
    assert news_of(keeping(60, also="NotAutoscaled"), keeping(60, also="BookedCapacity")) == [
        ["node/n1", "node/n2"],
        ["node/n2"],
    ]


def test_what_was_gone_and_comes_back_is_news():
    assert news_of(keeping(60, also="NotAutoscaled"), keeping(60), keeping(60, also="NotAutoscaled")) == [
        ["node/n1", "node/n2"],
        None,
        ["node/n2"],
    ]


def test_another_pod_that_keeps_a_node_is_news():
    def blocked(name: str) -> LoopResult:
        return loop_result(
            scale_down=scale_down(
                unremovable=(unremovable("n1", "BlockedByPod", f"{name} keeps it", facts={"pod": name}),)
            )
        )

    assert news_of(blocked("a"), blocked("a"), blocked("b")) == [["node/n1"], None, ["node/n1"]]


def test_actions_that_were_done_are_always_written():
    grows = scaled_up_loop(scale_up(option("g")))

    assert news_of(grows, grows) == [["nodegroup/g"], ["nodegroup/g"]]


def test_an_action_that_is_held_back_again_and_again_is_written_once():
    held = scale_up(option("g"))
    brake = Reason(code="DryRun", message="dry run")
    dry = loop_result(scale_up=ScaleUpPart(plan=planned(held), results=(scale_up_result(held, held_back=brake),)))

    assert news_of(dry, dry) == [["nodegroup/g"], None]


def test_a_new_group_that_is_held_back_is_written_once_although_its_name_differs_every_time():
    brake = Reason(code="DryRun", message="dry run")
    held = [scale_up(option(name, exists=False)) for name in ("nap-a", "nap-b")]
    loops = [
        loop_result(scale_up=ScaleUpPart(plan=planned(grown), results=(scale_up_result(grown, held_back=brake),)))
        for grown in held
    ]

    assert news_of(*loops) == [["nodegroup/nap-a"], None]


def test_everything_in_force_is_repeated_after_six_hours():
    almost, after = 6 * 3600 - 10, 6 * 3600
    turns = (keeping(60), keeping(60, seconds=almost), keeping(60, seconds=after), keeping(60, seconds=after + 10))

    assert news_of(*turns) == [["node/n1"], None, ["node/n1"], None]


def test_a_large_quiet_cluster_writes_little():
    def of(share: float) -> LoopResult:
        nodes = tuple(
            unremovable(f"node-{n}", "NotUnderutilized", f"cpu is used to {share + n / 100}%") for n in range(5_000)
        )
        return loop_result(scale_down=scale_down(unremovable=nodes))

    news = PlanDeduplicator()
    whole = news.select_changes(*build_plan_and_outcomes(of(50.0)))
    assert whole is not None
    assert len(encode(whole[0])) < 2_000_000
    assert news.select_changes(*build_plan_and_outcomes(of(51.0))) is None


# ---- pods that wait no more


def after(one: LoopResult, *, seconds: int) -> LoopResult:
    return later(one, at=NOON + timedelta(seconds=seconds))


def placed_now(name: str, on: str) -> LoopResult:
    return after(loop_result(nodes=(node(on),), pods=(placed(name, on),)), seconds=10)


def find_written_codes(*loops: LoopResult) -> list[list[tuple[str, str, str]]]:
    """The objects that each loop iteration writes about, with the code of the reason and the node it names."""
    news = PlanDeduplicator()
    found = []
    for loop in loops:
        written = news.select_changes(*build_plan_and_outcomes(loop), partial(find_settled_pods, loop=loop))
        entries = () if written is None else written[0].not_done
        found.append(
            [
                (str(ref), entry.reason.code, entry.reason.facts.get("node", ""))
                for entry in entries
                for ref in entry.about
            ]
        )
    return found


WAITS = unschedulable_loop(waiting("p"), reasons=(LIMIT,))


def test_a_pod_that_got_its_place_is_reported_once():
    (_, *then) = find_written_codes(WAITS, placed_now("p", "n1"), placed_now("p", "n1"))

    assert then == [[("pod/default/p", "HasPlace", "n1")], []]


def test_a_pod_that_is_nowhere_is_not_reported_as_running():
    assert find_written_codes(WAITS, after(loop_result(), seconds=10))[1] == [("pod/default/p", "WaitsNoMore", "")]


def test_a_turn_that_saw_nothing_or_did_not_plan_leaves_what_was_reported():
    blind = after(LoopResult(number=8, at=NOON, policy=loop_result().policy, ended_early=LIMIT), seconds=10)
    unplanned = after(loop_result(waiting("p")), seconds=20)

    written = find_written_codes(WAITS, blind, unplanned)[1:]
    assert [about for entries in written for about, *_ in entries if about.startswith("pod/")] == []
    assert find_written_codes(WAITS, blind, unplanned, placed_now("p", "n1"))[-1] == [
        ("pod/default/p", "HasPlace", "n1")
    ]


# ---- groups in quiet turns


def standing_of(*, target: int = 2, ready: int = 2, autoscaled: bool = True, most: int = 10) -> ClusterHealth:
    growing = ScaleUpRequest(group="g", increase=target - ready, since=NOON, expected=NOON) if target > ready else None
    readiness = Readiness(ready=tuple(f"n{number}" for number in range(ready)))
    group = ObservedGroup(id="g", min_size=1, max_size=most, target_size=target, autoscaled=autoscaled)
    one = GroupHealth(
        group=group, target_size=target, readiness=readiness, scale_up_request=growing, backoff=None, is_healthy=True
    )
    return ClusterHealth(at=NOON, groups={"g": one})


def find_notes(*loops: LoopResult) -> list[list[Reason]]:
    notes = GroupNotes()
    return [[not_done.reason for not_done in notes.build(loop)] for loop in loops]


def find_note(health: ClusterHealth) -> Reason:
    ((reason,),) = find_notes(loop_result(health=health))
    assert reason.code == "GroupAsItIs"
    return reason


def test_a_quiet_group_is_reported_with_its_sizes_and_limits():
    note = find_note(standing_of())
    assert note.facts == {"size": 2, "state": "steady", "min": 1, "max": 10}
    assert re.findall(r"\d+", note.message) == ["2", "2", "1", "10"], "nodes, ready, minimum, maximum"
    unbounded = find_note(standing_of(target=1, ready=1, most=2**31 - 1))
    assert unbounded.facts == {"size": 1, "state": "steady", "min": 1, "max": 2**31 - 1}
    assert re.findall(r"\d+", unbounded.message) == ["1", "1", "1"], "nodes, ready, minimum"
    fixed = find_note(standing_of(autoscaled=False))
    assert re.findall(r"\d+", fixed.message) == ["2", "2"], "nodes, ready"
    assert fixed.facts["state"] == "fixed"


def test_a_group_that_grew_is_reported_with_the_time_and_what_is_on_its_way():
    grows = scaled_up_loop(scale_up(option("g", size=2), waiting("p"), nodes=2), health=standing_of())
    quiet = after(loop_result(health=standing_of(target=4, ready=2)), seconds=10)

    none, (note,) = find_notes(grows, quiet)
    assert none == []
    assert (note.code, note.facts["size"], note.facts["state"]) == ("GroupAsItIs", 4, "growing")
    sizes, upcoming, growth = note.message.split("; ")
    assert re.findall(r"\d+", sizes) == ["4", "2", "1", "10"], "nodes, ready, minimum, maximum"
    assert re.findall(r"\d+", upcoming) == ["2"]
    assert "from 2 to 4 at 2026-01-01 12:00:00 UTC" in growth


def test_a_group_that_lost_a_node_is_reported_with_the_time():
    loses = loop_result(health=standing_of(), scale_down=ScaleDownPart(finished=(ended(removal("n9")),)))

    ((note,),) = find_notes(loses)
    assert note.message.endswith("node n9 at 2026-01-01 12:00:00 UTC")


def test_a_turn_that_could_not_look_says_nothing_of_groups():
    assert find_notes(loop_result(health=None)) == [[]]


def test_the_size_of_a_quiet_group_is_news_only_when_it_changed():
    news, notes = PlanDeduplicator(), GroupNotes()
    reported = []
    for seconds, target in ((0, 2), (10, 2), (20, 3)):
        one = after(loop_result(health=standing_of(target=target, ready=target)), seconds=seconds)
        plan, outcomes = build_plan_and_outcomes(one)
        found = news.select_changes(structs.replace(plan, not_done=(*plan.not_done, *notes.build(one))), outcomes)
        reported.append(0 if found is None else len(found[0].not_done))
    assert reported == [1, 0, 1]
