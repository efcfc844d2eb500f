"""Kafkas from their request until they run (docs/design/fleet.md 16), with clusters that are made meanwhile."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.fleet.ocm_service import OcmFleet


def follow_statuses(fleet: OcmFleet, kafka_id: str, *, until: str, every_s: int = 5) -> list[str]:
    """The statuses of a Kafka as a user sees them."""
    seen: list[str] = []
    for _ in range(130):
        answer = fleet.call("GET", f"/kafkas/{kafka_id}")
        assert answer.status == 200
        status = answer.document["status"]
        if not seen or seen[-1] != status:
            seen.append(status)
        if status == until:
            return seen
        fleet.pass_by(every_s)
    raise AssertionError(f"{kafka_id} is not {until}: {seen}")


def test_f22_a_kafka_is_placed_where_it_fits(ocm_fleet: OcmFleet):
    ocm_fleet.offer(standard={"limit": 12})
    first = ocm_fleet.wait_for_clusters(1)[0]
    for number in range(6):
        assert ocm_fleet.create_kafka(f"filler-{number}").status == 202
    ocm_fleet.pass_by(60)
    second = next(cluster for cluster in ocm_fleet.list_clusters() if cluster["id"] != first["id"])
    second = ocm_fleet.wait_for(second["id"], "ready")
    answer = ocm_fleet.create_kafka("orders", "standard.x2")
    assert (answer.status, answer.document["status"]) == (202, "accepted")
    seen = follow_statuses(ocm_fleet, answer.document["id"], until="ready")
    assert seen == [status for status in ("accepted", "preparing", "provisioning", "ready") if status in seen]
    assert "provisioning" in seen
    found = ocm_fleet.call_admin("GET", f"/admin/kafkas/{answer.document['id']}").document
    assert found["cluster_id"] == second["cluster_id"]
    assert found["routes_created"] is True


def test_f23_a_kafka_waits_for_the_cluster_that_is_made_for_it(ocm_fleet: OcmFleet):
    ocm_fleet.offer(standard={}).start()
    answer = ocm_fleet.create_kafka("orders")
    assert (answer.status, answer.document["status"]) == (202, "accepted")
    ocm_fleet.run_passes(2)
    assert ocm_fleet.call("GET", f"/kafkas/{answer.document['id']}").document["status"] == "accepted"
    follow_statuses(ocm_fleet, answer.document["id"], until="ready")
    assert len(ocm_fleet.list_calls("clusters.create")) == 1


def test_f23_without_a_cluster_for_an_hour_it_fails(ocm_fleet: OcmFleet):
    ocm_fleet.ocm.clusters.fail_creations(10)
    ocm_fleet.offer(standard={}).start()
    answer = ocm_fleet.create_kafka("orders", "standard.x2")
    follow_statuses(ocm_fleet, answer.document["id"], until="failed", every_s=60)
    reason = ocm_fleet.call("GET", f"/kafkas/{answer.document['id']}").document["failed_reason"]
    assert "us-east-1" in reason
    assert "x2" in reason
