"""K19 (the rebalance of a user), K23, K24, K25, K26, and the whole life of a rebalance, through the Kubernetes API."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from plimsoll.kafka.model.rebalances import RebalanceRefused
from plimsoll.kafka.reporting.rebalance_reporter import RebalanceResult
from tests.kafka.controllers.rebalance_reconciler.rebalance_cluster import PROPOSAL, RebalanceCluster
from tests.objects.crds.kafka_definitions import list_our_definitions, list_strimzi_definitions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.kafka.controllers.rebalance_reconciler.rebalance_cluster import Json

FAILURE = RebalanceRefused(
    reason="OptimizationFailureException", message="[RackAwareGoal] Insufficient number of racks"
)


@pytest.fixture
def world() -> Iterator[RebalanceCluster]:
    with RebalanceCluster() as cluster:
        yield cluster


@pytest.mark.parametrize("definitions", [list_our_definitions, list_strimzi_definitions])
def test_the_life_of_a_rebalance(definitions: Callable[[], list[Json]]):
    with RebalanceCluster(definitions=definitions()) as cluster:
        live(cluster)


def live(world: RebalanceCluster) -> None:
    """From a new rebalance to one that is Ready."""
    world.create()
    world.reconcile()
    assert world.state() == "ProposalReady"
    status = world.status()
    assert status["observedGeneration"] == 1
    assert status["sessionId"] == world.cruise_control.tasks[0].id
    assert status["optimizationResult"] == {**PROPOSAL["summary"], "afterBeforeLoadConfigMap": "r"}
    assert status["progress"] == {"rebalanceProgressConfigMap": "r"}
    config_map = world.config_map()
    assert config_map is not None
    (owner,) = config_map["metadata"]["ownerReferences"]
    found = world.get()
    assert found is not None
    assert (owner["kind"], owner["name"], owner["uid"]) == ("KafkaRebalance", "r", found["metadata"]["uid"])
    assert config_map["data"]["completedByteMovementPercentage"] == "0"
    assert world.loads()["3"]["replicas"]["diff"] > 0

    world.reconcile()
    assert world.writes == [], "it waits for a user"
    assert world.cruise_control.calls == ["dry-run"]

    world.annotate("approve")
    world.reconcile()
    assert (world.state(), world.annotations()) == ("Rebalancing", {})
    assert world.status()["sessionId"] == world.cruise_control.tasks[1].id
    world.cruise_control.moved_mb = 25
    world.run.advance_by(60)
    world.reconcile()
    config_map = world.config_map()
    assert config_map is not None
    assert config_map["data"]["completedByteMovementPercentage"] == "25"
    assert "executorState.json" in config_map["data"]
    assert "brokerLoad.json" in config_map["data"]

    world.cruise_control.finish()
    world.reconcile()
    assert world.state() == "Ready"
    assert "sessionId" not in world.status()
    config_map = world.config_map()
    assert config_map is not None
    assert config_map["data"]["completedByteMovementPercentage"] == "100"
    assert config_map["data"]["estimatedTimeToCompletionInMinutes"] == "0"
    assert "executorState.json" not in config_map["data"]
    assert world.cruise_control.executed == [(3,)]
    assert {"ProposalReady", "Rebalancing", "Ready"} <= set(world.events())
    world.reconcile(3)
    assert world.writes == []


def test_k19_a_proposal_error_is_shown_and_refreshed_by_the_user(world: RebalanceCluster):
    world.cruise_control.refusal = FAILURE
    world.create()
    world.reconcile(3)
    assert (world.state(), world.reason()) == ("NotReady", "OptimizationFailureException")
    assert world.message() == FAILURE.message
    assert world.cruise_control.calls == ["dry-run"], "it waits for a user"
    world.cruise_control.refusal = None
    world.annotate("refresh")
    world.reconcile()
    assert (world.state(), world.annotations()) == ("ProposalReady", {})
    world.annotate("approve")
    world.reconcile()
    world.cruise_control.finish()
    world.reconcile()
    assert world.state() == "Ready"


def test_k23_stop_and_refresh(world: RebalanceCluster):
    world.create_automatic()
    world.reconcile(2)
    assert world.state() == "Rebalancing"
    world.cruise_control.stops_slowly = True
    world.annotate("stop")
    world.reconcile()
    assert world.state() == "Stopped"
    assert "sessionId" not in world.status()
    assert "strimzi.io/rebalance" not in world.annotations()
    assert world.cruise_control.changes == ["dry-run", "real-run", "stop"]
    world.reconcile(3)
    assert (world.state(), world.writes) == ("Stopped", [])

    world.annotate("refresh")
    world.reconcile(3)
    assert world.state() == "ProposalReady", "the executor has not stopped yet"
    assert world.warnings() == ["CruiseControlExecutorState"]
    world.cruise_control.finish_stop()
    world.reconcile()
    assert (world.state(), world.warnings()) == ("Rebalancing", [])
    world.cruise_control.finish()
    world.reconcile()
    assert world.state() == "Ready"


def test_k24_a_wrong_annotation_is_named_and_left(world: RebalanceCluster):
    world.create()
    world.reconcile()
    world.annotate("approve")
    world.reconcile()
    world.cruise_control.finish()
    world.reconcile()
    world.annotate("approve")
    world.reconcile()
    assert (world.state(), world.warnings()) == ("Ready", ["InvalidAnnotation"])
    assert world.annotations() == {"strimzi.io/rebalance": "approve"}
    assert world.events().count("InvalidAnnotation") == 1
    world.reconcile(3)
    assert world.writes == []
    world.annotate(None)
    world.reconcile()
    assert (world.state(), world.warnings()) == ("Ready", [])


def test_k25_a_lost_session_becomes_a_new_proposal(world: RebalanceCluster):
    world.create()
    world.reconcile()
    world.annotate("approve")
    world.reconcile()
    session = world.status()["sessionId"]
    world.cruise_control.restart()
    world.reconcile()
    assert world.state() == "ProposalReady"
    assert "sessionId" in world.status()
    assert world.cruise_control.changes == ["dry-run", "real-run", "dry-run"]
    # Cruise Control counts its tasks anew.
    world.annotate("approve")
    world.reconcile()
    assert world.status()["sessionId"] == session
    world.cruise_control.finish()
    world.reconcile()
    assert world.state() == "Ready"


def test_k25_a_session_that_is_lost_while_it_is_computed(world: RebalanceCluster):
    world.cruise_control.is_slow = True
    world.create()
    world.reconcile()
    assert world.state() == "PendingProposal"
    world.cruise_control.restart()
    world.reconcile()
    assert world.state() == "PendingProposal"
    world.cruise_control.compute()
    world.reconcile()
    assert world.state() == "ProposalReady"


def test_k26_an_unreachable_cruise_control_is_waited_for(world: RebalanceCluster):
    world.cruise_control.is_down = True
    world.create()
    world.reconcile()
    assert (world.state(), world.reason()) == ("NotReady", "CruiseControlRetriableConnectionException")
    (result,) = world.results
    assert isinstance(result, RebalanceResult)
    assert result.retry_after_s == 30
    world.reconcile(2)
    assert (world.state(), world.writes) == ("NotReady", [])
    world.cruise_control.is_down = False
    world.reconcile()
    assert (world.state(), world.annotations()) == ("ProposalReady", {})


def test_k26_an_execution_outlives_an_unreachable_cruise_control(world: RebalanceCluster):
    world.cruise_control.moved_mb = 25
    world.create()
    world.reconcile()
    world.annotate("approve")
    world.reconcile()
    session = world.status()["sessionId"]
    world.cruise_control.is_down = True
    world.reconcile(3)
    assert (world.state(), world.status()["sessionId"]) == ("Rebalancing", session)
    assert world.warnings() == ["CruiseControlRetriableConnectionException"]
    world.cruise_control.is_down = False
    world.reconcile()
    assert (world.state(), world.warnings()) == ("Rebalancing", [])
    world.cruise_control.finish()
    world.reconcile()
    assert world.state() == "Ready"
    assert world.cruise_control.executed == [(3,)]
