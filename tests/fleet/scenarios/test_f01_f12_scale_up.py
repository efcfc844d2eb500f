"""Scale-up from outside: rows are imported, the service runs, and the API shows what it made of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from structlog.testing import capture_logs

from plimsoll.fleet.config.policy_documents import DYNAMIC_SCALING
from plimsoll.fleet.model.statuses import ClusterStatus, ClusterType
from tests.fleet.fleet_rows import NOW

if TYPE_CHECKING:
    from tests.fleet.service import FleetScenario

STANDARD = "capacity/aws.us-east-1.standard"


def get_last_reason(fleet: FleetScenario, subject: str = STANDARD) -> str:
    reason: str = fleet.list_decisions(subject)[0]["reason"]
    return reason


def test_f01_a_region_without_a_cluster_gets_one(fleet: FleetScenario):
    fleet.offer(standard={}).start()
    (cluster,) = fleet.list_clusters()
    assert cluster["status"] == "cluster_accepted"
    assert cluster["multi_az"] is True
    assert cluster["supported_instance_type"] == "standard"
    assert cluster["provider_type"] == "ocm"
    assert not cluster.get("cluster_id")
    decision = fleet.list_decisions(f"cluster/{cluster['id']}")[0]
    assert (decision["worker"], decision["reason"], decision["outcome"]) == (
        "dynamic_scale_up",
        "BiggestDoesNotFit",
        "Done",
    )


def test_f02_a_cluster_for_developers_has_one_zone(fleet: FleetScenario):
    fleet.offer(developer={}).start()
    (cluster,) = fleet.list_clusters()
    assert cluster["multi_az"] is False


def test_f03_a_cluster_that_is_being_made_is_enough(fleet: FleetScenario):
    fleet.offer(standard={}).start()
    before = fleet.list_clusters()
    fleet.run_passes(3)
    assert [cluster["id"] for cluster in fleet.list_clusters()] == [before[0]["id"]]
    assert get_last_reason(fleet) == "Ongoing"


def test_f04_a_creation_of_another_type_does_not_block(fleet: FleetScenario):
    fleet.offer(standard={}, developer={})
    fleet.add_cluster("a", status=ClusterStatus.PROVISIONING)
    fleet.start()
    assert [cluster["supported_instance_type"] for cluster in fleet.list_created()] == ["developer"]


def test_f05_a_consumed_limit_comes_first(fleet: FleetScenario):
    fleet.offer(standard={"limit": 5, "slack": 5})
    fleet.add_cluster("a", used=5)
    fleet.start()
    assert fleet.list_created() == []
    assert get_last_reason(fleet) == "LimitReached"


def test_f06_limit_zero_closes_a_type(fleet: FleetScenario):
    fleet.offer(standard={"limit": 0}).start()
    assert fleet.list_clusters() == []
    refused = fleet.create_kafka("orders")
    assert (refused.status, refused.code) == (403, "24")
    assert refused.document["code"] == "KAFKAS-MGMT-24"


def test_f07_free_units_on_two_clusters_do_not_hold_the_biggest_size(fleet: FleetScenario):
    fleet.offer(standard={})
    fleet.add_cluster("a", used=9)
    fleet.add_cluster("b", used=9)
    fleet.start()
    assert len(fleet.list_created()) == 1
    assert fleet.list_decisions(STANDARD)[0]["inputs"]["free"] == 2


def test_f08_slack_decides(fleet: FleetScenario):
    fleet.offer(standard={})
    fleet.add_cluster("a", used=8)
    fleet.start()
    assert fleet.list_created() == []
    assert get_last_reason(fleet) == "Enough"


def test_f08_less_than_the_slack_is_free(fleet: FleetScenario):
    fleet.offer(standard={"slack": 3})
    fleet.add_cluster("a", used=8)
    fleet.start()
    assert len(fleet.list_created()) == 1
    assert get_last_reason(fleet) == "BelowSlack"


def test_f09_a_cluster_that_is_deleted_has_no_capacity(fleet: FleetScenario):
    fleet.offer(standard={"slack": 10})
    fleet.add_cluster("a", used=1)
    fleet.add_cluster("b", units=30, status=ClusterStatus.DEPROVISIONING, delete_requested_at=NOW)
    fleet.start()
    assert len(fleet.list_created()) == 1
    assert fleet.list_decisions(STANDARD)[0]["inputs"]["free"] == 9


def test_f10_a_failed_cluster_has_no_capacity(fleet: FleetScenario):
    fleet.documents[DYNAMIC_SCALING]["cluster_creation"] = {"retry_initial": "0s", "retry_max": "0s", "max_failed": 0}
    fleet.offer(standard={})
    fleet.add_cluster("a", units=50, status=ClusterStatus.FAILED)
    fleet.start()
    assert len(fleet.list_created()) == 1


def test_f11_a_cluster_of_a_customer_has_no_capacity(fleet: FleetScenario):
    fleet.offer(standard={})
    fleet.add_cluster("a", units=50, cluster_type=ClusterType.ENTERPRISE)
    fleet.start()
    assert len(fleet.list_created()) == 1


def test_f12_without_the_trigger_the_decision_is_shown_and_logged(fleet: FleetScenario):
    fleet.documents[DYNAMIC_SCALING]["enable_dynamic_data_plane_scale_up"] = False
    fleet.offer(standard={})
    with capture_logs() as logged:
        fleet.start()
    assert fleet.list_clusters() == []
    decision = fleet.list_decisions(STANDARD)[0]
    assert (decision["decision"], decision["reason"]) == ("evaluated only", "BiggestDoesNotFit")
    assert decision["inputs"]["biggest"] == 2
    assert any(event.get("worker") == "dynamic_scale_up" and event["event"] == "pass.done" for event in logged)
