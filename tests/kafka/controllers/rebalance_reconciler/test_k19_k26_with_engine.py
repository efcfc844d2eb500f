"""K19 (the rebalance of a user) and K23 to K26 with our own engine, reached by the client of Cruise Control."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from plimsoll.kafka.model.rebalances import TransientReason
from tests.faults.crashes import Crashed
from tests.kafka.controllers.rebalance_reconciler.engine_control import GOOD, WITHOUT_RACKS, EngineControl
from tests.kafka.controllers.rebalance_reconciler.rebalance_cluster import RebalanceCluster

if TYPE_CHECKING:
    from collections.abc import Iterator


class EngineCluster(RebalanceCluster):
    """With our engine in place of the script."""

    def __init__(self) -> None:
        super().__init__()
        self.engine = EngineControl(self.run)
        self.controls = self.engine


@pytest.fixture
def world() -> Iterator[EngineCluster]:
    with EngineCluster() as cluster:
        cluster.engine.open()
        yield cluster
        cluster.engine.close()


def test_k19_a_proposal_error_is_shown_and_refreshed_by_the_user(world: EngineCluster):
    world.engine.describe(WITHOUT_RACKS)
    world.create()
    world.reconcile(2)
    assert (world.state(), world.reason()) == ("NotReady", "OptimizationFailureException")
    assert "RackAwareGoal" in world.message()
    assert world.engine.calls == ["add_broker true"]
    world.engine.describe(GOOD)
    world.annotate("refresh")
    world.reconcile()
    assert (world.state(), world.annotations()) == ("ProposalReady", {})
    assert world.status()["optimizationResult"]["numReplicaMovements"] > 0
    assert world.loads()["3"]["replicas"]["diff"] > 0
    world.annotate("approve")
    world.reconcile()
    assert (world.state(), world.engine.executions) == ("Rebalancing", 1)
    world.engine.finish()
    world.reconcile()
    assert world.state() == "Ready"
    assert world.engine.calls == ["add_broker true", "add_broker true", "add_broker false"]


def test_k23_stop_and_refresh(world: EngineCluster):
    world.create_automatic()
    world.reconcile(2)
    assert world.state() == "Rebalancing"
    world.annotate("stop")
    world.reconcile()
    assert world.state() == "Stopped"
    assert world.engine.calls[-1] == "stop_proposal_execution"
    world.reconcile(2)
    assert (world.state(), world.writes) == ("Stopped", [])
    world.annotate("refresh")
    world.reconcile(2)
    assert (world.state(), world.engine.executions) == ("Rebalancing", 2)
    world.engine.finish()
    world.reconcile()
    assert world.state() == "Ready"


def test_k24_a_wrong_annotation_is_named_and_left(world: EngineCluster):
    world.create()
    world.reconcile()
    world.annotate("approve")
    world.reconcile()
    world.engine.finish()
    world.reconcile()
    assert world.state() == "Ready"
    world.annotate("approve")
    world.reconcile(2)
    assert (world.state(), world.warnings()) == ("Ready", ["InvalidAnnotation"])
    assert world.annotations() == {"strimzi.io/rebalance": "approve"}
    assert world.engine.executions == 1


def test_k25_a_lost_session_becomes_a_new_proposal(world: EngineCluster):
    world.create()
    world.reconcile()
    world.annotate("approve")
    world.reconcile()
    session = world.status()["sessionId"]
    world.engine.restart()
    world.reconcile()
    assert world.state() == "ProposalReady"
    assert world.status()["sessionId"] != session
    assert world.engine.calls == ["add_broker true", "add_broker false", "add_broker true"]


def test_k26_an_unreachable_cruise_control_is_waited_for(world: EngineCluster):
    world.engine.is_down = True
    world.create()
    world.reconcile(2)
    assert (world.state(), world.reason()) == ("NotReady", TransientReason.CONNECTION)
    world.engine.is_down = False
    world.reconcile()
    assert (world.state(), world.annotations()) == ("ProposalReady", {})


def test_an_execution_whose_answer_was_lost_is_found_by_its_request(world: EngineCluster):
    world.create()
    world.reconcile()
    world.annotate("approve")
    world.engine.crashes_after = "add_broker false"
    with pytest.raises(Crashed):
        world.reconcile()
    assert world.engine.executions == 1
    assert world.state() == "ProposalReady"
    world.reconcile()
    assert (world.state(), world.engine.executions) == ("Rebalancing", 1)
    world.engine.finish()
    world.reconcile()
    assert (world.state(), world.annotations()) == ("Ready", {})
