"""The walk of docs/kafka-operator.md with kubectl, and what other commands show of Kafka clusters."""

from __future__ import annotations

import json
import urllib.request
from typing import TYPE_CHECKING

import pytest

from plimsoll.kafka.wire.names import build_auto_rebalance_config_map_name
from tests.e2e.ports import lasting_port
from tests.e2e.up.newcomers import Newcomer, read_page
from tests.e2e.up.up_processes import REPOSITORY, UpProcess, named, needs_kubectl, running

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

needs_kubectl()

STATE = "cruiseControl.autoRebalance.state"


@pytest.fixture(params=[()])
def up(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[UpProcess]:
    with running(tmp_path / "data", *request.param) as started:
        yield started


def test_the_walk_of_the_operators_page(up: UpProcess, tmp_path: Path):
    newcomer = Newcomer(tmp_path / "folder", up.data)
    assert newcomer.follow(read_page("docs/kafka-operator.md"), heading="## Try it") >= 24
    up.until(lambda: len(up.objects("machines")) == 3, "the machine that was bought is gone")

    listed = json.loads(newcomer.run("plimsoll kafka status -o json").out)
    assert [(cluster["namespace"], cluster["name"]) for cluster in listed] == [("kafka", "my-cluster")]
    judged = newcomer.run("plimsoll doctor --controller kafka")
    assert judged.code == 0, judged
    assert _ask_cruise_control(up, "kafkacruisecontrol/state?substates=executor&json=true")["ExecutorState"]

    up.until(lambda: up.objects("kafkarebalances", "-n", "kafka") == [], "no replicas move")
    planned = newcomer.run("plimsoll run kafka --dry-run --once")
    assert planned.code == 0, planned
    assert "kafka/kafka/my-cluster: there is nothing to do" in planned.out

    second = newcomer.run("plimsoll run kafka --once")
    assert (second.code, second.out) == (1, ""), second
    assert "nothing is done: plimsoll-up_" in second.err
    assert "holds lease kube-system/plimsoll-kafka until " in second.err


@pytest.mark.parametrize("up", [("--no-kafka-operator",)], indirect=True)
def test_the_operator_does_not_start_beside_strimzi(up: UpProcess, tmp_path: Path):
    newcomer = Newcomer(tmp_path / "folder", up.data)
    labelled = "kubectl label deployment strimzi strimzi.io/kind=cluster-operator"
    assert newcomer.run(f"kubectl create deployment strimzi --image=strimzi && {labelled}").code == 0
    for options in ("", "--once", "--namespace kafka"):
        refused = newcomer.run(f"plimsoll run kafka {options}")
        assert refused.code == 1, refused
        assert "Deployment default/strimzi watches all namespaces" in refused.err
    beside = newcomer.run("plimsoll run kafka --kafka-mode=companion --once")
    assert (beside.code, beside.out) == (0, "there is no Kafka and no KafkaRebalance\n")
    assert newcomer.run("kubectl get lease plimsoll-kafka -n kube-system").code == 0, "it acted while it led"

    up.kubectl("apply", "-f", "examples/kafka/cluster.yaml")
    up.kubectl("annotate", "kafka", "my-cluster", "-n", "kafka", "plimsoll.io/auto-rebalancing=true")
    kinds = "kafkas,kafkanodepools,kafkarebalances,strimzipodsets,pods"
    before = up.kubectl("get", kinds, "-n", "kafka", "-o", "yaml")
    beside = newcomer.run("plimsoll run kafka --kafka-mode=companion --once")
    assert (beside.code, beside.out) == (0, "kafka/kafka/my-cluster: nothing to rebalance\n")
    assert up.kubectl("get", kinds, "-n", "kafka", "-o", "yaml") == before
    up.kubectl("get", "configmap", "-n", "kafka", build_auto_rebalance_config_map_name("my-cluster"))


def _ask_cruise_control(up: UpProcess, path: str) -> dict[str, object]:
    address = named(up.screen, r"Kafka clusters at (\S+)")
    token = (up.data / "admin.token").read_text().strip()
    request = urllib.request.Request(f"{address}/{path}", headers={"Authorization": f"Bearer {token}"})
    with urllib.request.urlopen(request, timeout=10) as answer:
        found: dict[str, object] = json.load(answer)
    return found


def test_a_cluster_that_is_killed_while_replicas_move_goes_on_at_the_next_start(tmp_path: Path):
    manifest = tmp_path / "cluster.yaml"
    # Larger than in the example: the replicas still move when kubectl has seen that they do.
    manifest.write_text((REPOSITORY / "examples/kafka/cluster.yaml").read_text().replace("100Mi", "200Mi"))
    with running(tmp_path / "data") as first:
        first.kubectl("apply", "-f", str(manifest))
        _wait(first, "clusterId")
        first.kubectl("wait", "kafka/my-cluster", "-n", "kafka", "--for=condition=Ready", "--timeout=80s")
        first.kubectl("scale", "kafkanodepool/brokers", "-n", "kafka", "--replicas=4")
        _wait(first, f"{STATE}=Rebalancing")
        first.die()
    with running(tmp_path / "data") as second:
        _wait(second, f"{STATE}=Ready")
        assert second.objects("kafkarebalances", "-n", "kafka") == []
        second.kubectl("scale", "kafkanodepool/brokers", "-n", "kafka", "--replicas=3")
        second.kubectl("wait", "--for=delete", "pod/my-cluster-brokers-3", "-n", "kafka", "--timeout=80s")
        names = [found["metadata"]["name"] for found in second.objects("configmaps", "-n", "kafka")]
        assert [name for name in names if "-execution" in name] == []


def test_the_operator_as_a_process_of_its_own_serves_pages_and_ends_cleanly(up: UpProcess, tmp_path: Path):
    newcomer = Newcomer(tmp_path / "folder", up.data)
    port = lasting_port()
    with newcomer.started(f"plimsoll run kafka --dry-run --address 127.0.0.1:{port}") as operator:
        operator.read_until(lambda line: "operating Kafka clusters" in line)
        up.until(lambda: "no leader election" in _read_page(port, "healthz"), "the health page answers")
        up.kubectl("apply", "-f", "examples/kafka/cluster.yaml")
        counted = 'strimzi_reconciliations_total{kind="Kafka",namespace="kafka"}'
        up.until(lambda: counted in _read_page(port, "metrics"), "reconciles are counted")
    assert operator.process.returncode == 0


def _wait(up: UpProcess, condition: str) -> None:
    field, equals, value = condition.partition("=")
    expression = f"--for=jsonpath={{.status.{field}}}{equals}{value}"
    up.kubectl("wait", "kafka/my-cluster", "-n", "kafka", expression, "--timeout=80s")


def _read_page(port: int, page: str) -> str:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/{page}", timeout=5) as answer:
            return str(answer.read().decode())
    except OSError:
        return ""
