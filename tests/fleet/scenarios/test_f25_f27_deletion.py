"""Scale-down, the second look and the deletion (docs/design/fleet.md 9 and 16) against a simulated OCM."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.fleet.fleet_rows import NOW

if TYPE_CHECKING:
    from tests.fleet.ocm_service import OcmFleet


def test_f25_an_empty_cluster_that_is_not_needed_is_deleted(ocm_fleet: OcmFleet):
    ocm_fleet.offer(standard={"slack": 5})
    provided = ocm_fleet.add_provided("a", created_at=NOW, last_report_at=None)
    ocm_fleet.add_cluster("b", used=4, provider_type="standalone", last_report_at=None)
    ocm_fleet.start()
    assert "delete_requested_at" not in ocm_fleet.wait_for("a", "deprovisioning", minutes=1)
    ocm_fleet.run_passes(1)
    calls = ocm_fleet.list_calls("clusters.delete")
    assert [call.path.rsplit("/", 1)[-1] for call in calls] == [provided]
    assert "delete_requested_at" in ocm_fleet.wait_for("a", "deprovisioning")
    ocm_fleet.wait_until_gone("a")
    assert ocm_fleet.list_provided() == ()
    assert ocm_fleet.list_calls("clusters.delete")[-1].status == 404
    assert ocm_fleet.run.run_until(ocm_fleet.database.store.find_client("agent-a")) is None
    reasons = list(dict.fromkeys(ocm_fleet.list_reasons("a")))
    assert reasons[-3:] == ["Empty", "DeleteRequested", "ClusterGone"]


def test_f26_a_cluster_stays_that_the_slack_needs(ocm_fleet: OcmFleet):
    ocm_fleet.offer(standard={"slack": 5})
    ocm_fleet.add_provided("a", last_report_at=None)
    ocm_fleet.add_cluster("b", used=6, provider_type="standalone", last_report_at=None)
    ocm_fleet.start().run_passes(5)
    assert {cluster["id"]: cluster["status"] for cluster in ocm_fleet.list_clusters()} == {"a": "ready", "b": "ready"}
    assert ocm_fleet.list_calls("clusters.delete") == ()


def test_f27_the_last_cluster_of_an_abandoned_region_is_deleted(ocm_fleet: OcmFleet):
    ocm_fleet.offer(standard={"limit": 0})
    ocm_fleet.add_provided("a", region="eu-west-1", last_report_at=None, provided_region="eu-west-1")
    ocm_fleet.start()
    ocm_fleet.wait_until_gone("a")
    assert ocm_fleet.list_provided() == ()
