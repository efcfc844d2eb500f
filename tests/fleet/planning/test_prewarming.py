"""Reserved instances: docs/design/fleet.md 4."""

from __future__ import annotations

import pytest

from plimsoll.fleet.model.clusters import StrimziVersion, VersionItem
from plimsoll.fleet.model.policy import FleetPolicy, Reserve
from plimsoll.fleet.model.statuses import ClusterStatus, KafkaStatus
from plimsoll.fleet.model.version_order import UnsortableVersion, sort_strimzi_versions
from plimsoll.fleet.planning.prewarming import count_reserved_reports, is_listed, list_reserved
from plimsoll.fleet.planning.strimzi_versions import find_latest_versions
from tests.fleet.fleet_rows import make_cluster, make_kafka, make_policy

BOTH = make_cluster("a", {"standard": 10, "developer": 10})


def reserve(**numbers: int) -> FleetPolicy:
    reserves = {name: Reserve(instances=number, size_id="x1") for name, number in numbers.items()}
    return make_policy(reserves=reserves)


def make_strimzi(version: str, *, ready: bool = True, kafka: tuple[str, ...] = ("2.7.0",)) -> StrimziVersion:
    items = tuple(VersionItem(version=text) for text in kafka)
    return StrimziVersion(version=version, ready=ready, kafkaVersions=items, kafkaIBPVersions=items)


def test_reserved_instances_are_numbered_per_type_in_stored_order():
    found = list_reserved(make_cluster("a", {"developer": 1, "standard": 1}), reserve(standard=2, developer=1))
    assert found.names == ("reserved-kafka-developer-1", "reserved-kafka-standard-1", "reserved-kafka-standard-2")


def test_the_wire_form_of_a_reserved_instance():
    (item,) = list_reserved(BOTH, reserve(standard=1)).items
    name = "reserved-kafka-standard-1"
    assert item == {
        "id": name,
        "kind": "ManagedKafka",
        "metadata": {
            "name": name,
            "namespace": name,
            "annotations": {"bf2.org/id": name, "bf2.org/placementId": name},
            "labels": {
                "bf2.org/deployment": "reserved",
                "bf2.org/kafkaInstanceProfileType": "standard",
                "bf2.org/kafkaInstanceProfileQuotaConsumed": "1",
            },
        },
        "spec": {
            "capacity": {
                "ingressPerSec": "50Mi",
                "egressPerSec": "100Mi",
                "totalMaxConnections": 9000,
                "maxDataRetentionSize": "1000Gi",
                "maxPartitions": 1500,
                "maxDataRetentionPeriod": "P14D",
                "maxConnectionAttemptsPerSec": 100,
            },
            "oauth": {"maximumSessionLifetime": 0},
            "endpoint": {"bootstrapServerHost": f"{name}-dummyhost"},
            "versions": {"kafka": "2.7.0", "strimzi": "strimzi-cluster-operator.v0.23.0-0", "kafkaIbp": "2.7"},
            "deleted": False,
        },
    }


@pytest.mark.parametrize("status", [status for status in ClusterStatus if status is not ClusterStatus.READY])
def test_a_cluster_that_is_not_ready_has_no_reserve(status: ClusterStatus):
    assert list_reserved(make_cluster("a", status=status), reserve(standard=2)).items == ()


def test_types_that_the_cluster_does_not_support_contribute_nothing():
    assert list_reserved(make_cluster("a"), reserve(developer=3, standard=0)).items == ()


@pytest.mark.parametrize(
    "versions", [(), (make_strimzi("s.v1.0.0-0", ready=False),), (make_strimzi("s.v1.0.0-0", kafka=()),)]
)
def test_without_a_usable_strimzi_nothing_is_reserved_and_the_reason_says_so(versions: tuple[StrimziVersion, ...]):
    cluster = make_cluster("a", available_strimzi_versions=versions)
    found = list_reserved(cluster, reserve(standard=2))
    assert (found.items, found.reason) == ((), "no_ready_strimzi")
    assert list_reserved(cluster, reserve(standard=0)).reason == ""


def test_versions_are_compared_as_numbers():
    found = sort_strimzi_versions(
        [make_strimzi(f"strimzi.v{text}", kafka=("2.10.0", "2.9.1")) for text in ("5.12.0-0", "5.8.0-10", "5.8.0-9")]
    )
    assert [item.version for item in found] == ["strimzi.v5.8.0-9", "strimzi.v5.8.0-10", "strimzi.v5.12.0-0"]
    assert [item.version for item in found[0].kafkaVersions] == ["2.9.1", "2.10.0"]


@pytest.mark.parametrize(
    "version", ["strimzi", "v1.2.3", "v1.2.3-", "1.2-3", "1.2.3-4x", "1.2.3-" + "9" * 40, "\uff11.2.3-4"]
)
def test_versions_without_numbers_cannot_be_sorted(version: str):
    with pytest.raises(UnsortableVersion):
        sort_strimzi_versions([make_strimzi(version)])


def test_the_latest_versions_are_those_of_the_last_ready_strimzi():
    cluster = make_cluster(
        "a",
        available_strimzi_versions=(
            make_strimzi("s.v1.0.0-0", kafka=("2.6.0", "2.7.0")),
            make_strimzi("s.v2.0.0-0", ready=False),
        ),
    )
    latest = find_latest_versions(cluster)
    assert latest is not None
    assert (latest.strimzi, latest.kafka) == ("s.v1.0.0-0", "2.7.0")


def test_an_agent_lists_kafkas_with_a_host_in_these_statuses():
    listed = {
        status
        for status in KafkaStatus
        if is_listed(make_kafka("k", cluster_id="cid-a", status=status, bootstrap_server_host="host"), BOTH)
    }
    assert listed == set(KafkaStatus) - {KafkaStatus.ACCEPTED, KafkaStatus.PREPARING, KafkaStatus.DELETING}
    assert not is_listed(make_kafka("k", cluster_id="cid-a", status=KafkaStatus.READY), BOTH)
    assert not is_listed(make_kafka("k", status=KafkaStatus.READY, bootstrap_server_host="host"), BOTH)


def test_f20_reports_of_reserved_instances_are_counted_with_zeros():
    reported = {
        "reserved-kafka-standard-1": "error",
        "reserved-kafka-standard-2": "ready",
        "reserved-kafka-developer-1": "installing",
        "reserved-kafka-premium-1": "ready",
        "reserved-kafka": "ready",
    }
    counted, strange = count_reserved_reports(BOTH, reported)
    assert {key: number for key, number in counted.items() if number} == {
        ("standard", "error"): 1,
        ("standard", "ready"): 1,
        ("developer", "installing"): 1,
    }
    assert len(counted) == 14
    assert strange == ["reserved-kafka-premium-1", "reserved-kafka"]
