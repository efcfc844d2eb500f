"""Rows as documents: what export writes, import reads, and no secret is in it."""

from __future__ import annotations

import json

import pytest

from plimsoll.fleet.model.kafkas import Route
from plimsoll.fleet.model.statuses import ClusterStatus, ClusterType, KafkaStatus
from plimsoll.fleet.wire.fleet_document import read_rows, write_rows
from tests.fleet.fleet_rows import NOW, make_cluster, make_kafka

FULL_CLUSTER = make_cluster(
    "a",
    status=ClusterStatus.DEPROVISIONING,
    cluster_type=ClusterType.ENTERPRISE,
    organization_id="acme",
    provider_spec={"x": [1, {"y": None}]},
    schedulable=False,
    delete_requested_at=NOW,
    empty_since=NOW,
    ready_at=NOW,
    last_report_at=NOW,
    client_id="agent",
)
FULL_KAFKA = make_kafka(
    "k",
    name="orders",
    cluster_id="cid-a",
    status=KafkaStatus.READY,
    routes=(Route(domain="d", router="r"),),
    routes_created=True,
    reauthentication_enabled=False,
    bytes_stored=7,
    expires_at=NOW,
    deleted_at=NOW,
)


def test_rows_survive_a_document():
    clusters = (FULL_CLUSTER, make_cluster("b", status=ClusterStatus.ACCEPTED, cluster_id=""))
    kafkas = (FULL_KAFKA, make_kafka("l"))
    document = json.loads(json.dumps(write_rows(clusters, kafkas)))
    found = read_rows(document, NOW)
    assert not isinstance(found, list)
    assert found[0] == clusters
    assert tuple(kafka for group in found[1] for kafka in group.list_kafkas()) == kafkas


def test_secrets_are_not_written():
    cluster = make_cluster("a", client_secret="hunter2")
    kafka = make_kafka("k", canary_service_account_client_secret="hunter2")
    assert "hunter2" not in json.dumps(write_rows((cluster,), (kafka,)))


def test_equal_kafkas_get_their_own_ids():
    row = {"id": "k", "cloud_provider": "aws", "region": "r", "instance_type": "standard", "size_id": "x1", "count": 2}
    found = read_rows({"kafkas": [row]}, NOW)
    assert not isinstance(found, list)
    assert [(kafka.id, kafka.name, kafka.created_at) for kafka in found[1][0].list_kafkas()] == [
        ("k-1", "k-1", NOW),
        ("k-2", "k-2", NOW),
    ]


@pytest.mark.parametrize("document", [None, [], "x", {"clusters": [{}]}, {"kafkas": [None]}, {"clusters": {}}])
def test_what_has_no_rows_is_refused(document: object):
    assert isinstance(read_rows(document, NOW), list)
