"""The simulated PD over its HTTP API: stores, what it refuses, how regions and leaders move, what a restart keeps."""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from typing import TYPE_CHECKING, Any

import pytest

from tests.local.tidb.builders import CORE, LocalTidbCluster, base_cluster, group_cluster

if TYPE_CHECKING:
    from collections.abc import Iterator

API = "/pd/api/v1"


@pytest.fixture
def world() -> Iterator[LocalTidbCluster]:
    with LocalTidbCluster() as world:
        world.make(base_cluster())
        world.after(60)
        yield world


def _counts(world: LocalTidbCluster, pod: str) -> tuple[int, int]:
    status = world.store(pod)["status"]
    return status["region_count"], status["leader_count"]


def _drain(world: LocalTidbCluster, pod: str) -> tuple[int, Any]:
    return world.pd("DELETE", f"{API}/store/{world.store(pod)['store']['id']}")


# ---- stores


def test_a_store_gives_its_identity_and_size(world: LocalTidbCluster) -> None:
    found = world.store("db-tikv-1")

    assert found["store"]["address"] == "db-tikv-1.db-tikv-peer.prod.svc:20160"
    assert "state" not in found["store"]
    assert found["status"]["capacity"] == "100GiB"


def test_labels_come_from_the_configuration_as_a_map_or_as_toml(world: LocalTidbCluster) -> None:
    world.make(group_cluster())
    world.make(group_cluster("auto-2", config='[server.labels]\ngroup = "b"\n'))
    world.after(60)

    assert {"key": "specialUse", "value": "hotRegion"} in world.store("auto-1-tikv-0")["store"]["labels"]
    assert world.store("auto-2-tikv-0")["store"]["labels"] == [{"key": "group", "value": "b"}]


def test_before_the_first_store_there_is_no_cluster() -> None:
    with LocalTidbCluster() as world:
        world.make(base_cluster(tikv=0))
        world.after(60)
        status, stated = world.pd("GET", f"{API}/stores")

    assert status == 500
    assert "not bootstrapped" in stated


def test_no_pd_pod_no_answer(world: LocalTidbCluster) -> None:
    world.patch("db", pd={"replicas": 0})
    world.after(60)

    assert world.pd("GET", f"{API}/stores")[0] == 503


@pytest.mark.parametrize(
    ("path", "status"),
    [("/store/99", 404), ("/store/x", 400), ("/nothing", 404), ("/regions/check/odd", 404), ("/store/1/x", 404)],
)
def test_what_is_not_there_is_not_found(world: LocalTidbCluster, path: str, status: int) -> None:
    assert world.pd("GET", f"{API}{path}")[0] == status


def test_a_store_is_refused_when_too_few_would_be_left(world: LocalTidbCluster) -> None:
    status, stated = _drain(world, "db-tikv-0")

    assert status == 400
    assert stated == "can not remove store 1 since the number of up stores would be 2 while need 3"


def test_an_offline_store_is_emptied_and_buried_and_then_gone(world: LocalTidbCluster) -> None:
    world.make(group_cluster())
    world.after(60)
    assert _drain(world, "auto-1-tikv-0")[0] == 200
    assert world.stores()["auto-1-tikv-0"] == "Offline"
    before, _ = _counts(world, "auto-1-tikv-0")
    assert _counts(world.after(0.5), "auto-1-tikv-0")[0] < before
    world.after(60)

    assert world.stores()["auto-1-tikv-0"] == "Tombstone"
    assert _drain(world, "auto-1-tikv-0")[0] == 410
    _, listed = world.pd("GET", f"{API}/stores")
    assert listed["count"] == 3


def test_the_process_of_a_buried_store_does_not_register_again(world: LocalTidbCluster) -> None:
    world.make(group_cluster())
    world.after(60)
    _drain(world, "auto-1-tikv-0")
    world.after(3_600)

    _, listed = world.pd("GET", f"{API}/stores?state=0&state=1&state=2")
    assert listed["count"] == 4


def test_a_store_on_its_way_out_may_be_brought_back(world: LocalTidbCluster) -> None:
    world.make(group_cluster())
    world.after(60)
    store = world.store("auto-1-tikv-0")["store"]["id"]
    _drain(world, "auto-1-tikv-0")
    assert world.pd("POST", f"{API}/store/{store}/state?state=Up")[0] == 200

    assert world.after(60).stores()["auto-1-tikv-0"] == "Up"


def test_where_replicas_have_no_other_place_the_store_stays(world: LocalTidbCluster) -> None:
    """Stores for hot regions are no place for anything else."""
    world.make(group_cluster(replicas=1))
    world.after(60)
    status, _ = _drain(world, "db-tikv-2")
    assert status == 200  # PD counts stores, whatever they are for
    world.after(3_600)

    assert world.stores()["db-tikv-2"] == "Offline"
    assert _counts(world, "db-tikv-2")[0] > 0


def test_leaders_are_evicted_until_it_is_stopped(world: LocalTidbCluster) -> None:
    asked = {"name": "evict-leader-scheduler", "store_id": 1}
    assert world.pd("POST", f"{API}/schedulers", asked)[0] == 200
    world.after(30)
    assert _counts(world, "db-tikv-0") == (90, 0)
    assert "evict-leader-scheduler" in world.pd("GET", f"{API}/schedulers")[1]
    assert list(world.pd("GET", f"{API}/scheduler-config/evict-leader-scheduler/list")[1]["store-id-ranges"]) == ["1"]

    assert world.pd("DELETE", f"{API}/schedulers/evict-leader-scheduler-1")[0] == 200
    assert _counts(world.after(30), "db-tikv-0") == (90, 30)
    assert world.pd("DELETE", f"{API}/schedulers/evict-leader-scheduler-1")[0] == 404


def test_a_silent_store_is_disconnected_and_later_down(world: LocalTidbCluster) -> None:
    for number in range(12):
        world.ask("PATCH", f"/api/v1/nodes/n{number}", {"spec": {"unschedulable": True}}, content=_MERGE)
    world.ask("DELETE", f"{CORE}/pods/db-tikv-2")
    assert world.after(15).stores()["db-tikv-2"] == "Up"
    assert world.after(10).stores()["db-tikv-2"] == "Disconnected"
    assert world.pd("GET", f"{API}/regions/check/down-peer")[1]["count"] == 90
    assert world.cluster()["status"]["tikv"]["stores"]["3"]["state"] == "Disconnected"
    assert world.after(1_800).stores()["db-tikv-2"] == "Down"


def test_stores_of_a_group_are_found_by_pattern(world: LocalTidbCluster) -> None:
    world.make(group_cluster())
    world.after(60)
    _, found = world.pd("GET", f"{API}/labels/stores?name=^GROUP$&value=^pd-auto-scaling-tikv-small$")

    assert [store["store"]["id"] for store in found["stores"]] == [4]
    assert world.pd("GET", f"{API}/labels/stores?name=(&value=x")[0] == 400


def test_a_store_is_relabelled(world: LocalTidbCluster) -> None:
    assert world.pd("POST", f"{API}/store/1/label", {"zone": "a"})[0] == 200

    assert world.store("db-tikv-0")["store"]["labels"] == [{"key": "zone", "value": "a"}]


def test_replication_is_reported_as_pd_does(world: LocalTidbCluster) -> None:
    _, reported = world.pd("GET", f"{API}/config/replicate")

    assert (reported["max-replicas"], reported["enable-placement-rules"]) == (3, "false")
    assert world.pd("GET", f"{API}/config")[1]["pd-server"]["metric-storage"] == "http://simulated-prometheus:9090"


def test_missing_peers_are_made_and_counted_until_then() -> None:
    with LocalTidbCluster(speed=1.0) as world:
        world.make(base_cluster())
        world.after(10)
        assert world.pd("GET", f"{API}/regions/check/miss-peer")[1]["count"] > 0
        world.after(600)
        assert world.pd("GET", f"{API}/regions/check/miss-peer")[1]["count"] == 0
        assert world.pd("GET", f"{API}/regions/count")[1]["count"] == 90


# ---- the topology of TiDB


def test_tidb_servers_keep_their_keys_in_etcd(world: LocalTidbCluster) -> None:
    asked = {"key": _base64("/topology/tidb/"), "range_end": _base64("/topology/tidb0")}
    _, found = world.pd("POST", "/v3/kv/range", asked)
    keys = {b64decode(pair["key"]).decode(): b64decode(pair["value"]) for pair in found["kvs"]}

    address = "db-tidb-0.db-tidb-peer.prod.svc:4000"
    assert f"/topology/tidb/{address}/ttl" in keys
    assert json.loads(keys[f"/topology/tidb/{address}/info"])["labels"] == {}
    assert found["count"] == "4"
    assert world.pd("POST", "/v3/kv/range", {"key": _base64("/topology/prometheus")})[1].get("kvs") is None


def test_a_tidb_server_of_a_group_reports_its_labels(world: LocalTidbCluster) -> None:
    labels = {"group": "pd-auto-scaling-tidb-small", "resource-type": "small"}
    group = group_cluster()
    tidb = {"replicas": 1, "requests": {"cpu": "1", "memory": "1Gi"}, "config": {"labels": labels}}
    group["spec"] = {"cluster": group["spec"]["cluster"], "tidb": tidb}
    world.make(group)
    world.after(30)
    asked = {"key": _base64("/topology/tidb/auto-1-tidb-0.auto-1-tidb-peer.prod.svc:4000/info")}
    _, found = world.pd("POST", "/v3/kv/range", asked)

    assert json.loads(b64decode(found["kvs"][0]["value"]))["labels"] == labels


# ---- restarts


def test_a_restart_loses_nothing(world: LocalTidbCluster) -> None:
    world.make(group_cluster())
    world.after(60)
    world.pd("POST", f"{API}/schedulers", {"name": "evict-leader-scheduler", "store_id": 4})
    _drain(world, "auto-1-tikv-0")
    world.kill()
    world.start()
    world.after(0.05)

    assert world.stores()["auto-1-tikv-0"] == "Offline"
    assert list(world.pd("GET", f"{API}/scheduler-config/evict-leader-scheduler/list")[1]["store-id-ranges"]) == ["4"]
    assert world.after(60).stores()["auto-1-tikv-0"] == "Tombstone"


def test_another_cluster_of_the_same_name_begins_anew(world: LocalTidbCluster) -> None:
    world.delete("db")
    world.after(60)
    world.make(base_cluster())
    world.after(60)

    assert world.store("db-tikv-0")["store"]["id"] <= 3


_MERGE = "application/merge-patch+json"


def _base64(text: str) -> str:
    return b64encode(text.encode()).decode()
