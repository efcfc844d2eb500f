"""`plimsoll doctor` for Kafka: Secrets and reachability of Cruise Controls."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from plimsoll.kafka.diagnosis import call_cruise_controls
from plimsoll.web.client import RequestFailed, Response
from tests.kafka.controllers.pod_set_cluster import PodSetCluster

if TYPE_CHECKING:
    from plimsoll.kube.diagnosis.findings import Finding
    from plimsoll.web.client import Request

PLAIN = json.dumps({"encryption": {"type": "none"}, "authentication": {"type": "none"}})
STATE = json.dumps({"ExecutorState": {"state": "NO_TASK_IN_PROGRESS"}, "version": 1}).encode()


class FakeWeb:
    """Answers for the Cruise Control of one cluster, and is silent for all others."""

    def __init__(self, reachable: str) -> None:
        self._reachable = reachable

    async def send(self, request: Request) -> Response | RequestFailed:
        if f"//{self._reachable}-cruise-control." in request.url:
            return Response(status=200, body=STATE)
        return RequestFailed(problem=f"cannot reach {request.url}: no such host")


def make_kafka(world: PodSetCluster, name: str, *, is_plain: bool, has_cruise_control: bool = True) -> None:
    annotations = {"strimzi.io/internal-cluster-security": PLAIN} if is_plain else {}
    config = {"webserver.security.enable": "false"}
    body = {
        "apiVersion": "kafka.strimzi.io/v1",
        "kind": "Kafka",
        "metadata": {"name": name, "annotations": annotations},
        "spec": {"kafka": {}, **({"cruiseControl": {"config": config}} if has_cruise_control else {})},
    }
    world.made("/apis/kafka.strimzi.io/v1/namespaces/kafka/kafkas", body)


def check(world: PodSetCluster, *, reachable: str = "") -> Finding:
    return world.run.run_until(call_cruise_controls(world.connect("doctor"), "", FakeWeb(reachable)))


def test_cruise_controls_that_answer_are_counted():
    with PodSetCluster() as world:
        make_kafka(world, "good", is_plain=True)
        make_kafka(world, "without", is_plain=True, has_cruise_control=False)
        finding = check(world, reachable="good")
    assert (finding.level, finding.message) == ("ok", "1 Cruise Control can be used")


def test_a_missing_secret_and_a_silent_server_are_named_for_their_cluster():
    with PodSetCluster() as world:
        for name, is_plain in (("good", True), ("silent", True), ("secretive", False)):
            make_kafka(world, name, is_plain=is_plain)
        finding = check(world, reachable="good")
    assert finding.level == "warn"
    assert set(finding.details["clusters"]) == {"kafka/silent", "kafka/secretive"}
    assert "Secret kafka/secretive-cluster-ca-cert does not exist" in finding.message
    assert "no such host" in finding.message
    assert "--rebalance-engine=cruise-control" in finding.fix


def test_a_cluster_without_kafka_has_nothing_to_reach():
    with PodSetCluster(definitions=()) as world:
        assert check(world).level == "ok"
