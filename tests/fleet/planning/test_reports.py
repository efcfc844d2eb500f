"""Reports of agents: the state machines of docs/design/fleet.md 1.2 and 1.6, and the rules of 3.3."""

from __future__ import annotations

from typing import Any

import pytest

from plimsoll.fleet.model.kafkas import KafkaRequest, Route
from plimsoll.fleet.model.statuses import ENDING, ClusterType, KafkaStatus
from plimsoll.fleet.planning.reports import (
    InvalidReport,
    KafkaReportResult,
    ReportedStatus,
    read_cluster_report,
    read_kafka_report,
)
from plimsoll.fleet.ports import ClusterReport
from tests.fleet.fleet_rows import NOW, make_cluster, make_kafka

CLUSTER = make_cluster("a", cluster_dns="apps.a.example.com")
FULL = "Cluster has insufficient resources"
ROUTES = [
    {"name": "b", "prefix": "", "router": "r.a.example.com"},
    {"name": "c", "prefix": "admin", "router": "r.a.example.com"},
]
STRIMZI = {"version": "s.v0.23.0-0", "ready": True, "kafkaVersions": ["2.7.0"], "kafkaIbpVersions": ["2.7"]}


def make_placed(status: KafkaStatus = KafkaStatus.PROVISIONING, **changes: Any) -> KafkaRequest:
    settings = {"cluster_id": "cid-a", "status": status, "bootstrap_server_host": "k.host", "placement_id": "p1"}
    return make_kafka("k", **(settings | changes))


def ready(status: str = "True", reason: str = "", message: str = "") -> dict[str, Any]:
    return {"conditions": [{"type": "Ready", "status": status, "reason": reason, "message": message}]}


def read(kafka: KafkaRequest, report: Any) -> KafkaReportResult:
    return read_kafka_report(kafka, report, CLUSTER, NOW)


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        (("True", "Suspended", ""), "suspended"),
        (("True", "Error", ""), "ready"),
        (("Unknown", "Error", ""), "unknown"),
        (("False", "Installing", ""), "installing"),
        (("False", "Deleted", ""), "deleted"),
        (("False", "Error", ""), "error"),
        (("False", "Rejected", FULL), "rejectedClusterFull"),
        (("False", "Rejected", "other"), "rejected"),
        (("False", "", ""), "installing"),
        (("TRUE", "", ""), "ready"),
    ],
)
def test_a_ready_condition_gives_a_state(condition: tuple[str, str, str], expected: str):
    assert read(make_placed(), ready(*condition)).reported == expected


def test_the_first_ready_condition_in_any_case_wins():
    report = {
        "conditions": [{"type": "Other", "status": "False"}, {"type": "READY", "status": "True"}, {"type": "Ready"}]
    }
    assert read(make_placed(), report).reported is ReportedStatus.READY
    assert read(make_placed(), {}).reported is ReportedStatus.INSTALLING


def test_a_kafka_is_ready_once_it_has_routes():
    assert "status" not in read(make_placed(), ready()).changes
    result = read(make_placed(failed_reason="x"), ready() | {"routes": ROUTES, "adminServerURI": "https://admin"})
    assert result.changes == {
        "status": KafkaStatus.READY,
        "failed_reason": "",
        "admin_api_server_url": "https://admin",
        "routes_created": True,
        "routes": (
            Route(domain="k.host", router="r.a.example.com"),
            Route(domain="admin-k.host", router="r.a.example.com"),
        ),
    }
    assert KafkaStatus.DEPROVISION not in result.statuses


@pytest.mark.parametrize("status", [KafkaStatus.FAILED, KafkaStatus.RESUMING])
def test_failed_and_resuming_kafkas_become_ready(status: KafkaStatus):
    assert read(make_placed(status, routes_created=True), ready()).changes.get("status") is KafkaStatus.READY


def test_routes_are_stored_once():
    kafka = make_placed(routes=(Route(domain="d", router="r"),), routes_created=True)
    assert "routes" not in read(kafka, ready() | {"routes": ROUTES}).changes


@pytest.mark.parametrize(
    "routes",
    [
        [{"name": "b", "router": "r.evil.example.com"}],
        [ROUTES[0], {"name": "b", "router": ""}],
        [{"prefix": "x" * 300, "router": "r.a.example.com"}],
        ROUTES * 51,
    ],
    ids=["another domain", "no router", "too long", "too many"],
)
def test_routes_of_another_cluster_are_rejected_whole(routes: list):
    result = read(make_placed(), ready() | {"routes": routes})
    assert "routes" not in result.changes
    assert "status" not in result.changes
    assert len(result.warnings) == 1


@pytest.mark.parametrize("status", sorted(set(KafkaStatus) - ENDING - {KafkaStatus.ACCEPTED, KafkaStatus.PREPARING}))
def test_an_error_fails_a_kafka_unless_it_is_suspended(status: KafkaStatus):
    changes = read(make_placed(status), ready("False", "Error", "disk of tenant 7 is full")).changes
    if status in {KafkaStatus.SUSPENDED, KafkaStatus.SUSPENDING, KafkaStatus.FAILED}:
        assert changes == {}
    else:
        assert changes["status"] is KafkaStatus.FAILED
        assert "tenant" not in changes["failed_reason"]


def test_a_suspended_kafka_is_not_made_ready():
    for status in (KafkaStatus.SUSPENDED, KafkaStatus.SUSPENDING):
        assert "status" not in read(make_placed(status, routes_created=True), ready()).changes


@pytest.mark.parametrize("status", sorted(KafkaStatus))
def test_deleted_is_accepted_from_deprovision_only(status: KafkaStatus):
    result = read(make_placed(status), ready("False", "Deleted"))
    expected = KafkaStatus.DELETING if status is KafkaStatus.DEPROVISION else None
    assert result.changes.get("status") == expected
    if expected:
        assert result.statuses == {KafkaStatus.DEPROVISION}


@pytest.mark.parametrize("reason", ["", "Error", "Rejected", "Suspended", "StrimziUpdating"])
@pytest.mark.parametrize("status", sorted(ENDING))
def test_nothing_else_changes_a_kafka_that_goes_away(status: KafkaStatus, reason: str):
    report = ready("False", reason) | {"versions": {"kafka": "9.9.9"}, "routes": ROUTES}
    assert read(make_placed(status), report).changes == {}
    assert read(make_placed(status), ready() | {"routes": ROUTES}).changes == {}


def test_a_rejected_kafka_gets_a_new_placement_on_the_same_cluster():
    result = read(make_placed(), ready("False", "Rejected", "no"))
    assert result.needs_new_placement
    assert "cluster_id" not in result.changes
    assert result.statuses == {KafkaStatus.PROVISIONING}
    assert not read(make_placed(KafkaStatus.READY), ready("False", "Rejected", "no")).needs_new_placement


def test_a_full_cluster_gives_its_kafka_back():
    result = read(make_placed(desired_kafka_version="2.7.0"), ready("False", "Rejected", FULL))
    assert result.changes == {
        "cluster_id": "",
        "bootstrap_server_host": "",
        "desired_kafka_version": "",
        "desired_strimzi_version": "",
        "desired_kafka_ibp_version": "",
    }
    customers = make_cluster("a", cluster_type=ClusterType.ENTERPRISE)
    kept = read_kafka_report(make_placed(), ready("False", "Rejected", FULL), customers, NOW)
    assert "cluster_id" not in kept.changes
    assert kept.needs_new_placement


@pytest.mark.parametrize(
    ("reason", "column"),
    [
        ("StrimziUpdating", "strimzi_upgrading"),
        ("KafkaUpdating", "kafka_upgrading"),
        ("KafkaIbpUpdating", "kafka_ibp_upgrading"),
    ],
)
def test_upgrades_are_flags_that_another_reason_clears(reason: str, column: str):
    assert read(make_placed(KafkaStatus.READY), ready("True", reason)).changes == {column: True}
    assert read(make_placed(KafkaStatus.READY, **{column: True}), ready()).changes == {column: False}


def test_versions_and_bytes_are_stored_when_they_differ():
    report = ready() | {"versions": {"kafka": "2.8.0", "strimzi": "", "kafkaIbp": None}, "bytesStored": 7}
    assert read(make_placed(KafkaStatus.READY), report).changes == {"actual_kafka_version": "2.8.0", "bytes_stored": 7}


def test_a_report_of_another_cluster_is_ignored():
    result = read(make_placed(cluster_id="cid-b"), ready() | {"routes": ROUTES})
    assert (result.changes, len(result.warnings)) == ({}, 1)


@pytest.mark.parametrize(
    "report",
    [None, [], "x", {"conditions": 3}, {"conditions": [{"status": True}]}, {"bytesStored": -1}, {"bytesStored": 2**70}],
)
def test_a_report_that_cannot_be_read_changes_nothing(report: Any):
    result = read(make_placed(), report)
    assert (result.reported, result.changes, len(result.warnings)) == (None, {}, 1)


def test_the_plan_has_changes_of_status_and_warnings():
    plan = read(make_placed(routes_created=True), ready()).build_plan(1, NOW)
    assert next((str(action), action.reason.code) for action in plan.actions)[1] == "ReportedReady"
    ignored = read(make_placed(cluster_id="cid-b"), ready()).build_plan(1, NOW)
    assert [found.reason.code for found in ignored.not_done] == ["ReportIgnored"]


# ---- clusters


def read_cluster(**body: Any) -> ClusterReport | InvalidReport:
    return read_cluster_report(body, NOW)


def test_a_cluster_report_has_units_and_sorted_versions():
    newer = STRIMZI | {"version": "s.v0.24.0-0", "ready": False}
    report = read_cluster(
        conditions=[{"type": "Ready", "status": "True"}],
        capacity={"standard": {"maxUnits": 10, "remainingUnits": 4}},
        strimzi=[newer, STRIMZI],
    )
    assert isinstance(report, ClusterReport)
    assert (report.is_ready, report.at) == (True, NOW)
    assert (report.units["standard"].max_units, report.units["standard"].remaining_units) == (10, 4)
    assert [(strimzi.version, strimzi.ready) for strimzi in report.versions] == [
        ("s.v0.23.0-0", True),
        ("s.v0.24.0-0", False),
    ]


@pytest.mark.parametrize(
    ("status", "is_ready"), [("True", True), ("true", True), ("1", True), ("False", False), ("f", False)]
)
def test_the_status_of_the_condition_is_a_boolean(status: str, *, is_ready: bool):
    report = read_cluster(conditions=[{"type": "Ready", "status": status}])
    assert isinstance(report, ClusterReport)
    assert report.is_ready is is_ready


@pytest.mark.parametrize("conditions", [None, [], [{"type": "ready", "status": "True"}]])
def test_without_the_condition_a_cluster_is_not_ready(conditions: Any):
    report = read_cluster(conditions=conditions)
    assert isinstance(report, ClusterReport)
    assert not report.is_ready


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"conditions": [{"type": "Ready", "status": "maybe"}]}, 21),
        ({"conditions": [{"type": "Ready"}]}, 21),
        ({"strimzi": [{**STRIMZI, "kafkaIbpVersions": []}]}, 37),
        ({"strimzi": [{**STRIMZI, "kafkaVersions": None}]}, 37),
        ({"strimzi": [{"ready": True}]}, 37),
        ({"strimzi": [{**STRIMZI, "version": "latest"}]}, 8),
        ({"strimzi": [{**STRIMZI, "kafkaVersions": ["x"]}]}, 8),
        ({"capacity": {"standard": {"maxUnits": -1}}}, 8),
        ({"capacity": {"standard": {"maxUnits": 2**31}}}, 8),
        ({"capacity": []}, 8),
    ],
)
def test_bad_cluster_reports_have_the_code_of_their_error(body: dict, code: int):
    report = read_cluster_report(body, NOW)
    assert isinstance(report, InvalidReport)
    assert report.code == code
