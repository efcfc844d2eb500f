"""J01 live in `plimsoll up`: over sockets, from a request to moved replicas and back, within ten minutes.

Only in `make test-long`: the same story runs in virtual time in every CI.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
import urllib.error
import urllib.request
from typing import TYPE_CHECKING, Any

import pytest

from tests.e2e.up.up_processes import UpProcess, named, needs_kubectl, running
from tests.effort import IS_LONG

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

needs_kubectl()
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not IS_LONG, reason="NOT TESTED: minutes, only in make test-long"),
]
TOPICS = '[{"name": "orders", "partitions": 60, "replicationFactor": 3, "partitionSize": "64Mi"}]'
LONGEST_S = 600


class User:
    """Someone with a token and kubectl."""

    def __init__(self, up: UpProcess) -> None:
        self._up = up
        self._url = named(up.screen, r"Fleet API at (http://[0-9.:]+)")
        words = ["fleet", "token", "--user", "alice", "--org", "1", "--data", str(up.data), "--url", self._url]
        made = subprocess.run([sys.executable, "-m", "plimsoll", *words], capture_output=True, text=True, check=True)
        self._token = made.stdout.strip()
        self._began_s = time.monotonic()

    def call(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        request = urllib.request.Request(
            f"{self._url}/api/kafkas_mgmt/v1{path}",
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Authorization": f"Bearer {self._token}"},
        )
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                text = answer.read()
                return answer.status, json.loads(text) if text else None
        except urllib.error.HTTPError as error:
            return error.code, json.loads(error.read())

    def list_kafkas(self) -> dict[str, Any]:
        return {item["name"]: item for item in self.call("GET", "/kafkas")[1]["items"]}

    def wait_until(self, is_so: Callable[[], Any], what: str) -> Any:
        """What was found. The whole story may take `LONGEST_S`."""
        while not (found := is_so()):
            assert time.monotonic() - self._began_s < LONGEST_S, f"not within {LONGEST_S} s: {what}"
            time.sleep(1)
        return found

    def create(self, name: str, plan: str) -> str:
        status, answer = self.call("POST", "/kafkas?async=true", {"name": name, "plan": plan})
        assert status == 202, answer
        self.wait_until(lambda: self.list_kafkas()[name]["status"] == "ready", f"{name} is ready")
        return str(answer["id"])

    def list_contexts(self) -> list[str]:
        found = self._up.kubectl("config", "get-contexts", "-o", "name").split()
        return sorted(name for name in found if name != "plimsoll")

    def find_cluster(self, kafka: str) -> str:
        """The context of the cluster that has it."""
        (found,) = [
            context
            for context in self.list_contexts()
            if kafka
            in {item["metadata"]["name"] for item in self._up.objects("--context", context, "managedkafkas", "-A")}
        ]
        return found

    def list_objects(self, cluster: str, *arguments: str) -> list[dict[str, Any]]:
        return self._up.objects("--context", cluster, *arguments)

    def explain(self, subject: str, *options: str) -> str:
        words = [sys.executable, "-m", "plimsoll", "why", subject, "--data", str(self._up.data), *options]
        return subprocess.run(words, capture_output=True, text=True, check=True).stdout


class LiveChain:
    """What is seen of the Kafka `orders`."""

    def __init__(self, user: User, up: UpProcess, kafka_id: str) -> None:
        self._user = user
        self._up = up
        self.id = kafka_id
        self.namespace = f"kafka-{kafka_id}"
        self.cluster = user.find_cluster("orders")
        self.rebalances: set[str] = set()

    def add_topics(self) -> None:
        words = ["annotate", "kafka", "orders", "-n", self.namespace, f"simulated.plimsoll.io/topics={TOPICS}"]
        self._up.kubectl("--context", self.cluster, *words)

    def count_brokers(self) -> int:
        selector = "plimsoll.io/kafka-role=broker"
        return len(self._user.list_objects(self.cluster, "pods", "-n", self.namespace, "-l", selector))

    def change(self, plan: str, *, brokers: int, by: str) -> None:
        """To another size, until replicas have moved by a rebalance of this name."""

        def is_accepted() -> bool:
            return self._user.call("PATCH", f"/kafkas/{self.id}", {"plan": plan})[0] == 200

        self._user.wait_until(is_accepted, f"{plan} is accepted")

        def has_changed() -> bool:
            found = self._user.list_objects(self.cluster, "kafkarebalances", "-n", self.namespace)
            self.rebalances |= {item["metadata"]["name"] for item in found}
            return self.count_brokers() == brokers and by in self.rebalances and not found

        self._user.wait_until(has_changed, f"{brokers} brokers, and no rebalance")

    def count_pool_nodes(self) -> int:
        return len(self._user.list_objects(self.cluster, "nodes", "-l", "bf2.org/kafkaInstanceProfileType=standard"))


def test_j01_live(tmp_path: Path):
    with running(tmp_path / "data", "--only", "fleet", "--nodes", "0") as up:
        user = User(up)
        chain = LiveChain(user, up, user.create("orders", "standard.x1"))
        assert (chain.count_brokers(), chain.count_pool_nodes()) == (3, 3)
        chain.add_topics()
        chain.change("standard.x2", brokers=6, by="orders-auto-rebalancing-add-brokers")
        assert chain.count_pool_nodes() == 6
        chain.change("standard.x1", brokers=3, by="orders-auto-rebalancing-remove-brokers")
        bills = user.create("bills", "standard.x2")
        assert user.find_cluster("bills") != chain.cluster
        assert "is the first of" in user.explain(f"kafka/{chain.id}")
        claimed = user.explain(f"managedkafka/{chain.namespace}/orders", "--cluster", chain.cluster)
        assert "2 units become 1" in claimed
        for kafka_id in (chain.id, bills):
            assert user.call("DELETE", f"/kafkas/{kafka_id}?async=true")[0] == 202
        user.wait_until(lambda: not user.list_kafkas(), "both are gone")
        user.wait_until(lambda: len(user.list_contexts()) == 1, "one empty cluster is left")
