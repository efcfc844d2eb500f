"""Load on a simulated TiDB cluster, as monitoring sees it: the queries of a planner, and the text of an exporter."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import pytest

from plimsoll.local.tidb.load.cluster_loads import LOAD
from tests.local.tidb.builders import CORE, LocalTidbCluster, base_cluster, group_cluster

if TYPE_CHECKING:
    from collections.abc import Iterator

TIKV_USED = "sum(increase(tikv_thread_cpu_seconds_total[60s])) by (instance, kubernetes_namespace)"
TIDB_USED = 'sum(increase(process_cpu_seconds_total{component="tidb"}[60s])) by (instance, kubernetes_namespace)'
QUOTA = "tikv_server_cpu_cores_quota"
STEADY = "seconds,tikv_cores,tidb_cores,storage_gib\n0,6,4,150\n"


@pytest.fixture
def world() -> Iterator[LocalTidbCluster]:
    with LocalTidbCluster() as world:
        yield world


def _loaded(world: LocalTidbCluster, curve: str = STEADY, **more: str) -> LocalTidbCluster:
    world.load(curve, **more)
    world.make(base_cluster(annotations={LOAD: "load"}))
    world.after(180)
    return world


def _ask(world: LocalTidbCluster, query: str, *, ago_s: float = 0) -> tuple[int, Any]:
    time = world.run.clock.now().timestamp() - ago_s
    body = urlencode({"query": query, "time": str(time)}).encode()
    status, answer = world.run.run_until(world.tidb.answer("POST", "/api/v1/query", body))
    return status, json.loads(answer)


def _values(world: LocalTidbCluster, query: str, **when: float) -> dict[str, float]:
    status, answer = _ask(world, query, **when)
    assert status == 200, answer
    return {sample["metric"]["instance"]: float(sample["value"][1]) for sample in answer["data"]["result"]}


def test_even_load_is_spread_over_all_cores(world: LocalTidbCluster) -> None:
    _loaded(world)

    assert _values(world, TIKV_USED) == pytest.approx(dict.fromkeys(("db-tikv-0", "db-tikv-1", "db-tikv-2"), 120))
    assert _values(world, TIDB_USED) == pytest.approx({"db-tidb-0": 120, "db-tidb-1": 120})
    assert _values(world, QUOTA) == {"db-tikv-0": 4, "db-tikv-1": 4, "db-tikv-2": 4}
    assert _values(world, "tidb_server_maxprocs") == {"db-tidb-0": 4, "db-tidb-1": 4}


def test_hot_instances_hand_over_to_a_group_what_is_above_the_target(world: LocalTidbCluster) -> None:
    _loaded(world, "seconds,tikv_cores,hot_instances,hot_share\n0,5.4,1,0.6667\n", target="0.5")
    assert _values(world, TIKV_USED)["db-tikv-0"] == pytest.approx(3.6 * 60, rel=0.01)
    world.make(group_cluster(replicas=2))
    world.after(180)

    used = _values(world, TIKV_USED)
    assert used["db-tikv-0"] < 3.6 * 60
    assert used["auto-1-tikv-0"] == pytest.approx(used["auto-1-tikv-1"])
    assert used["auto-1-tikv-0"] > 0


def test_an_instance_uses_no_more_than_it_has(world: LocalTidbCluster) -> None:
    _loaded(world, "seconds,tikv_cores\n0,100\n")

    assert _values(world, TIKV_USED) == pytest.approx(dict.fromkeys(("db-tikv-0", "db-tikv-1", "db-tikv-2"), 240))


def test_a_curve_is_followed_as_time_goes_by(world: LocalTidbCluster) -> None:
    _loaded(world, "seconds,tikv_cores\n0,0\n600,12\n")
    early = _values(world, TIKV_USED)["db-tikv-0"]
    world.after(420)

    assert early < _values(world, TIKV_USED)["db-tikv-0"]
    assert _values(world.after(120), TIKV_USED)["db-tikv-0"] == pytest.approx(240)


def test_a_cluster_without_a_curve_is_idle_and_measured_all_the_same(world: LocalTidbCluster) -> None:
    world.make(base_cluster())
    world.after(180)

    assert set(_values(world, TIKV_USED).values()) == {0}
    assert len(_values(world, QUOTA)) == 3


@pytest.mark.parametrize(
    "data",
    [{"curve.csv": "seconds\n1,2\n"}, {"curve.csv": ""}, {"curve.csv": STEADY, "target": "2"}],
    ids=["cells", "empty", "target"],
)
def test_a_curve_that_cannot_be_read_is_no_load(world: LocalTidbCluster, data: dict[str, str]) -> None:
    world.made(f"{CORE}/configmaps", {"metadata": {"name": "load"}, "data": data})
    world.make(base_cluster(annotations={LOAD: "load"}))
    world.after(180)

    assert set(_values(world, TIKV_USED).values()) == {0}


def test_when_the_quota_was_measured_is_at_most_a_scrape_ago(world: LocalTidbCluster) -> None:
    _loaded(world)
    now = world.run.clock.now().timestamp()

    assert all(0 <= now - at <= 15 for at in _values(world, f"timestamp({QUOTA})").values())


def test_a_new_pod_has_no_usage_before_its_second_scrape(world: LocalTidbCluster) -> None:
    _loaded(world)
    world.make(group_cluster())
    world.after(16)

    assert "auto-1-tikv-0" in _values(world, QUOTA)
    assert "auto-1-tikv-0" not in _values(world, TIKV_USED)


def test_the_quota_of_a_pod_that_is_gone_disappears_with_the_next_scrape(world: LocalTidbCluster) -> None:
    world.make(base_cluster(tikv=4))
    world.after(180)
    world.patch("db", tikv={"replicas": 3})
    world.after(60)

    assert "db-tikv-3" not in _values(world, QUOTA)


def test_sizes_of_stores_are_those_that_pd_reports(world: LocalTidbCluster) -> None:
    _loaded(world)

    assert _values(world, 'tikv_store_size_bytes{type="used"}')["db-tikv-0"] == pytest.approx(50 * 1024**3)
    assert world.store("db-tikv-0")["status"]["used_size"] == "50GiB"
    assert world.store("db-tikv-0")["status"]["available"] == "50GiB"


@pytest.mark.parametrize(
    "query",
    ["", "up", "sum(tikv_server_cpu_cores_quota)", 'tikv_server_cpu_cores_quota{instance=~".*"}', "(" * 5_000],
    ids=["empty", "unknown", "sum", "pattern", "long"],
)
def test_other_queries_are_refused(world: LocalTidbCluster, query: str) -> None:
    status, answer = _ask(world, query)

    assert (status, answer["status"], answer["errorType"]) == (400, "error", "bad_data")


def test_an_exporter_serves_counters_with_the_labels_of_a_tidb_monitor(world: LocalTidbCluster) -> None:
    _loaded(world)
    status, text = world.run.run_until(world.tidb.answer("GET", "/metrics"))
    labels = 'cluster="db",component="tikv",instance="db-tikv-0",kubernetes_namespace="prod",tidb_cluster="prod-db"'

    assert status == 200
    assert f"tikv_server_cpu_cores_quota{{{labels}}} 4\n" in text.decode()
    assert "# TYPE tikv_thread_cpu_seconds_total counter\n" in text.decode()
    assert f"tikv_thread_cpu_seconds_total{{{labels}}} " in text.decode()
    assert 'type="capacity"' in text.decode()
