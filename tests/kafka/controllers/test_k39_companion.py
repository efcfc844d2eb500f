"""K39: beside Strimzi, with Strimzi's own definitions. K01 to K06 by Strimzi's view in the companion's ConfigMap."""

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
from tests.kafka.controllers.played_strimzi import PlayedStrimzi
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
        self._strimzi = PlayedStrimzi(
            self,
            cluster="c",
            pool="p",
            namespace=NAMESPACE,
            hosts_replicas=lambda broker: self.count_replicas(broker) > 0,
            build_pod=lambda node_id, labels: build_listed_pod(node_id, labels=labels),
        )

    # ---- the API server, for Strimzi

    def read(self, path: str) -> dict[str, Any] | None:
        found = self.ask("GET", path)
        return None if found.status == 404 else found.body

    def create(self, path: str, body: dict[str, Any]) -> None:
        self.made(path, body)

    def merge(self, path: str, body: dict[str, Any]) -> None:
        self.patch(path, body)

    # ----

    def run_strimzi(self, *, ends_after_pool_status: bool = False) -> None:
        self._strimzi.reconcile(ends_after_pool_status=ends_after_pool_status)
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

    def read_stored(self, key: str) -> dict[str, Any]:
        found = self.ask("GET", CONFIG_MAP)
        return {} if found.status == 404 else json.loads(found.body["data"][key])

    @property
    def stored(self) -> dict[str, Any]:
        return self.read_stored("autoRebalance.json")

    @property
    def stored_shipped(self) -> tuple[str, list[dict[str, Any]]]:
        """State and modes of Strimzi's view."""
        view = self.read_stored("strimziAutoRebalance.json")
        return view.get("state", ""), view.get("modes") or []

    def list_objects_of_strimzi(self) -> dict[str, Any]:
        paths = [f"{API}/kafkas", f"{API}/kafkanodepools", SETS]
        return {path: self.ask("GET", path).body["items"] for path in paths}

    def run_until_done(self) -> list[str]:
        """Gives the states of Strimzi's view in the order in which they were seen."""
        states: list[str] = []
        for _ in range(100):
            self.step()
            if (state := self.stored_shipped[0]) not in states[-1:]:
                states.append(state)
            self.run_strimzi()
            self.run_rebalances()
            self.run.advance_by(5)
            if self.stored_shipped == ("Idle", []) and not self.rebalances:
                return states
        raise AssertionError(f"did not end: {states}")


def test_k39_k01_to_k05_a_scale_up_beside_strimzi():
    queued = [{"mode": "add-brokers", "brokers": [3]}]
    with CompanionBench() as bench:
        bench.make_running()
        assert bench.stored_shipped == ("", []), "never used"
        bench.scale(4)
        bench.run_strimzi(ends_after_pool_status=True)
        bench.step()
        assert bench.stored_shipped == ("Idle", queued), "the pod set does not list the broker yet"
        bench.run_strimzi()
        bench.step()
        # K01, K02
        assert bench.rebalances == {}
        assert bench.stored_shipped == ("Idle", queued)
        before = bench.ask("GET", CONFIG_MAP).body, bench.list_objects_of_strimzi()
        bench.run.advance_by(60)
        bench.step(5)
        assert before == (bench.ask("GET", CONFIG_MAP).body, bench.list_objects_of_strimzi()), "not a single write"
        # K03
        current = bench.status
        bench.kill()
        bench.patch(f"{SETS}/c-p/status", {"status": {**current, "pods": 3, "readyPods": 3, "observedGeneration": 1}})
        bench.step()
        assert (bench.stored_shipped, bench.rebalances) == (("Idle", queued), {})
        bench.start()
        # K04
        bench.make_ready(3)
        bench.step()
        assert bench.stored_shipped == ("RebalanceOnScaleUp", queued)
        created = bench.rebalances[ADD]
        assert created["spec"] == {"mode": "add-brokers", "brokers": [3]}
        assert created["metadata"]["labels"] == {"strimzi.io/cluster": "c"}
        assert created["metadata"]["annotations"] == {"strimzi.io/rebalance-auto-approval": "true"}
        assert created["metadata"]["finalizers"] == ["strimzi.io/auto-rebalancing"]
        # K05
        assert bench.run_until_done() == ["RebalanceOnScaleUp", "Idle"]
        assert bench.count_replicas(3) >= 20
        assert sum(bench.count_replicas(broker) for broker in range(4)) == 90
        assert bench.stored["state"] == "Ready"
        assert not bench.stored.get("add-brokers")
        assert "autoRebalance" not in bench.status_of_kafka, "the Kafka is Strimzi's"


def test_k39_k06_a_scale_down_beside_strimzi():
    with CompanionBench() as bench:
        bench.make_running()
        bench.scale(4)
        bench.run_strimzi()
        bench.step()
        bench.make_ready(3)
        bench.run_until_done()
        bench.scale(3)
        bench.run_strimzi()
        bench.step()
        assert bench.conditions == {"Ready": [""], "Warning": ["ScaleDownPreventionCheck"]}
        assert bench.read_pool()["spec"]["replicas"] == 3
        assert len(bench.live) == 4
        assert bench.rebalances[REMOVE]["spec"] == {"mode": "remove-brokers", "brokers": [3]}
        assert bench.stored_shipped == ("RebalanceOnScaleDown", [{"mode": "remove-brokers", "brokers": [3]}])
        assert bench.run_until_done() == ["RebalanceOnScaleDown", "Idle"]
        assert bench.count_replicas(3) == 0
        bench.run_strimzi()
        assert bench.live == ["c-p-0", "c-p-1", "c-p-2"]
        assert bench.pool_ids() == [0, 1, 2]
        assert bench.conditions == {"Ready": [""]}
        bench.step()
        assert bench.stored_shipped == ("Idle", []), "the removal is over"
        assert "autoRebalance" not in bench.status_of_kafka


def test_k39_a_new_broker_that_is_cordoned_is_waited_for():
    """Strimzi cordons brokers that leave, too, and one of the same id returns with the cordon."""
    with CompanionBench() as bench:
        bench.make_running()
        settings = bench.brokers.catch_up().settings
        settings.restore("broker", "3", {"cordoned.log.dirs": "*"})
        bench.scale(4)
        bench.run_strimzi()
        bench.make_ready(3)
        result = bench.step(2)
        assert (bench.stored_shipped[0], bench.rebalances) == ("Idle", {})
        assert result is not None
        shown = [str(warning) for warning in result.warnings]
        assert shown == ["broker 3 cannot take replicas: all log directories are cordoned or offline"]
        settings.remove("broker", "3")
        bench.step()
        assert bench.stored_shipped[0] == "RebalanceOnScaleUp"


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
