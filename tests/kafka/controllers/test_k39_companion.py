"""K39: beside Strimzi, with Strimzi's own definitions. K01 to K06 by what the companion stores.

A small stand-in for Strimzi gives out node ids, writes pod sets and pool statuses, and keeps brokers with replicas.
"""

from __future__ import annotations

import json
from base64 import b64encode
from typing import Any

import pytest

from plimsoll.app.kafka.cruise_control_router import CruiseControlRouter
from plimsoll.kafka.cruise_control.server.authentication import Authentication, User
from plimsoll.kafka.cruise_control.server.endpoints import Role
from plimsoll.kafka.settings import KafkaMode, KafkaSettings
from plimsoll.web.asgi_client import AsgiClient
from plimsoll.web.client import Request, Response
from tests.kafka.controllers.operator_bench import API, OperatorBench
from tests.kafka.controllers.pod_set_cluster import SETS, build_listed_pod
from tests.objects.crds.kafka_definitions import NAMESPACE, list_strimzi_definitions

ADD = "c-auto-rebalancing-add-brokers"
REMOVE = "c-auto-rebalancing-remove-brokers"
CONFIG_MAP = f"/api/v1/namespaces/{NAMESPACE}/configmaps/c-auto-rebalancing"


class CompanionBench(OperatorBench):
    """The companion, and what Strimzi would do."""

    def __init__(self, *, serves_engines: bool = True) -> None:
        """`serves_engines`: the engine of this process is the Cruise Control that Strimzi asks."""
        settings = KafkaSettings(mode=KafkaMode.COMPANION, serves_engines=serves_engines)
        super().__init__(settings=settings, definitions=list_strimzi_definitions())

    def run_strimzi(self) -> None:
        pool = self.ask("GET", f"{API}/kafkanodepools/p").body
        ids, replicas = pool.get("status", {}).get("nodeIds", []), pool["spec"]["replicas"]
        while len(ids) < replicas:
            ids = sorted([*ids, next(number for number in range(100) if number not in ids)])
        while len(ids) > replicas and not self.count_replicas(ids[-1]):
            ids = ids[:-1]
        labels = {"strimzi.io/cluster": "c", "strimzi.io/pool-name": "p", "strimzi.io/broker-role": "true"}
        pods = [build_listed_pod(number, labels={**labels}) for number in ids]
        if self.ask("GET", f"{SETS}/c-p").status == 404:
            body = {
                "apiVersion": "core.strimzi.io/v1",
                "kind": "StrimziPodSet",
                "metadata": {"name": "c-p", "labels": labels},
                "spec": {"selector": {"matchLabels": {"strimzi.io/cluster": "c"}}, "pods": pods},
            }
            self.made(SETS, body)
        else:
            self.patch(f"{SETS}/c-p", {"spec": {"pods": pods}})
        self.patch(f"{API}/kafkanodepools/p/status", {"status": {"nodeIds": ids, "roles": ["broker"]}})
        ready = [{"type": "Ready", "status": "True"}]
        self.patch(f"{API}/kafkas/c/status", {"status": {"clusterId": "x", "conditions": ready}})
        self.run.settle()
        self._end_deleted_pods()

    def make_running(self, *, is_asked: bool = True) -> None:
        self.make_kafka(modes=None, annotations={"plimsoll.io/auto-rebalancing": "true"} if is_asked else {})
        self.make_pool()
        self.run_strimzi()
        self.make_all_ready()
        replicas = [[(number + offset) % 3 for offset in range(3)] for number in range(30)]
        self.brokers.create_topic("orders", replicas, size_bytes=5_000_000)
        self.step()

    @property
    def stored(self) -> dict[str, Any]:
        found = self.ask("GET", CONFIG_MAP)
        return {} if found.status == 404 else json.loads(found.body["data"]["autoRebalance.json"])

    def run_until_done(self) -> list[str]:
        states: list[str] = []
        for _ in range(100):
            self.step()
            if (state := self.stored.get("state", "")) not in states[-1:]:
                states.append(state)
            self.run_strimzi()
            self.run_rebalances()
            self.run.advance_by(5)
            if state == "Ready" and not self.rebalances:
                return states
        raise AssertionError(f"did not end: {states}")


def test_k39_a_scale_up_beside_strimzi():
    with CompanionBench() as bench:
        bench.make_running()
        before = {kind: bench.ask("GET", f"{API}/{kind}").body["items"] for kind in ("kafkas", "kafkanodepools")}
        bench.step()
        assert bench.stored.get("state", "") == ""
        assert before == {kind: bench.ask("GET", f"{API}/{kind}").body["items"] for kind in before}, "never written"
        bench.scale(4)
        bench.run_strimzi()
        bench.step()
        assert (bench.stored["state"], bench.stored["add-brokers"]) == ("ScalingUp", [3])
        assert bench.rebalances == {}
        bench.make_ready(3)
        bench.step()
        assert bench.rebalances[ADD]["spec"] == {"mode": "add-brokers", "brokers": [3]}
        assert bench.run_until_done()[-1] == "Ready"
        assert bench.count_replicas(3) >= 20
        assert "add-brokers" not in {key for key, value in bench.stored.items() if value}
        assert "autoRebalance" not in bench.status_of_kafka, "the Kafka is Strimzi's"


def test_k39_a_scale_down_beside_strimzi():
    with CompanionBench() as bench:
        bench.make_running()
        bench.scale(4)
        bench.run_strimzi()
        bench.step()
        bench.make_ready(3)
        bench.run_until_done()
        bench.scale(3)
        bench.run_strimzi()
        assert len(bench.live) == 4
        bench.step()
        assert bench.rebalances[REMOVE]["spec"]["brokers"] == [3]
        assert bench.stored["remove-brokers"] == [3]
        assert bench.run_until_done()[-1] == "Ready"
        assert bench.count_replicas(3) == 0
        bench.run_strimzi()
        assert bench.live == ["c-p-0", "c-p-1", "c-p-2"]


def test_k39_a_kafka_that_does_not_ask_is_left_alone():
    with CompanionBench() as bench:
        bench.make_running(is_asked=False)
        bench.scale(4)
        bench.run_strimzi()
        bench.make_ready(3)
        bench.step(3)
        assert bench.rebalances == {}
        assert bench.ask("GET", CONFIG_MAP).status == 404


# ---- the engine as a Cruise Control

USERS = Authentication((User(name="operator", password="secret", role=Role.ADMIN),))
BASIC = {"Authorization": f"Basic {b64encode(b'operator:secret').decode()}"}


def ask_cruise_control(bench: OperatorBench, url: str, *, method: Any = "GET", headers: Any = BASIC) -> Response:
    router = CruiseControlRouter(bench.parts.connections, USERS)
    answer = bench.run.run_until(AsgiClient(router).send(Request(method=method, url=url, headers=headers)))
    assert isinstance(answer, Response)
    return answer


@pytest.mark.parametrize(
    "url",
    [
        "http://c-cruise-control.kafka.svc:9090/kafkacruisecontrol",
        "http://plimsoll:9090/kafka/c/kafkacruisecontrol",
        "http://plimsoll:9090/kafkacruisecontrol",
    ],
    ids=["service", "path", "only cluster"],
)
def test_k39_the_companion_serves_the_engine_of_a_cluster_that_does_not_ask(url: str):
    with CompanionBench() as bench:
        bench.make_running(is_asked=False)
        assert ask_cruise_control(bench, f"{url}/state?json=true", headers={}).status == 401
        answer = ask_cruise_control(bench, f"{url}/rebalance?dryrun=true&json=true", method="POST")
        assert (answer.status, "summary" in json.loads(answer.body)) == (200, True)
        found = ask_cruise_control(bench, f"{url}/kafka_cluster_state?json=true")
        assert json.loads(found.body)["KafkaBrokerState"]["ReplicaCountByBrokerId"] == {"0": 30, "1": 30, "2": 30}


def test_k39_a_cluster_that_is_not_there_is_not_served():
    with CompanionBench() as bench:
        bench.make_running()
        answer = ask_cruise_control(bench, "http://d-cruise-control.kafka.svc:9090/kafkacruisecontrol/state")
        assert answer.status == 404
        assert b"now: kafka/c" in answer.body


def test_k39_without_an_address_the_companion_starts_no_engine():
    with CompanionBench(serves_engines=False) as bench:
        bench.make_running()
        bench.scale(4)
        bench.run_strimzi()
        bench.make_ready(3)
        bench.step(2)
        assert bench.parts.connections.list_engines() == []


def test_k39_a_config_map_of_a_user_is_not_taken_for_the_state():
    with CompanionBench() as bench:
        url = CONFIG_MAP.rpartition("/")[0]
        bench.made(url, {"metadata": {"name": "c-auto-rebalancing"}, "data": {"mine": "yes"}})
        bench.make_running()
        bench.scale(4)
        bench.run_strimzi()
        assert bench.run.run_until(bench.parts.clusters.run("kafka", "")) is None, "pools of no cluster are left alone"
        result = bench.step()
        assert result is not None
        assert result.problem is not None
        assert "configmap/kafka/c-auto-rebalancing is not ours" in str(result.problem)
        assert bench.ask("GET", CONFIG_MAP).body["data"] == {"mine": "yes"}
