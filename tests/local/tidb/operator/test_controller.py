"""The simulated TiDB operator: what a TidbCluster becomes, how it is sized, and what its status shows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.local.tidb.builders import CLUSTERS, CORE, SETS, LocalTidbCluster, base_cluster, group_cluster

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def world() -> Iterator[LocalTidbCluster]:
    with LocalTidbCluster() as world:
        yield world


def test_a_cluster_becomes_sets_services_and_claims(world: LocalTidbCluster) -> None:
    world.make(base_cluster())
    world.after(60)

    assert world.names("statefulsets", SETS.rpartition("/")[0]) == ["db-pd", "db-tidb", "db-tikv"]
    assert world.names("services") == ["db-pd", "db-pd-peer", "db-tidb", "db-tidb-peer", "db-tikv-peer"]
    assert world.names("pods") == ["db-pd-0", "db-tidb-0", "db-tidb-1", "db-tikv-0", "db-tikv-1", "db-tikv-2"]
    assert world.names("persistentvolumeclaims") == [
        "pd-db-pd-0",
        "tikv-db-tikv-0",
        "tikv-db-tikv-1",
        "tikv-db-tikv-2",
    ]


def test_pods_carry_the_labels_that_others_find_them_by(world: LocalTidbCluster) -> None:
    world.make(base_cluster())
    labels = world.after(60).get(f"{CORE}/pods/db-tikv-0")["metadata"]["labels"]

    assert labels["app.kubernetes.io/instance"] == "db"
    assert labels["app.kubernetes.io/component"] == "tikv"
    assert labels["app.kubernetes.io/managed-by"] == "tidb-operator"


def test_a_container_asks_for_cpu_and_memory_and_the_claim_for_storage(world: LocalTidbCluster) -> None:
    world.make(base_cluster())
    world.after(60)

    container = world.get(f"{CORE}/pods/db-tikv-0")["spec"]["containers"][0]
    assert container["image"] == "pingcap/tikv:v7.5.0"
    assert container["resources"]["requests"] == {"cpu": "4", "memory": "16Gi"}
    claim = world.get(f"{CORE}/persistentvolumeclaims/tikv-db-tikv-0")
    assert claim["spec"]["resources"]["requests"] == {"storage": "100Gi"}
    assert claim["status"]["phase"] == "Bound"


def test_the_status_shows_sizes_stores_and_that_all_is_well(world: LocalTidbCluster) -> None:
    world.make(base_cluster())
    status = world.after(60).cluster()["status"]

    assert status["tikv"]["phase"] == "Normal"
    assert status["tikv"]["statefulSet"]["replicas"] == 3
    assert status["tikv"]["statefulSet"]["readyReplicas"] == 3
    assert status["tikv"]["bootStrapped"] is True
    assert {store["podName"]: store["state"] for store in status["tikv"]["stores"].values()} == {
        "db-tikv-0": "Up",
        "db-tikv-1": "Up",
        "db-tikv-2": "Up",
    }
    assert status["tidb"]["statefulSet"]["replicas"] == 2
    assert [condition["status"] for condition in status["conditions"]] == ["True"]


def test_a_cluster_that_has_settled_is_not_written_again(world: LocalTidbCluster) -> None:
    world.make(base_cluster())
    before = world.after(120).cluster()["metadata"]["resourceVersion"]

    assert world.after(3_600).cluster()["metadata"]["resourceVersion"] == before


def test_a_group_joins_the_pd_of_its_base_and_has_none_itself(world: LocalTidbCluster) -> None:
    world.make(base_cluster())
    world.after(60)
    world.make(group_cluster())
    world.after(60)

    assert world.names("statefulsets", SETS.rpartition("/")[0]) == ["auto-1-tikv", "db-pd", "db-tidb", "db-tikv"]
    assert world.stores()["auto-1-tikv-0"] == "Up"
    reported = world.cluster("auto-1")["status"]["tikv"]
    assert [store["podName"] for store in reported["stores"].values()] == ["auto-1-tikv-0"]


def test_more_tikv_replicas_are_there_at_once(world: LocalTidbCluster) -> None:
    world.make(base_cluster())
    world.after(60)
    world.patch("db", tikv={"replicas": 5})

    assert world.replicas("db-tikv") == 5
    world.after(60)
    assert list(world.stores().values()) == ["Up"] * 5


def test_fewer_tikv_replicas_wait_until_pd_has_buried_the_store(world: LocalTidbCluster) -> None:
    world.make(base_cluster(tikv=5))
    world.after(60)
    world.patch("db", tikv={"replicas": 4})
    world.after(1)

    assert world.stores()["db-tikv-4"] == "Offline"
    assert world.replicas("db-tikv") == 5
    assert world.cluster()["status"]["tikv"]["phase"] == "Scale"
    world.after(120)
    assert world.stores()["db-tikv-4"] == "Tombstone"
    assert world.replicas("db-tikv") == 4
    status = world.cluster()["status"]["tikv"]
    assert [store["podName"] for store in status["tombstoneStores"].values()] == ["db-tikv-4"]
    assert len(status["stores"]) == 4
    assert "tikv-db-tikv-4" not in world.names("persistentvolumeclaims")


def test_stores_leave_one_after_the_other(world: LocalTidbCluster) -> None:
    world.make(base_cluster(tikv=5))
    world.after(60)
    world.patch("db", tikv={"replicas": 3})

    for _ in range(200):
        assert list(world.after(1).stores().values()).count("Offline") <= 1
    assert world.replicas("db-tikv") == 3


def test_a_store_that_pd_does_not_let_go_keeps_its_pod(world: LocalTidbCluster) -> None:
    world.make(base_cluster(tikv=3))
    world.after(60)
    world.patch("db", tikv={"replicas": 2})
    world.after(600)

    assert world.replicas("db-tikv") == 3
    assert world.stores()["db-tikv-2"] == "Up"
    reported = [
        event["message"] for event in world.get(f"{CORE}/events")["items"] if event["reason"] == "FailedScaleIn"
    ]
    assert "can not remove store" in reported[0]


def test_a_pod_that_never_held_anything_goes_at_once(world: LocalTidbCluster) -> None:
    world.make(base_cluster())
    world.after(60)
    huge = group_cluster()
    huge["spec"]["tikv"]["requests"]["cpu"] = "64"
    huge["spec"]["tikv"].pop("limits")
    world.make(huge)
    world.after(60)
    world.patch("auto-1", tikv={"replicas": 0})
    world.after(20)

    assert world.replicas("auto-1-tikv") == 0
    assert set(world.stores()) == {"db-tikv-0", "db-tikv-1", "db-tikv-2"}


def test_a_drained_store_lets_its_pod_go_at_once(world: LocalTidbCluster) -> None:
    world.make(base_cluster())
    world.make(group_cluster())
    world.after(60)
    store = world.store("auto-1-tikv-0")["store"]["id"]
    assert world.pd("DELETE", f"/pd/api/v1/store/{store}")[0] == 200
    world.after(60)
    assert world.stores()["auto-1-tikv-0"] == "Tombstone"
    world.patch("auto-1", tikv={"replicas": 0})
    world.after(15)

    assert world.replicas("auto-1-tikv") == 0
    assert "auto-1-tikv-0" not in world.names("pods")


def test_everything_goes_with_its_cluster(world: LocalTidbCluster) -> None:
    world.make(base_cluster())
    world.after(60)
    world.delete("db")
    world.after(60)

    assert world.names("pods") == []
    assert world.names("services") == []
    assert "db-simulated-pd" not in world.names("configmaps")


def test_another_image_rolls_through_the_pods(world: LocalTidbCluster) -> None:
    world.make(base_cluster())
    world.after(60)
    world.patch("db", version="v8.1.0")

    assert world.cluster()["status"]["tikv"]["phase"] == "Upgrade"
    world.after(120)
    assert world.cluster()["status"]["tikv"]["phase"] == "Normal"
    image = world.get(f"{CORE}/pods/db-tikv-2")["spec"]["containers"][0]["image"]
    assert image == "pingcap/tikv:v8.1.0"
    assert len(world.stores()) == 3


def test_a_paused_cluster_is_left_alone(world: LocalTidbCluster) -> None:
    world.make(base_cluster())
    world.after(60)
    world.patch("db", paused=True, tikv={"replicas": 5})
    world.after(60)

    assert world.replicas("db-tikv") == 3


def test_a_set_that_is_deleted_comes_back_with_the_same_stores(world: LocalTidbCluster) -> None:
    world.make(base_cluster())
    world.after(60)
    assert world.ask("DELETE", f"{SETS}/db-tikv").status == 200
    world.after(60)

    assert world.replicas("db-tikv") == 3
    assert list(world.stores().values()) == ["Up"] * 3


def test_without_a_cluster_nothing_is_written(world: LocalTidbCluster) -> None:
    before = world.get(CLUSTERS)["metadata"]["resourceVersion"]

    assert world.after(3_600).get(CLUSTERS)["metadata"]["resourceVersion"] == before
