"""K39 on real brokers: Strimzi's definitions, a played cluster operator, and the companion that only rebalances."""

from __future__ import annotations

import copy
import json
import subprocess
from contextlib import contextmanager
from itertools import groupby
from typing import TYPE_CHECKING, Any

from plimsoll.kafka.brokers.ports import ConfigOperation
from plimsoll.kafka.settings import NAME
from tests.e2e.kafka.admins import change_broker
from tests.e2e.ports import lasting_port
from tests.e2e.up.up_processes import REPOSITORY
from tests.kafka.controllers.played_strimzi import PlayedStrimzi

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.e2e.kafka.scaling.kafka_chain import KafkaChain
    from tests.e2e.up.up_processes import UpProcess

NEW = 3
CLUSTER, POOL = "my-cluster", "brokers"
STRIMZI = REPOSITORY / "tests" / "fixtures" / "strimzi"
OURS = REPOSITORY / "deploy" / "crds" / "without-strimzi"
API_SECRET = f"{CLUSTER}-cruise-control-api"
"""Strimzi makes it for its Cruise Control."""
QUEUED = [{"mode": "add-brokers", "brokers": [NEW]}]
LEAVING = [{"mode": "remove-brokers", "brokers": [NEW]}]


class KubectlApi:
    """An API server through kubectl."""

    def __init__(self, up: UpProcess) -> None:
        self._up = up

    def read(self, path: str) -> dict[str, Any] | None:
        found = self._up.stated("get", "--raw", path)
        return json.loads(found.out) if found.code == 0 else None

    def create(self, path: str, body: dict[str, Any]) -> None:
        self._up.kubectl("create", "-n", path.split("/")[5], "-f", "-", stdin=json.dumps(body))

    def merge(self, path: str, body: dict[str, Any]) -> None:
        _, _, group, version, _, namespace, plural, name, *subresource = path.split("/")
        words = [f"{plural}.{version}.{group}", name, "-n", namespace, "--type=merge", "-p", json.dumps(body)]
        self._up.kubectl("patch", *words, *(f"--subresource={part}" for part in subresource))


@contextmanager
def strimzi_installed(chain: KafkaChain) -> Iterator[PlayedStrimzi]:
    """The cluster belongs to Strimzi, and asks the companion for automatic rebalancing."""
    up = chain.up
    kafka, modes = f"kafka/{CLUSTER}", '{"spec": {"cruiseControl": {"autoRebalance": %s}}}'
    before = up.kubectl("get", kafka, "-n", "kafka", "-o", "jsonpath={.spec.cruiseControl.autoRebalance}")
    up.kubectl("patch", kafka, "-n", "kafka", "--type=merge", "-p", modes % "null")
    up.kubectl("annotate", kafka, "-n", "kafka", "plimsoll.io/auto-rebalancing=true")
    up.kubectl("apply", "--server-side", "--force-conflicts", "-f", str(STRIMZI))
    up.kubectl("create", "secret", "generic", API_SECRET, "-n", "kafka", "--from-literal=rebalance-operator.password=p")
    api = KubectlApi(up)
    listed = {
        pod["metadata"]["name"]: pod
        for found in up.objects("strimzipodsets", "-n", "kafka")
        for pod in found["spec"]["pods"]
    }

    def build_pod(node_id: int, _labels: dict[str, Any]) -> dict[str, Any]:
        name, first = f"{CLUSTER}-{POOL}-{node_id}", f"{CLUSTER}-{POOL}-0"
        if name in listed:
            return copy.deepcopy(listed[name])
        made: dict[str, Any] = json.loads(json.dumps(listed[first]).replace(first, name))
        return made

    try:
        yield PlayedStrimzi(
            api,
            cluster=CLUSTER,
            pool=POOL,
            namespace="kafka",
            hosts_replicas=lambda broker: broker in chain.count_replicas(),
            build_pod=build_pod,
            cluster_id=up.kubectl("get", kafka, "-n", "kafka", "-o", "jsonpath={.status.clusterId}"),
        )
    finally:
        up.kubectl("delete", "secret", API_SECRET, "-n", "kafka")
        up.kubectl("apply", "--server-side", "--force-conflicts", "-f", str(OURS))
        up.kubectl("annotate", kafka, "-n", "kafka", "plimsoll.io/auto-rebalancing-")
        up.kubectl("patch", kafka, "-n", "kafka", "--type=merge", "-p", modes % before)


def list_our_writes(chain: KafkaChain) -> list[tuple[str, str]]:
    """The fields that an operator of ours owns, with the times of its last writes."""
    entries = [*chain.list_managers("kafkas", CLUSTER), *chain.list_managers("kafkanodepools", POOL)]
    return [(entry["manager"], entry["time"]) for entry in entries if entry["manager"] == NAME]


def uncordon(chain: KafkaChain) -> None:
    """As Strimzi does: the broker may have the id of one that was cordoned, and left."""
    chain.change_settings([change_broker(NEW, "cordoned.log.dirs", ConfigOperation.DELETE)])


def read_view(chain: KafkaChain) -> tuple[str, list[dict[str, Any]]]:
    """State and modes of Strimzi's view, from the companion's ConfigMap; empty while there is none."""
    found = chain.up.stated("get", "configmap", f"{CLUSTER}-auto-rebalancing", "-n", "kafka", "-o", "json")
    return parse_view(json.loads(found.out)) if found.code == 0 else ("", [])


def parse_view(config_map: dict[str, Any]) -> tuple[str, list[dict[str, Any]]]:
    view = json.loads(config_map.get("data", {}).get("strimziAutoRebalance.json", "{}"))
    return view.get("state", ""), view.get("modes") or []


@contextmanager
def watching_views(chain: KafkaChain, file: Path) -> Iterator[Callable[[], list[tuple[str, list[dict[str, Any]]]]]]:
    """All views since the beginning of the block, by a watch: a rebalance may be over between two reads."""
    words = ("get", "configmap", f"{CLUSTER}-auto-rebalancing", "-n", "kafka", "--watch", "-o", "json")
    command = ["kubectl", f"--kubeconfig={chain.kubeconfig}", *words]
    with file.open("w") as out, subprocess.Popen(command, stdout=out) as watch:
        try:
            yield lambda: [parse_view(config_map) for config_map in read_documents(file)]
        finally:
            watch.kill()


def read_documents(file: Path) -> Iterator[dict[str, Any]]:
    """The JSON documents that stand one after the other in a file; the last may be incomplete."""
    text, decoder = file.read_text().lstrip(), json.JSONDecoder()
    while text:
        try:
            document, end = decoder.raw_decode(text)
        except json.JSONDecodeError:
            return
        yield document
        text = text[end:].lstrip()


def test_k39_k01_to_k06_beside_strimzi(chain: KafkaChain, tmp_path: Path):
    address = f"127.0.0.1:{lasting_port()}"
    with chain.without_operator(), strimzi_installed(chain) as strimzi, chain.running_strimzi(address):
        before = list_our_writes(chain)
        chain.start_companion(address)
        chain.up.until(lambda: chain.has_config_map(f"{CLUSTER}-auto-rebalancing"), "the companion knows the brokers")

        def is_over(*, replicas: int) -> bool:
            strimzi.reconcile()
            if replicas > NEW and chain.count_ready() == replicas:
                uncordon(chain)
            is_idle = read_view(chain) == ("Idle", []) and not chain.up.objects("kafkarebalances", "-n", "kafka")
            return is_idle and chain.count_ready() == replicas

        with watching_views(chain, tmp_path / "views") as list_views:
            chain.up.until(list_views, "the watch has begun")
            chain.scale(4)
            chain.up.until(lambda: is_over(replicas=4) and NEW in chain.count_replicas(), "K01 to K05")
            chain.up.until(lambda: list_views()[-1] == ("Idle", []), "the watch has shown the end")
            views = [view for view, _ in groupby(list_views()) if view[1]]
            assert views == [("Idle", QUEUED), ("RebalanceOnScaleUp", QUEUED)]
            chain.scale(3)
            strimzi.reconcile()
            assert "Warning ScaleDownPreventionCheck" in chain.list_conditions("kafkas", CLUSTER)
            assert chain.find_pod(NEW) is not None
            chain.up.until(lambda: is_over(replicas=3) and chain.find_pod(NEW) is None, "K06")
            chain.up.until(lambda: ("RebalanceOnScaleDown", LEAVING) in list_views(), "the view of the removal")
        assert chain.ask(lambda admin: admin.unregister_broker(NEW)) is None, "as Strimzi does"
        assert set(chain.count_replicas()) == {0, 1, 2}
        assert list_our_writes(chain) == before, "the companion never writes a Kafka or a pool"
