"""Many requests into an empty region, with agents lost in the middle and a failed creation; then all are deleted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from plimsoll.fleet.config.policy_documents import DYNAMIC_SCALING
from tests.effort import IS_LONG
from tests.fleet.agent.chain_world import MACHINES, MANAGED, ChainWorld

if TYPE_CHECKING:
    from pathlib import Path

REQUESTS = 30 if IS_LONG else 8
LARGER = 2
MOST_NODES = 36 if IS_LONG else 15
"""A cluster has a third of it in units, so that three clusters are needed."""
PLACED_WITHIN = 60
"""Minutes after which a request without room fails, and names region and size (docs/design/fleet.md 1.6)."""


def count_units(chain: ChainWorld) -> dict[str, tuple[int, int]]:
    """Claimed and possible units by cluster."""
    found = {}
    for row in chain.list_ready():
        units = row["dynamic_capacity_info"].get("standard", {})
        found[row["cluster_id"]] = (sum(chain.get_claims(row["cluster_id"]).values()), units.get("max_units", 0))
    return found


def check_room(chain: ChainWorld) -> None:
    assert all(claimed <= most for claimed, most in count_units(chain).values()), count_units(chain)


def list_ended(chain: ChainWorld) -> list[dict[str, Any]]:
    """Requests that are ready, or failed with a reason."""
    kafkas = chain.list_kafkas().values()
    return [kafka for kafka in kafkas if kafka["status"] == "ready" or kafka.get("failed_reason")]


@pytest.mark.slow
def test_requests_into_an_empty_region_are_served_or_fail_with_a_reason_and_nothing_is_left_of_them(tmp_path: Path):
    with ChainWorld(tmp_path, most=MOST_NODES) as chain:
        chain.documents[DYNAMIC_SCALING]["cluster_creation"] = {"count_backlog": True, "max_parallel": 3}
        chain.start()
        for number in range(REQUESTS):
            plan = "standard.x2" if number < LARGER else "standard.x1"
            assert chain.create_kafka(f"kafka-{number}", plan).status == 202
        chain.pass_until(lambda: chain.ocm.list_calls("clusters.create"), minutes=2)
        chain.ocm.clusters.fail_creations()

        def is_half_served() -> bool:
            check_room(chain)
            return len(list_ended(chain)) >= REQUESTS // 3

        chain.pass_until(is_half_served, minutes=PLACED_WITHIN, step_s=30)
        chain.are_agents_lost = True
        chain.pass_by(20 * 60)
        chain.are_agents_lost = False

        def is_served() -> bool:
            check_room(chain)
            return len(list_ended(chain)) == REQUESTS

        chain.pass_until(is_served, minutes=PLACED_WITHIN, step_s=30)
        kafkas = chain.list_kafkas()
        failed = {name: kafka["failed_reason"] for name, kafka in kafkas.items() if kafka["status"] != "ready"}
        assert all("us-east-1" in reason for reason in failed.values()), failed
        assert len(failed) <= REQUESTS // 4
        assert len([call for call in chain.ocm.list_calls("clusters.create") if call.status == 201]) >= 3

        delete_everything(chain, kafkas)
        check_that_nothing_is_left(chain)


def delete_everything(chain: ChainWorld, kafkas: dict[str, Any]) -> None:
    for kafka in kafkas.values():
        assert chain.call("DELETE", f"/kafkas/{kafka['id']}", query="async=true").status == 202
    chain.pass_until(lambda: not chain.list_kafkas(), minutes=30)
    for row in chain.list_clusters("failed"):
        answer = chain.call_admin("POST", f"/admin/clusters/{row['id']}/retire")
        assert answer.status < 300, answer
    chain.pass_until(lambda: len(chain.list_clusters()) == 1, minutes=60)
    chain.pass_by(1800)


def check_that_nothing_is_left(chain: ChainWorld) -> None:
    (row,) = chain.list_clusters()
    cluster_id = row["cluster_id"]
    assert row["status"] == "ready"
    assert [found.id for found in chain.ocm.clusters.list_clusters()] == [cluster_id]
    assert chain.embedded.list_ids() == (cluster_id,)
    assert chain.list_items(cluster_id, MANAGED) == []
    assert chain.get_claims(cluster_id) == {}
    names = [found["metadata"]["name"] for found in chain.list_items(cluster_id, "/api/v1/namespaces")]
    assert [name for name in names if name.startswith(("kafka-", "reserved-"))] == []
    assert len(chain.list_items(cluster_id, MACHINES)) == 6
    assert chain.list_items(cluster_id, "/apis/kafka.strimzi.io/v1/kafkas") == []
