"""Guards, bad input, objects of users, pauses and deletion of rebalances, through the Kubernetes API."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from plimsoll.core.plans import Result
from plimsoll.core.selectors import LabelSelector
from plimsoll.kafka.model.rebalances import NotEnoughWindows, RebalanceRefused, TransientReason
from plimsoll.kafka.reporting.rebalance_reporter import build_sentence
from plimsoll.operator.pause import ActionGuard
from tests.kafka.controllers.rebalance_reconciler.rebalance_cluster import CONFIG_MAPS, KAFKA, RebalanceCluster
from tests.kafka.controllers.rebalance_reconciler.test_rebalance_crashes import OPEN_DEFINITIONS

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def world() -> Iterator[RebalanceCluster]:
    with RebalanceCluster(definitions=OPEN_DEFINITIONS) as cluster:
        yield cluster


# ---- guards


def test_an_object_that_is_gone_is_nothing(world: RebalanceCluster):
    world.create()
    world.delete()
    assert world.reconcile_one("r") is None
    assert (world.writes, world.cruise_control.calls) == ([], [])


def test_a_template_is_never_processed(world: RebalanceCluster):
    world.create(annotations={"strimzi.io/rebalance-template": "true", "strimzi.io/rebalance": "approve"})
    world.reconcile(2)
    assert world.status() == {}
    assert (world.writes, world.cruise_control.calls) == ([], [])


def test_a_missing_label_and_a_missing_kafka_are_named_and_renewed(world: RebalanceCluster):
    world.create("a", cluster="")
    world.create("b", cluster="nowhere")
    world.reconcile(2)
    assert [(world.state(name), world.reason(name)) for name in "ab"] == [
        ("NotReady", "InvalidResourceException"),
        ("NotReady", "NoSuchResourceException"),
    ]
    assert world.writes == []
    world.edit({"metadata": {"labels": {"strimzi.io/cluster": "c"}}}, "a")
    world.make_kafka("nowhere")
    world.reconcile()
    assert [world.state(name) for name in "ab"] == ["ProposalReady", "ProposalReady"]


def test_a_kafka_of_another_operator_is_ignored():
    with RebalanceCluster(selector=LabelSelector.from_parts({"team": "a"}), definitions=OPEN_DEFINITIONS) as world:
        world.make_kafka("ours", labels={"team": "a"})
        world.create("a")
        world.create("b", cluster="ours")
        world.reconcile()
        assert (world.status("a"), world.state("b")) == ({}, "ProposalReady")


def test_a_kafka_that_is_not_ready_is_waited_for(world: RebalanceCluster):
    world.set_kafka(is_ready=False)
    world.create()
    world.reconcile()
    assert (world.state(), world.reason(), world.cruise_control.calls) == ("NotReady", "KafkaNotReady", [])
    world.set_kafka(is_ready=True)
    world.reconcile()
    assert world.state() == "ProposalReady"


def test_an_execution_outlives_a_kafka_that_is_not_ready(world: RebalanceCluster):
    world.cruise_control.moved_mb = 10
    world.create_automatic()
    world.reconcile(2)
    session = world.status()["sessionId"]
    world.set_kafka(is_ready=False)
    world.reconcile(2)
    assert (world.state(), world.status()["sessionId"], world.warnings()) == ("Rebalancing", session, ["KafkaNotReady"])
    world.set_kafka(is_ready=True)
    world.reconcile()
    assert world.warnings() == []
    world.cruise_control.finish()
    world.reconcile()
    assert (world.state(), world.cruise_control.executed) == ("Ready", [(3,)])


def test_a_kafka_without_cruise_control_is_named_and_renewed(world: RebalanceCluster):
    world.make_kafka("plain", spec={})
    world.create(cluster="plain")
    world.reconcile()
    assert (world.state(), world.reason()) == ("NotReady", "InvalidResourceException")
    assert "cruiseControl" in world.message()
    world.patch(f"{KAFKA}/kafkas/plain", {"spec": {"cruiseControl": {}}})
    world.reconcile()
    assert world.state() == "ProposalReady"


def test_a_secret_that_is_missing_is_waited_for(world: RebalanceCluster, monkeypatch: pytest.MonkeyPatch):
    missing = RebalanceRefused(
        reason="NoSuchResourceException", message="Secret kafka/c-cluster-ca-cert", is_transient=True
    )

    async def find(_kafka: Any) -> RebalanceRefused:
        return missing

    with monkeypatch.context() as patched:
        patched.setattr(world.cruise_control, "find", find)
        world.create()
        world.reconcile(2)
        assert (world.state(), world.reason()) == ("NotReady", TransientReason.ACCESS_MISSING)
        assert world.writes == []
    world.reconcile()
    assert world.state() == "ProposalReady"


def test_a_paused_rebalance_is_left_alone_and_its_execution_is_found_again(world: RebalanceCluster):
    world.create_automatic()
    world.reconcile(2)
    assert world.state() == "Rebalancing"
    calls = len(world.cruise_control.calls)
    world.edit({"metadata": {"annotations": {"strimzi.io/pause-reconciliation": "true"}}})
    world.reconcile(3)
    assert (world.state(), len(world.cruise_control.calls)) == ("ReconciliationPaused", calls)
    world.edit({"metadata": {"annotations": {"strimzi.io/pause-reconciliation": None}}})
    world.reconcile()
    assert (world.state(), world.cruise_control.executed) == ("Rebalancing", [(3,)])


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"mode": "add-brokers"}, "spec.brokers"),
        ({"mode": "add-brokers", "brokers": ["3"]}, "spec.brokers[0]"),
        ({"mode": "remove-brokers", "brokers": list(range(100_000))}, "spec.brokers"),
        ({"mode": "remove-disks"}, "spec.moveReplicasOffVolumes"),
        ({"rebalanceDisk": True, "goals": ["RackAwareGoal"]}, "spec.goals"),
        ({"excludedTopics": "a("}, "spec.excludedTopics"),
        ({"replicationThrottle": -1}, "spec.replicationThrottle"),
        ("nonsense", "spec"),
    ],
)
def test_a_bad_spec_is_named_by_its_field_and_the_others_go_on(world: RebalanceCluster, spec: Any, field: str):
    world.create("bad", spec=spec)
    world.create("good")
    world.reconcile()
    assert (world.state("bad"), world.reason("bad")) == ("NotReady", "InvalidResourceException")
    assert world.message("bad").startswith(f"{field}: ")
    assert world.state("good") == "ProposalReady"
    assert world.cruise_control.calls == ["dry-run"]
    world.edit({"spec": None}, "bad")
    world.edit({"spec": {"mode": "full"}}, "bad")
    world.reconcile()
    assert world.state("bad") == "ProposalReady", "a changed spec acts like refresh"


def test_two_states_are_an_error_that_a_refresh_mends(world: RebalanceCluster):
    world.create()
    conditions = [{"type": "Ready", "status": "True"}, {"type": "Rebalancing", "status": "True"}]
    world.edit({"status": {"conditions": conditions}}, part="status")
    world.reconcile(2)
    assert (world.state(), world.cruise_control.calls) == ("NotReady", [])
    assert world.message().startswith("status.conditions: ")
    world.annotate("refresh")
    world.reconcile()
    assert world.state() == "ProposalReady"


@pytest.mark.parametrize("status", [{"sessionId": 7}, {"progress": []}, {"observedGeneration": "x"}])
def test_an_object_that_cannot_be_decoded_says_why_and_is_requested_when_it_is_mended(
    world: RebalanceCluster, status: dict[str, Any]
):
    world.create("bad")
    world.edit({"status": status}, "bad", part="status")
    world.create("good")
    world.reconcile()
    assert world.state("good") == "ProposalReady"
    (field,) = status
    assert world.state("bad") == "NotReady"
    assert world.message("bad").startswith(f"kafkarebalance/kafka/bad cannot be decoded: status.{field}: ")
    assert world.events().count("UnreadableObject") == 1
    named = [not_done.reason.code for entry in world.entries() for not_done in entry.plan.not_done]
    assert named.count("UnreadableObject") == 1
    before = world.get("bad")
    world.reconcile()
    assert world.get("bad") == before, "it is written once"
    world.edit({"status": {field: None}}, "bad", part="status")
    world.reconcile()
    assert world.state("bad") == "ProposalReady"


@pytest.mark.parametrize("state", ["Rebalancing", "Ready", "Stopped"])
def test_an_object_that_cannot_be_decoded_does_not_start_again_by_itself(world: RebalanceCluster, state: str):
    world.create()
    world.edit({"status": {"conditions": [{"type": state, "status": "True"}]}}, part="status")
    world.edit({"status": {"progress": "x"}}, part="status")
    world.reconcile(2)
    assert world.state() == state
    assert world.warnings() == ["UnreadableObject"]
    assert world.cruise_control.calls == []


# ---- computations


def test_too_few_windows_are_waited_for(world: RebalanceCluster):
    world.cruise_control.refusal = NotEnoughWindows()
    world.create()
    world.reconcile(2)
    assert world.state() == "PendingProposal"
    assert "sessionId" not in world.status()
    assert world.writes == []
    world.cruise_control.refusal = None
    world.reconcile()
    assert world.state() == "ProposalReady"


def test_a_changed_spec_gets_a_new_proposal(world: RebalanceCluster):
    world.create()
    world.reconcile()
    world.edit({"spec": {"brokers": [3, 4]}})
    world.annotate("approve")
    world.reconcile()
    assert (world.state(), world.annotations()) == ("ProposalReady", {}), "the approval was of another proposal"
    assert world.status()["observedGeneration"] == 2
    assert world.cruise_control.executed == []


def test_a_user_may_annotate_while_cruise_control_answers(world: RebalanceCluster, monkeypatch: pytest.MonkeyPatch):
    world.create()
    world.reconcile()
    world.annotate("approve")
    inner = world.cruise_control.request_rebalance

    async def answer(spec: Any, *, is_dry_run: bool) -> Any:
        found = await inner(spec, is_dry_run=is_dry_run)
        patch = {"metadata": {"labels": {"seen": "yes"}, "annotations": {"strimzi.io/rebalance": "stop"}}}
        await world.patch_later(patch)
        return found

    monkeypatch.setattr(world.cruise_control, "request_rebalance", answer)
    world.reconcile()
    assert (world.state(), world.annotations()) == ("Rebalancing", {"strimzi.io/rebalance": "stop"})
    world.reconcile()
    assert (world.state(), world.annotations()) == ("Stopped", {})


# ---- objects of users


def test_a_config_map_of_a_user_is_left_alone(world: RebalanceCluster):
    mine = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "r"}, "data": {"a": "b"}}
    made = world.made(CONFIG_MAPS, mine)
    world.create()
    world.reconcile()
    assert (world.state(), world.warnings()) == ("ProposalReady", ["ConfigMapNameConflict"])
    assert world.config_map() == made


def test_a_rebalance_that_was_created_again_owns_its_config_map(world: RebalanceCluster):
    world.create()
    world.reconcile()
    world.delete()
    world.create()
    world.reconcile()
    found, config_map = world.get(), world.config_map()
    assert found is not None
    assert config_map is not None
    assert [owner["uid"] for owner in config_map["metadata"]["ownerReferences"]] == [found["metadata"]["uid"]]


def test_conditions_and_annotations_of_others_stay(world: RebalanceCluster):
    world.create(annotations={"acme.example/a": "b"}, finalizers=["acme.example/f"])
    world.edit({"status": {"conditions": [{"type": "Acme", "status": "True"}]}}, part="status")
    world.reconcile()
    world.annotate("approve")
    world.reconcile()
    assert world.state() == "Rebalancing Acme"
    assert world.annotations() == {"acme.example/a": "b"}
    world.delete()
    world.reconcile()
    found = world.get()
    assert found is not None
    assert found["metadata"]["finalizers"] == ["acme.example/f"]


# ---- pauses of Plimsoll


@pytest.mark.parametrize("guard", [ActionGuard(dry_run=True), ActionGuard(paused="maintenance")])
def test_a_pause_and_a_dry_run_change_nothing(world: RebalanceCluster, guard: ActionGuard):
    world.guard = guard
    world.create()
    world.reconcile()
    assert (world.status(), world.writes, world.cruise_control.calls) == ({}, [], [])
    (entry,) = world.entries()
    assert entry.plan.not_done[0].reason == guard.reason
    assert [(action.verb, str(action.reason)) for action in entry.plan.actions] == [
        ("request-proposal", "it is New: it needs a proposal")
    ]
    assert [outcome.result for outcome in entry.outcomes] == [Result.HELD_BACK]


def test_a_dry_run_reports_what_each_rebalance_waits_for(world: RebalanceCluster):
    world.create()
    held_back = "kafkarebalance/kafka/r: nothing is done, dry run: the action is reported, not carried out"

    def report() -> str:
        world.guard = ActionGuard(dry_run=True)
        result = world.reconcile_one("r")
        world.guard = ActionGuard()
        assert result is not None
        return build_sentence(result)

    assert report() == f"{held_back}: it is New: a proposal would be requested"
    world.reconcile(3)
    assert report() == "kafkarebalance/kafka/r: there is nothing to do"
    world.annotate("approve")
    assert report() == f"{held_back}: it is ProposalReady: its execution would be requested"
    world.reconcile(2)
    assert report() == "kafkarebalance/kafka/r: there is nothing to do"
    world.annotate("stop")
    assert report() == f"{held_back}: it is Rebalancing: its execution would be stopped"


@pytest.mark.parametrize("where", ["rebalance", "kafka"])
def test_a_pause_of_an_object_changes_nothing(world: RebalanceCluster, where: str):
    world.create()
    pause = {"metadata": {"annotations": {"plimsoll.io/paused": "true"}}}
    if where == "kafka":
        world.patch(f"{KAFKA}/kafkas/c", pause)
    else:
        world.edit(pause)
    world.reconcile()
    assert (world.status(), world.cruise_control.calls) == ({}, [])


# ---- journal


def test_the_journal_says_what_was_done_and_why_it_waits(world: RebalanceCluster):
    world.create()
    world.reconcile(3)
    (entry,) = [entry for entry in world.entries() if entry.plan.actions]
    assert entry.format_sentence().startswith("kafka/kafka/c: request-proposal x1")
    (action,) = entry.plan.actions
    assert (action.verb, str(action.target)) == ("request-proposal", "kafkarebalance/kafka/r")
    assert [str(ref) for ref in action.subjects] == ["kafkarebalance/kafka/r", "kafka/kafka/c"]
    waiting = world.entries()[-1].plan.not_done
    assert [not_done.reason.code for not_done in waiting] == ["ApprovalMissing"]


# ---- deletion


def test_a_rebalance_of_a_user_is_not_held(world: RebalanceCluster):
    world.create()
    world.reconcile()
    world.delete()
    assert world.get() is None


def test_a_deleted_automatic_rebalance_stops_first(world: RebalanceCluster):
    world.cruise_control.stops_slowly = True
    world.create_automatic()
    world.reconcile(2)
    world.delete()
    world.reconcile(3)
    assert world.get() is not None
    assert "stop" in world.cruise_control.calls
    world.cruise_control.finish_stop()
    world.reconcile()
    assert world.get() is None


def test_a_deleted_automatic_rebalance_does_not_stop_others(world: RebalanceCluster):
    world.cruise_control.foreign = True
    world.create_automatic()
    world.reconcile(3)
    assert (world.state(), world.warnings()) == ("ProposalReady", ["CruiseControlExecutorState"])
    world.delete()
    world.reconcile()
    assert world.get() is None
    assert "stop" not in world.cruise_control.calls


def test_a_deleted_automatic_rebalance_waits_for_cruise_control(world: RebalanceCluster):
    world.create_automatic()
    world.reconcile(2)
    world.cruise_control.is_down = True
    world.delete()
    world.reconcile(3)
    assert world.get() is not None
    world.cruise_control.is_down = False
    world.reconcile(2)
    assert world.get() is None
    assert world.cruise_control.running is None


def test_a_deleted_automatic_rebalance_goes_with_its_kafka(world: RebalanceCluster):
    world.create_automatic()
    world.reconcile(2)
    assert world.ask("DELETE", f"{KAFKA}/kafkas/c").status == 200
    world.delete()
    world.reconcile()
    assert world.get() is None


def test_an_execution_that_has_moved_no_data_yet_has_no_warning(world: RebalanceCluster):
    world.cruise_control.moved_mb = 0
    world.create_automatic()
    world.reconcile(3)
    assert (world.state(), world.warnings()) == ("Rebalancing", [])


def test_progress_that_is_not_known_yet_is_a_condition_and_no_event(world: RebalanceCluster):
    world.cruise_control.executor_state = "STARTING_EXECUTION"
    world.create_automatic()
    world.reconcile(3)
    assert (world.state(), world.warnings()) == ("Rebalancing", ["CruiseControlExecutorState"])
    world.run.settle()
    assert "CruiseControlExecutorState" not in world.events()
    named = [not_done.reason.code for entry in world.entries() for not_done in entry.plan.not_done]
    assert "CruiseControlExecutorState" not in named
