"""F29 and J02: reserved instances keep room warm, in a whole chain (docs/design/fleet.md 16 and 18)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.fleet.agent.chain_world import MANAGED, ChainWorld

if TYPE_CHECKING:
    from pathlib import Path

RESERVED = "reserved-kafka-standard"


def count_running(chain: ChainWorld, cluster_id: str, namespace: str) -> int:
    pods = [*chain.list_pods(cluster_id, namespace), *chain.list_pods(cluster_id, namespace, "controller")]
    return sum(pod["status"].get("phase") == "Running" for pod in pods)


@pytest.mark.slow
def test_f29_a_kafka_takes_reserved_room_and_the_reserve_is_complete_again(tmp_path: Path):
    with ChainWorld(tmp_path, most=18, reserved=2) as chain:
        chain.start()
        (cluster,) = chain.pass_until(chain.list_ready, minutes=30)
        cluster_id = cluster["cluster_id"]
        names = [f"{RESERVED}-1", f"{RESERVED}-2"]

        def is_complete() -> bool:
            return [count_running(chain, cluster_id, name) for name in names] == [6, 6]

        chain.pass_until(is_complete, minutes=20)
        assert chain.count_pool_machines(cluster_id) == 6
        assert chain.get_claims(cluster_id) == {}
        assert chain.list_ready()[0]["dynamic_capacity_info"]["standard"] == {
            "max_nodes": 18,
            "max_units": 6,
            "remaining_units": 6,
        }

        assert chain.create_kafka("orders").status == 202

        def is_running() -> bool:
            namespaces = [item["metadata"]["namespace"] for item in chain.list_items(cluster_id, MANAGED)]
            real = [name for name in namespaces if name not in names]
            if real and count_running(chain, cluster_id, real[0]) == 6:
                return True
            # What pre-emption freed is bought anew meanwhile, but no node comes before it runs.
            assert len(chain.list_pool_nodes(cluster_id)) == 6
            return False

        chain.pass_until(is_running, minutes=10, step_s=1)
        assert len(chain.list_pool_nodes(cluster_id)) == 6
        events = chain.list_items(cluster_id, f"/api/v1/namespaces/{names[0]}/events")
        events += chain.list_items(cluster_id, f"/api/v1/namespaces/{names[1]}/events")
        assert "Preempted" in {event["reason"] for event in events}
        chain.pass_until(lambda: chain.get_status("orders") == "ready", minutes=5)
        chain.pass_until(is_complete, minutes=20)
        assert chain.count_pool_machines(cluster_id) == 9
        assert len(chain.list_clusters()) == 1


def list_consumed(chain: ChainWorld) -> set[int]:
    """The units that decisions on the capacity of the region counted as used."""
    decisions = chain.list_decisions("capacity/aws.us-east-1.standard")
    return {item["inputs"]["consumed"] for item in decisions if "consumed" in item["inputs"]}


def find_namespace(chain: ChainWorld, cluster_id: str, name: str) -> str:
    """Of a managed Kafka; empty while there is none."""
    items = [item["metadata"] for item in chain.list_items(cluster_id, MANAGED)]
    return next((str(found["namespace"]) for found in items if found["name"] == name), "")


@pytest.mark.slow
def test_j02_a_lowered_reserve_frees_its_machines(tmp_path: Path):
    with ChainWorld(tmp_path, most=9, reserved=1) as chain:
        chain.start()
        (cluster,) = chain.pass_until(chain.list_ready, minutes=30)
        cluster_id = cluster["cluster_id"]
        reserved = f"{RESERVED}-1"

        def is_complete() -> bool:
            return count_running(chain, cluster_id, reserved) == 6

        chain.pass_until(is_complete, minutes=20)
        machines = chain.count_pool_machines(cluster_id)
        assert 3 <= machines <= 6
        assert chain.create_kafka("orders").status == 202
        namespace = chain.pass_until(lambda: find_namespace(chain, cluster_id, "orders"), minutes=5)

        def is_running() -> bool:
            if count_running(chain, cluster_id, namespace) == 6:
                return True
            assert len(chain.list_pool_nodes(cluster_id)) == machines
            return False

        chain.pass_until(is_running, minutes=10, step_s=1)
        events = chain.list_items(cluster_id, f"/api/v1/namespaces/{reserved}/events")
        assert "Preempted" in {event["reason"] for event in events}
        chain.pass_until(lambda: chain.get_status("orders") == "ready", minutes=5)
        chain.pass_until(is_complete, minutes=20)
        assert chain.count_pool_machines(cluster_id) == 6

        chain.set_reserve(0)
        chain.restart_service()
        chain.pass_until(lambda: chain.count_pool_machines(cluster_id) == 3, minutes=30)
        assert [item["metadata"]["name"] for item in chain.list_items(cluster_id, MANAGED)] == ["orders"]
        namespaces = chain.list_items(cluster_id, "/api/v1/namespaces")
        assert reserved not in {found["metadata"]["name"] for found in namespaces}
        assert chain.get_status("orders") == "ready"
        assert count_running(chain, cluster_id, namespace) == 6
        assert chain.get_claims(cluster_id) == {namespace: 1}
        assert chain.list_ready()[0]["dynamic_capacity_info"]["standard"]["remaining_units"] == 2
        assert list_consumed(chain) == {0, 1}
