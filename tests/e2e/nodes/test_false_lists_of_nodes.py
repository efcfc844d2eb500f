"""Over TLS, behind a proxy that falsifies lists of nodes: the autoscaler deletes no instance and evicts no pod."""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING, Any

import pytest

from tests.e2e.nodes.live_clusters import autoscaling
from tests.e2e.nodes.recording_proxies import Answer, recording, run_with_lie
from tests.effort import share_of
from tests.faults.faulty_transport import Read
from tests.faults.lies import Lie
from tests.faults.nodes.grid import Cell, list_cells

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.e2e.nodes.live_clusters import Cluster

FLAGS = ("--max-node-provision-time=2s", "--force-delete-unregistered-nodes")
NODES = "/api/v1/nodes"
HALF_OF_NODES = Cell(Read("list", "nodes"), Lie.HALF)


def keep_half(listed: dict[str, Any]) -> bytes:
    return json.dumps({**listed, "items": listed["items"][::2]}).encode()


def keep_none(listed: dict[str, Any]) -> bytes:
    return json.dumps({**listed, "items": []}).encode()


def garble_all(listed: dict[str, Any]) -> bytes:
    taint = {"key": "odd", "effect": "PreferNoSchedule", "timeAdded": "0000-01-01T00:00:00Z"}
    items = [{**item, "spec": {**item["spec"], "taints": [taint]}, "status": "?"} for item in listed["items"]]
    return json.dumps({**listed, "items": items}).encode()


def break_off(listed: dict[str, Any]) -> bytes:
    whole = json.dumps(listed).encode()
    return whole[: len(whole) // 2]


@pytest.mark.parametrize("change", [keep_half, keep_none, garble_all, break_off])
def test_instances_of_nodes_that_a_list_misses_are_kept(cluster: Cluster, change: Callable[[dict[str, Any]], bytes]):
    with recording(cluster.kubeconfig, cluster.folder) as proxy:
        account = cluster.as_account("falsified", through=proxy)
        cluster.deploy("large", 3, cpu="3")
        with autoscaling(cluster, account, *FLAGS, name="first"):
            cluster.until(lambda: cluster.running("large") == 3, "large pods run")
        before = machines_and_pods(cluster)
        proxy.falsify = lambda path, answer: (
            Answer(answer.status, change(json.loads(answer.body))) if path == NODES else answer
        )
        with autoscaling(cluster, account, *FLAGS, name="second") as autoscaler:
            if change in {keep_half, keep_none}:
                cluster.until(lambda: "deletion.held_back" in autoscaler.stated, "the deletions are held back")
            else:
                cluster.until(lambda: proxy.falsified or "loop.done" in autoscaler.stated, "lists were falsified")
        assert machines_and_pods(cluster) == before


def machines_and_pods(cluster: Cluster) -> tuple[set[str], dict[str, str]]:
    pods = {pod["metadata"]["uid"]: pod["spec"].get("nodeName", "") for pod in cluster.items("pods")}
    return cluster.names("machines"), pods


# ---- a part of the grid of `tests/faults/nodes`


def choose_cells(count: int) -> list[Cell]:
    """The same in each run. The clock and the lease of another process cannot be changed from here."""
    others = {Lie.CLOCK_AHEAD, Lie.CLOCK_BEHIND, Lie.LEASE_STOLEN}
    cells = [cell for cell in list_cells() if cell.read.verb != "provider" and cell.fault not in others]
    return random.Random("over TLS").sample(cells, count)


def test_a_part_of_the_grid_deletes_nothing(cluster: Cluster):
    with recording(cluster.kubeconfig, cluster.folder) as proxy:
        proxy.has_faults = True
        account = cluster.as_account("lied-to", through=proxy)
        cluster.deploy("large", 3, cpu="3")
        with autoscaling(cluster, account, *FLAGS, name="grid"):
            cluster.until(lambda: cluster.running("large") == 3, "large pods run")
            before, struck = machines_and_pods(cluster), 0
            cells = [HALF_OF_NODES, *choose_cells(share_of(40))]
            for cell in cells:
                struck += run_with_lie(proxy, cell.read, cell.fault)
                assert machines_and_pods(cluster) == before, cell
    print(f"{len(cells)} cells over TLS, {struck} with falsified answers, 0 with wrongful deletions")  # noqa: T201
    assert struck > len(cells) / 3
