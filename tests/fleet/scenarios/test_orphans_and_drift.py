"""Orphans and drift from outside (docs/design/fleet.md 15.4): shown, counted, and never deleted or overwritten."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from plimsoll.local.ocm.faults import CallFault, FaultKind
from plimsoll.local.ocm.requests import Autoscaling, ClusterBody, read_body
from plimsoll.web.asgi_client import call_application
from plimsoll.web.client import Response

if TYPE_CHECKING:
    from tests.fleet.ocm_service import OcmFleet

POOL = "kafka-standard"


def get_metrics(fleet: OcmFleet) -> str:
    answer = fleet.run.run_until(call_application(fleet.service.pages, "GET", "/metrics"))
    assert isinstance(answer, Response)
    return answer.body.decode()


def list_problems(fleet: OcmFleet) -> list[str]:
    """Of the list: clusters without a row."""
    problems: list[str] = fleet.call_admin("GET", "/admin/clusters").document["problems"]
    return problems


def make_orphan(fleet: OcmFleet, name: str = "mk-lost") -> str:
    body: dict[str, Any] = {
        "name": name,
        "cloud_provider": {"id": "aws"},
        "region": {"id": "us-east-1"},
        "multi_az": True,
        "nodes": {
            "compute_machine_type": {"id": "r5.xlarge"},
            "autoscale_compute": {"min_replicas": 3, "max_replicas": 18},
        },
    }
    return fleet.ocm.clusters.create(read_body(body, ClusterBody)).id


def test_a_cluster_without_a_row_is_shown_and_never_deleted(ocm_fleet: OcmFleet):
    ocm_fleet.offer(standard={})
    ocm_fleet.wait_for_clusters(1)
    assert list_problems(ocm_fleet) == []
    orphan = make_orphan(ocm_fleet)
    make_orphan(ocm_fleet, "their-own")
    ocm_fleet.run_passes(3)
    (problem,) = list_problems(ocm_fleet)
    assert "mk-lost" in problem
    assert orphan in problem
    assert 'plimsoll_fleet_orphans{provider="ocm"} 1.0' in get_metrics(ocm_fleet)
    ocm_fleet.run_passes(20)
    assert orphan in [cluster.id for cluster in ocm_fleet.list_provided()]
    assert ocm_fleet.list_calls("clusters.delete") == ()
    ocm_fleet.ocm.clusters.delete(orphan)
    ocm_fleet.run_passes(6)
    assert list_problems(ocm_fleet) == []
    assert 'plimsoll_fleet_orphans{provider="ocm"} 0.0' in get_metrics(ocm_fleet)


def test_what_a_provider_that_does_not_answer_had_is_still_shown(ocm_fleet: OcmFleet):
    ocm_fleet.offer(standard={})
    ocm_fleet.wait_for_clusters(1)
    make_orphan(ocm_fleet)
    ocm_fleet.run_passes(2)
    ocm_fleet.strike(CallFault(kind=FaultKind.STATUS, status=503, times=None))
    ocm_fleet.run_passes(4)
    assert len(list_problems(ocm_fleet)) == 1


def test_bounds_that_were_changed_by_hand_are_shown_and_left(ocm_fleet: OcmFleet):
    ocm_fleet.offer(standard={})
    (row,) = ocm_fleet.wait_for_clusters(1)
    ocm_fleet.ocm.clusters.bound_pool(row["cluster_id"], POOL, Autoscaling(min_replicas=3, max_replicas=9))
    ocm_fleet.run_passes(3)
    (problem,) = ocm_fleet.get_only()["problems"]
    assert "3..9" in problem
    assert "3..18" in problem
    line = f'plimsoll_fleet_cluster_problems{{id="{row["id"]}",problem="drift"}} 1.0'
    assert line in get_metrics(ocm_fleet)
    (cluster,) = ocm_fleet.list_provided()
    assert cluster.pools[POOL].max_replicas == 9
    ocm_fleet.ocm.clusters.bound_pool(row["cluster_id"], POOL, Autoscaling(min_replicas=3, max_replicas=18))
    ocm_fleet.run_passes(3)
    assert ocm_fleet.get_only()["problems"] == []
    assert line not in get_metrics(ocm_fleet)


def test_a_pool_that_was_deleted_by_hand_is_shown_and_not_made_again(ocm_fleet: OcmFleet):
    """It may have been deleted with what ran on it: an operator decides."""
    ocm_fleet.offer(standard={})
    (row,) = ocm_fleet.wait_for_clusters(1)
    ocm_fleet.ocm.clusters.remove_pool(row["cluster_id"], POOL)
    ocm_fleet.run_passes(3)
    (problem,) = ocm_fleet.get_only()["problems"]
    assert POOL in problem
    assert len(ocm_fleet.list_calls("machine_pools.create")) == 1


def test_an_agent_that_is_silent_is_shown(ocm_fleet: OcmFleet):
    ocm_fleet.offer(standard={})
    (row,) = ocm_fleet.wait_for_clusters(1)
    path = f"/admin/clusters/{row['id']}"
    ocm_fleet.agents.set_silent(row["cluster_id"])
    ocm_fleet.pass_by(720)
    assert ocm_fleet.call_admin("GET", path).document["problems"] == ["the agent is silent"]
    assert f'plimsoll_fleet_cluster_problems{{id="{row["id"]}",problem="agent_silent"}} 1.0' in get_metrics(ocm_fleet)
    ocm_fleet.agents.set_silent(row["cluster_id"], is_silent=False)
    ocm_fleet.pass_by(60)
    assert ocm_fleet.call_admin("GET", path).document["problems"] == []
