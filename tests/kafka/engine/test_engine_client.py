"""The refusals of our engine, written for a KafkaRebalance."""

from __future__ import annotations

from plimsoll.kafka.cruise_control.client import answers
from plimsoll.kafka.engine.engine_client import remove_wrapping
from plimsoll.kafka.model.rebalances import RebalanceRefused
from tests.kafka.cruise_control.client.recorded import build_response


def test_a_refusal_has_no_wrapping_and_names_the_field_of_the_rebalance():
    refused = answers.read_rebalance_answer(build_response("error-missing-hard-goals"))
    assert isinstance(refused, RebalanceRefused)
    assert remove_wrapping(refused.message) == (
        "the engine refuses: Missing hard goals [NetworkInboundCapacityGoal, DiskCapacityGoal, RackAwareGoal, "
        "NetworkOutboundCapacityGoal, CpuCapacityGoal, ReplicaCapacityGoal] in the provided goals: "
        "[ReplicaDistributionGoal]. Add them, or set spec.skipHardGoalCheck."
    )
