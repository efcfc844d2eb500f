"""How often a second the reference predicate answers: `check_node` on 1,000 nodes with 10 pods each.

The first rows ask about one pod on every node, as a scheduler does; preparing the pod is part of the time. The
placement rows take a fresh view for every pod, as when pods are placed one after the other.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import msgspec

from plimsoll.objects.api.nodes import Node
from plimsoll.objects.api.pods import Pod
from plimsoll.scheduling.cluster_view import ClusterView
from plimsoll.scheduling.feasibility import check_node, check_nodes
from plimsoll.scheduling.verdicts import Fits

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

NODES = 1_000
PODS_A_NODE = 10
ZONE = "topology.kubernetes.io/zone"
HOSTNAME = "kubernetes.io/hostname"
_LEAST_S = 0.5


def _node(index: int) -> Node:
    name = f"node-{index}"
    return msgspec.convert(
        {
            "metadata": {"name": name, "labels": {HOSTNAME: name, ZONE: f"zone-{index % 3}"}},
            "status": {"allocatable": {"cpu": "16", "memory": "64Gi", "pods": "110"}},
        },
        Node,
    )


def _pod(name: str, *, on: str = "", app: str = "web", **spec: Any) -> Pod:
    container = {"name": "c", "resources": {"requests": {"cpu": "500m", "memory": "1Gi"}}}
    return msgspec.convert(
        {
            "metadata": {"name": name, "namespace": "default", "labels": {"app": app}},
            "spec": {"nodeName": on, "containers": [container], **spec},
        },
        Pod,
    )


def _cluster() -> tuple[list[Node], list[Pod]]:
    nodes = [_node(index) for index in range(NODES)]
    pods = [
        _pod(f"pod-{index}", on=f"node-{index % NODES}", app=f"app-{index % 50}")
        for index in range(NODES * PODS_A_NODE)
    ]
    return nodes, pods


SELECTOR = {"matchLabels": {"app": "app-7"}}
SPREAD = {
    "topologySpreadConstraints": [
        {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": SELECTOR}
    ]
}
APART = {
    "affinity": {
        "podAntiAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": HOSTNAME, "labelSelector": SELECTOR}]
        }
    }
}
SHAPES: dict[str, dict[str, Any]] = {"plain": {}, "spread": SPREAD, "anti-affinity": APART}


def _repeated(work: Callable[[], int]) -> float:
    """Units of work a second, measured for at least half a second."""
    done = 0
    start = time.perf_counter()
    while (spent := time.perf_counter() - start) < _LEAST_S:
        done += work()
    return done / spent


def _row(name: str, value: float, unit: str, note: str) -> dict[str, Any]:
    return {"name": name, "value": round(value, 1), "unit": unit, "target": None, "met": None, "note": note}


def rows() -> Iterator[dict[str, Any]]:
    nodes, pods = _cluster()
    size = f"{NODES:,} nodes, {len(pods):,} pods"
    start = time.perf_counter()
    view = ClusterView.from_objects(nodes, pods)
    yield _row("view/build", (time.perf_counter() - start) * 1000, "ms", size)
    for shape, spec in SHAPES.items():

        def ask_every_node(shape: str = shape, spec: dict[str, Any] = spec) -> int:
            incoming = _pod(f"incoming-{shape}", app="app-7", **spec)
            for node in nodes:
                check_node(incoming, node, view)
            return NODES

        yield _row(f"feasible/{shape}", _repeated(ask_every_node), "calls/s", size)
    for shape, spec in SHAPES.items():
        yield _row(f"place/{shape}", _repeated(_placing(view, shape, spec)), "pods/s", f"every node asked; {size}")


def _placing(view: ClusterView, shape: str, spec: dict[str, Any]) -> Callable[[], int]:
    placed: dict[str, Any] = {"view": view, "count": 0}

    def place_one() -> int:
        now: ClusterView = placed["view"]
        incoming = _pod(f"new-{shape}-{placed['count']}", app="app-7", **spec)
        answers = check_nodes(incoming, now)
        fitting = next((name for name, answer in answers.items() if isinstance(answer, Fits)), None)
        placed["view"] = view if fitting is None else now.with_pod(incoming, fitting)
        placed["count"] += 1
        return 1

    return place_one


if __name__ == "__main__":
    for row in rows():
        print(f"{row['name']:24} {row['value']:>14,} {row['unit']:8} {row['note']}")
