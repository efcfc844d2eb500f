"""Terraforming from outside (docs/design/fleet.md 16): the service, a simulated OCM and agents, over HTTP."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.fleet.ocm_service import OcmFleet

KEY = "bf2.org/kafkaInstanceProfileType"


def test_f13_a_cluster_is_made_with_its_bounds_and_its_pool(ocm_fleet: OcmFleet):
    ocm_fleet.offer(standard={}).start()
    row = ocm_fleet.wait_for(ocm_fleet.get_only()["id"], "ready")
    (created,) = ocm_fleet.list_calls("clusters.create")
    assert created.body["name"] == f"mk-{row['id']}"[:15]
    assert created.body["nodes"] == {
        "compute_machine_type": {"kind": "MachineType", "id": "r5.xlarge"},
        "autoscale_compute": {"kind": "MachinePoolAutoscaling", "min_replicas": 3, "max_replicas": 18},
    }
    assert created.body["multi_az"] is True
    (pool,) = ocm_fleet.list_calls("machine_pools.create")
    assert (pool.body["id"], pool.body["instance_type"]) == ("kafka-standard", "r5.xlarge")
    assert (pool.body["autoscaling"]["min_replicas"], pool.body["autoscaling"]["max_replicas"]) == (3, 18)
    assert pool.body["labels"] == {KEY: "standard"}
    assert pool.body["taints"] == [{"key": KEY, "value": "standard", "effect": "NoExecute"}]
    issuer = ocm_fleet.service.issuer
    assert issuer is not None
    token = issuer.issue_agent_token(row["client_id"])
    answer = ocm_fleet.call("GET", f"/agent-clusters/{row['cluster_id']}", token=token)
    assert answer.document["spec"]["capacity"] == {"standard": {"maxNodes": 18}}
    assert row["dynamic_capacity_info"]["standard"] == {"max_nodes": 18, "max_units": 6, "remaining_units": 6}
    assert row["cluster_dns"] == f"apps.mk-{row['id']}"[:20] + ".fleet.example.com"


def test_f13_the_agent_gets_its_account_and_its_intervals(ocm_fleet: OcmFleet):
    ocm_fleet.offer(standard={}).start()
    row = ocm_fleet.wait_for(ocm_fleet.get_only()["id"], "ready")
    installed = {call.body["addon"]["id"]: call.body for call in ocm_fleet.list_calls("addons.create")}
    assert set(installed) == {"managed-kafka", "kas-fleetshard-operator"}
    items = installed["kas-fleetshard-operator"]["parameters"]["items"]
    parameters = {item["id"]: item["value"] for item in items}
    secret = parameters.pop("sso-secret")
    assert len(secret) > 30
    assert parameters == {
        "sso-auth-server-url": "http://fleet.test/auth/agent",
        "sso-client-id": row["client_id"],
        "control-plane-url": "http://fleet.test",
        "cluster-id": row["cluster_id"],
        "poll-interval": "15s",
        "resync-interval": "60s",
    }
    (objects,) = ocm_fleet.list_calls("syncsets.create")
    assert [resource["kind"] for resource in objects.body["resources"]] == ["Namespace"]
    assert secret not in repr(ocm_fleet.call_admin("GET", "/admin/clusters").document)


def test_f13_a_setup_that_is_complete_is_only_read(ocm_fleet: OcmFleet):
    ocm_fleet.offer(standard={}).start()
    ocm_fleet.wait_for(ocm_fleet.get_only()["id"], "ready")
    before = len(ocm_fleet.list_calls())
    ocm_fleet.run_passes(20)
    assert {call.method for call in ocm_fleet.list_calls()[before:] if call.call != "token"} == {"GET"}


def test_f14_a_creation_that_fails_is_followed_by_another_one(ocm_fleet: OcmFleet):
    ocm_fleet.configure_creation(retry_initial="0s", retry_max="0s")
    ocm_fleet.ocm.clusters.fail_creations(message="no quota for r5.xlarge")
    ocm_fleet.offer(standard={}).start()
    first = ocm_fleet.get_only()["id"]
    failed = ocm_fleet.wait_for(first, "failed")
    assert failed["problems"] == ["no quota for r5.xlarge"]
    ocm_fleet.run_passes(1)
    second = next(cluster for cluster in ocm_fleet.list_clusters() if cluster["id"] != first)
    ocm_fleet.wait_for(second["id"], "ready")
    assert len(ocm_fleet.list_calls("clusters.create")) == 2
    assert len(ocm_fleet.list_provided()) == 2, "what a failed creation left is not deleted unasked"


def test_f14_creations_that_fail_are_capped_until_one_is_retired(ocm_fleet: OcmFleet):
    ocm_fleet.configure_creation(retry_initial="30s", retry_max="30m", max_failed=2)
    ocm_fleet.ocm.clusters.fail_creations(3)
    ocm_fleet.offer(standard={}).start()
    ocm_fleet.pass_by(1200)
    assert len(ocm_fleet.list_calls("clusters.create")) == 2
    assert ocm_fleet.list_decisions("capacity/aws.us-east-1.standard")[0]["reason"] == "CreateBackoff"
    failed = ocm_fleet.list_clusters("failed")[0]
    assert ocm_fleet.call_admin("POST", f"/admin/clusters/{failed['id']}/retire").status == 200
    ocm_fleet.wait_until_gone(failed["id"])
    assert failed["cluster_id"] not in [cluster.id for cluster in ocm_fleet.list_provided()]
    ocm_fleet.pass_by(120)
    assert len(ocm_fleet.list_calls("clusters.create")) == 3
