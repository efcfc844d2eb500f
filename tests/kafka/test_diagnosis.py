"""`plimsoll doctor` for Kafka: Secrets and reachability of Cruise Controls."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from plimsoll.kafka.diagnosis import call_cruise_controls
from plimsoll.web.client import RequestFailed, Response
from tests.kafka.controllers.pod_set_cluster import PodSetCluster
from tests.local.apiserver.builders import deployment

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


STRIMZI = {"strimzi.io/kind": "cluster-operator"}
OURS = {"app.kubernetes.io/name": "plimsoll-kafka"}


def run_operator(world: PodSetCluster, labels: dict[str, str], *arguments: str) -> None:
    body = deployment("operator")
    body["metadata"]["labels"] = labels
    body["spec"]["template"]["spec"]["containers"][0]["args"] = list(arguments)
    world.made("/apis/apps/v1/namespaces/kafka/deployments", body)


@pytest.mark.parametrize(
    ("labels", "arguments", "level"),
    [
        (STRIMZI, (), "warn"),
        (OURS, ("run", "kafka", "--rebalance-engine=cruise-control"), "warn"),
        (OURS, ("run", "kafka", "--rebalance-engine=plimsoll"), "ok"),
        ({}, (), "ok"),
    ],
)
def test_a_missing_secret_and_a_silent_server_are_a_warning_where_an_operator_needs_them(
    labels: dict[str, str], arguments: tuple[str, ...], level: str
):
    with PodSetCluster() as world:
        for name, is_plain in (("good", True), ("silent", True), ("secretive", False)):
            make_kafka(world, name, is_plain=is_plain)
        run_operator(world, labels, *arguments)
        finding = check(world, reachable="good")
    assert finding.level == level
    assert set(finding.details["clusters"]) == {"kafka/silent", "kafka/secretive"}
    assert finding.message.startswith("2 of 3 Cruise Controls cannot be used from here")
    assert ("no operator here needs them" in finding.message) is (level == "ok")
    if level == "warn":
        assert "kafka/secretive: Secret kafka/secretive-cluster-ca-cert does not exist" in finding.fix
        assert "no such host" in finding.fix
        assert "--rebalance-engine=cruise-control" in finding.fix


def test_of_many_cruise_controls_the_line_names_a_few_and_the_advice_all():
    with PodSetCluster() as world:
        for number in range(10):
            make_kafka(world, f"cluster-{number}", is_plain=False)
        run_operator(world, STRIMZI)
        finding = check(world)
    assert finding.message.endswith(": kafka/cluster-0, kafka/cluster-1, kafka/cluster-2, …")
    assert len(finding.fix.splitlines()) == 11


def test_a_cluster_without_kafka_has_nothing_to_reach():
    with PodSetCluster(definitions=()) as world:
        assert check(world).level == "ok"
