"""From PD and Prometheus to a snapshot: which instances there are, whose, and what their metrics are worth."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from plimsoll.core.errors import InvalidInput
from plimsoll.tidb.model.components import Component
from plimsoll.tidb.pd.members import parse_pod_address
from plimsoll.tidb.planner.collector import CannotCollect, CollectedSnapshot
from plimsoll.tidb.prometheus.cpu import read_queries
from plimsoll.web.client import Response
from tests.tidb.pd.fake_pd import GIB
from tests.tidb.planner.fake_monitoring import NOW, PROMETHEUS, MonitoredCluster, in_virtual_time

if TYPE_CHECKING:
    from tests.golden.reviewed_sentences import ReviewedSentences


def gaps(found: CollectedSnapshot) -> dict[str, str]:
    return {gap.instance: gap.problem for gap in found.gaps}


# ---- instances


def test_a_store_is_joined_with_its_metrics_by_pod_and_namespace() -> None:
    seen = MonitoredCluster().add(0.9).seen()["db-tikv-0"]
    assert (seen.cpu_used_seconds, seen.cpu_quota_cores, seen.quality) == (216.0, 4.0, "fresh")
    assert (seen.namespace, seen.store_id, seen.state, seen.engine, seen.base) == ("prod", 1, "Up", "tikv", True)
    assert (seen.capacity_bytes, seen.used_bytes) == (100 * GIB, 30 * GIB)


def test_pods_of_another_tidbcluster_are_not_base() -> None:
    world = MonitoredCluster().add(0.9).add(0.9, tc="cold").add(0.9, namespace="other").add_group("small", 0.5)
    assert [instance_seen.base for instance_seen in world.collected().snapshot.instances] == [True, False, False, False]


def test_a_pod_whose_name_only_begins_like_a_base_pod_is_not_base() -> None:
    world = MonitoredCluster().add(0.9, tc="db-tikv")
    assert not world.seen()["db-tikv-tikv-0"].base


def test_labels_of_a_group_reach_the_planner() -> None:
    seen = MonitoredCluster().add_group("small", 0.5).seen()["auto-small-tikv-0"]
    assert seen.labels["group"] == "pd-auto-scaling-tikv-small"
    assert seen.labels["resource-type"] == "small"


@pytest.mark.parametrize("address", ["10.0.0.7:20160", "db-tikv-0:20160", "[fd00::1]:20160", "a.b.c:20160", ""])
def test_an_address_that_names_no_pod_is_unmatched(address: str) -> None:
    assert parse_pod_address(address) is None


def test_an_unmatched_store_is_there_without_metrics(reviewed: ReviewedSentences) -> None:
    world = MonitoredCluster()
    world.pd.add_store("10.0.0.7:20160")
    found = world.collected()
    (seen,) = found.snapshot.instances
    assert (seen.name, seen.base, seen.cpu_used_seconds) == ("10.0.0.7:20160", False, None)
    reviewed(gaps(found)["10.0.0.7:20160"])


def test_leaving_stores_and_tiflash_are_listed_and_their_metrics_are_not_required() -> None:
    world = MonitoredCluster().add(0.9).add(None, state=1, state_name="Offline")
    world.add(None, tc="flash", labels={"engine": "tiflash"})
    found = world.collected()
    assert [(instance_seen.state, instance_seen.engine) for instance_seen in found.snapshot.instances] == [
        ("Up", "tikv"),
        ("Offline", "tikv"),
        ("Up", "tiflash"),
    ]
    assert not found.gaps


def test_a_store_registered_as_offline_is_offline_whatever_its_name_says() -> None:
    assert MonitoredCluster().add(0.9, state=1, state_name="Disconnected").seen()["db-tikv-0"].state == "Offline"


def test_a_tidb_server_is_there_while_it_holds_its_key() -> None:
    world = MonitoredCluster().add(0.5, 0.5, component="tidb")
    gone = "/topology/tidb/db-tidb-1.db-tidb-peer.prod.svc:4000"
    del world.pd.keys[f"{gone}/ttl"]
    seen = world.seen(Component.TIDB)
    assert list(seen) == ["db-tidb-0"]
    assert (seen["db-tidb-0"].store_id, seen["db-tidb-0"].engine, seen["db-tidb-0"].base) == (None, "", True)


def test_a_tidb_server_that_does_not_report_its_labels_makes_the_list_unusable_unless_it_is_a_base_pod(
    reviewed: ReviewedSentences,
) -> None:
    world = MonitoredCluster().add(0.5, component="tidb").add_group("compute", 0.5, component="tidb")
    del world.pd.keys["/topology/tidb/db-tidb-0.db-tidb-peer.prod.svc:4000/info"]
    assert set(world.seen(Component.TIDB)) == {"db-tidb-0", "auto-compute-tidb-0"}
    del world.pd.keys["/topology/tidb/auto-compute-tidb-0.auto-compute-tidb-peer.prod.svc:4000/info"]
    found = in_virtual_time(world.collector().collect(Component.TIDB, at=NOW))
    assert isinstance(found, CannotCollect)
    reviewed(found.detail)


@pytest.mark.parametrize(
    ("status", "body", "code"),
    [
        (500, b'"TiKV cluster not bootstrapped, please start TiKV first"', "not_bootstrapped"),
        (503, b"no leader", "pd_failed"),
        (200, b"<html>", "pd_failed"),
        (200, b'{"stores":[{"store":{}}]}', "pd_failed"),
    ],
)
def test_without_a_list_of_stores_nothing_is_collected(status: int, body: bytes, code: str) -> None:
    world = MonitoredCluster().add(0.9)
    world.pd.stated["/pd/api/v1/stores"] = (status, body)
    found = in_virtual_time(world.collector().collect(Component.TIKV, at=NOW))
    assert isinstance(found, CannotCollect)
    assert found.code == code


def test_a_pd_that_hangs_is_not_waited_for() -> None:
    world = MonitoredCluster().add(0.9)
    world.pd_is_silent = True
    found = in_virtual_time(world.collector().collect(Component.TIKV, at=NOW))
    assert isinstance(found, CannotCollect)
    assert found.code == "pd_unreachable"


# ---- metrics


def test_series_of_other_clusters_are_dropped() -> None:
    world = MonitoredCluster().add(0.3)
    world.measure("other-tikv-0", "test", used=237.6, quota=4)
    world.measure("db-tikv-0", "test", used=237.6, quota=4)
    assert [instance_seen.cpu_used_seconds for instance_seen in world.collected().snapshot.instances] == [72.0]


@pytest.mark.parametrize("kind", ["used", "quota", "measured"])
def test_two_series_for_one_pod_are_missing_data(kind: str) -> None:
    world = MonitoredCluster().add(0.5, 0.5)
    vectors = world.prometheus.vectors[kind]
    vectors.append(({**vectors[0][0], "prometheus_replica": "b"}, vectors[0][1]))
    found = world.collected()
    assert gaps(found) == {"db-tikv-0": "Prometheus has two series for it"}


@pytest.mark.parametrize("value", ["NaN", "+Inf", "-Inf", "-1", "many"])
def test_what_is_no_amount_is_missing(value: str) -> None:
    world = MonitoredCluster().add(None)
    world.measure("db-tikv-0", used=value, quota=4)
    found = world.collected()
    assert found.snapshot.instances[0].cpu_used_seconds is None
    assert gaps(found) == {"db-tikv-0": "missing usage"}


def test_trap_a_a_lagging_prometheus_is_stale_not_idle() -> None:
    world = MonitoredCluster().add(0.9)
    world.measured("db-tikv-0", ago_s=45)
    found = world.collected()
    assert found.snapshot.instances[0].quality == "stale"
    assert gaps(found) == {"db-tikv-0": "measured more than 30 s ago"}


@pytest.mark.parametrize(("ago_s", "quality"), [(0, "fresh"), (30, "fresh"), (30.5, "stale"), (299, "stale")])
def test_older_than_two_scrapes_is_stale(ago_s: float, quality: str) -> None:
    world = MonitoredCluster().add(0.9)
    world.measured("db-tikv-0", ago_s=ago_s)
    assert world.seen()["db-tikv-0"].quality == quality


def test_the_scrape_interval_says_what_is_stale() -> None:
    world = MonitoredCluster().add(0.9)
    world.measured("db-tikv-0", ago_s=45)
    assert world.seen(scrape_interval_s=30.0)["db-tikv-0"].quality == "fresh"


def test_trap_b_after_a_failed_scrape_the_quota_is_missing_and_the_usage_is_not() -> None:
    world = MonitoredCluster().add(0.05)
    world.forget("quota", "db-tikv-0")
    world.forget("measured", "db-tikv-0")
    found = world.collected()
    seen = found.snapshot.instances[0]
    assert (seen.cpu_used_seconds, seen.cpu_quota_cores) == (12.0, None)
    assert gaps(found) == {"db-tikv-0": "missing quota"}


def test_trap_c_one_sample_in_the_window_is_no_usage() -> None:
    world = MonitoredCluster().add(0.05)
    world.forget("used", "db-tikv-0")
    assert gaps(world.collected()) == {"db-tikv-0": "missing usage"}


def test_trap_d_a_gauge_that_lives_on_without_stale_markers_is_stale() -> None:
    world = MonitoredCluster().add(None)
    world.measure("db-tikv-0", quota=4, ago_s=299)
    assert world.seen()["db-tikv-0"].quality == "stale"


def test_a_quota_of_unknown_age_is_stale() -> None:
    world = MonitoredCluster().add(0.05)
    world.forget("measured", "db-tikv-0")
    assert world.seen()["db-tikv-0"].quality == "stale"


@pytest.mark.parametrize(
    ("started", "quality"),
    [
        ("2025-12-31T23:57:59Z", "fresh"),
        ("2025-12-31T23:58:01Z", "too_young"),
        ("2026-01-01T07:59:30.123456789+08:00", "too_young"),
        ("", "fresh"),
        ("0001-01-01T00:00:00Z", "fresh"),
        ("0001-01-01T00:00:00+08:00", "fresh"),
        ("2025-12-31T23:59:30", "fresh"),
        ("yesterday", "fresh"),
    ],
)
def test_a_store_is_too_young_for_two_windows(started: str, quality: str) -> None:
    assert MonitoredCluster().add(0.9, start_ts=started).seen()["db-tikv-0"].quality == quality


def test_a_tidb_server_is_too_young_by_its_own_word() -> None:
    world = MonitoredCluster().add(0.5, component="tidb", start_timestamp=int(NOW.timestamp()) - 100)
    assert world.seen(Component.TIDB)["db-tidb-0"].quality == "too_young"


def test_a_query_that_fails_leaves_its_amounts_missing_and_is_reported() -> None:
    world = MonitoredCluster().add(0.9)
    body = json.dumps({"status": "error", "errorType": "bad_data", "error": "parse error"}).encode()
    world.prometheus.failing = Response(status=400, body=body)
    found = world.collected()
    assert found.snapshot.instances[0].cpu_used_seconds is None
    assert all("bad_data: parse error" in problem for problem in found.problems)


def test_storage_alone_does_not_ask_prometheus() -> None:
    world = MonitoredCluster().add(0.9)
    found = in_virtual_time(world.collector().collect(Component.TIKV, at=NOW, wants_cpu=False))
    assert isinstance(found, CollectedSnapshot)
    assert (world.prometheus.asked, found.gaps, found.problems) == ([], (), ())


# ---- questions to Prometheus


def test_the_queries_are_those_of_the_specification() -> None:
    world = MonitoredCluster().add(0.9).add(0.5, component="tidb")
    world.collected(window_s=90)
    world.collected(Component.TIDB)
    assert [query for _, query, _ in world.prometheus.asked] == [
        "sum(increase(tikv_thread_cpu_seconds_total[90s])) by (instance, kubernetes_namespace)",
        "tikv_server_cpu_cores_quota",
        "timestamp(tikv_server_cpu_cores_quota)",
        'sum(increase(process_cpu_seconds_total{component="tidb"}[60s])) by (instance, kubernetes_namespace)',
        "tidb_server_maxprocs",
        "timestamp(tidb_server_maxprocs)",
    ]


def test_every_query_is_about_one_moment() -> None:
    world = MonitoredCluster().add(0.9)
    world.collected()
    assert {(method, time) for method, _, time in world.prometheus.asked} == {("POST", "1767225600.000")}


def test_a_server_that_does_not_take_a_post_is_asked_by_get() -> None:
    world = MonitoredCluster().add(0.9)
    world.prometheus.knows_post = False
    assert world.seen()["db-tikv-0"].cpu_used_seconds == 216.0
    assert [method for method, _, _ in world.prometheus.asked].count("GET") == 3


def test_queries_can_be_replaced_one_by_one() -> None:
    queries = read_queries({"tikv.cpu_used": "mine[%window%]", "tidb.cpu_quota": "cores"})
    assert queries[Component.TIKV].used == "mine[%window%]"
    assert queries[Component.TIKV].measured == "timestamp(tikv_server_cpu_cores_quota)"
    assert queries[Component.TIDB].measured == "timestamp(cores)"


@pytest.mark.parametrize("name", ["tikv", "tikv.memory", "pump.cpu_used", ""])
def test_an_unknown_query_is_refused(name: str) -> None:
    with pytest.raises(InvalidInput, match=r"tikv\.cpu_used"):
        read_queries({name: "up"})


def test_an_answer_with_warnings_is_missing_data() -> None:
    world = MonitoredCluster().add(0.9)
    world.prometheus.warnings = ["partial response: a store did not answer"]
    found = world.collected()
    assert gaps(found) == {"db-tikv-0": "missing quota"}
    assert len(found.problems) == 3
    assert all(problem.endswith("incompletely: partial response: a store did not answer") for problem in found.problems)


@pytest.mark.parametrize(("ahead_s", "quality"), [(0, "fresh"), (10, "fresh"), (11, "future"), (86_400, "future")])
def test_samples_from_the_future_are_missing_data(ahead_s: float, quality: str) -> None:
    world = MonitoredCluster().add(0.9)
    world.measured("db-tikv-0", ago_s=-ahead_s)
    assert world.seen()["db-tikv-0"].quality == quality


@pytest.mark.parametrize("kind", ["used", "quota", "measured"])
def test_an_answer_for_another_time_is_missing_data(kind: str, reviewed: ReviewedSentences) -> None:
    """As a cache in front of Prometheus gives it."""
    world = MonitoredCluster().add(0.1)
    world.prometheus.evaluated_s[kind] = NOW.timestamp() - 60
    found = world.collected()
    assert gaps(found)
    reviewed(found.problems[0])


@pytest.mark.parametrize(
    ("amounts", "gap"),
    [
        ({"quota": "1e308"}, "quota 1e+308 is out of range"),
        ({"quota": "0"}, "quota 0 is out of range"),
        ({"quota": "5e-324"}, "quota 4.94066e-324 is out of range"),
        ({"quota": "4", "used": "1e300"}, "usage 1e+300 is out of range"),
    ],
)
def test_amounts_out_of_range_are_missing_data(amounts: dict[str, str], gap: str) -> None:
    world = MonitoredCluster().add(None)
    world.measure("db-tikv-0", used=amounts.get("used", "1"), quota=amounts["quota"])
    assert gaps(world.collected()) == {"db-tikv-0": gap}


@pytest.mark.parametrize(
    "body",
    [
        b'{"status":"success","data":{"resultType":"matrix","result":[{"metric":{},"values":[[1,"2"]]}]}}',
        b'{"status":"success","data":{"resultType":"scalar","result":[1,"2"]}}',
        b'{"status":"success"}',
        b"<html>proxy</html>",
        b'{"status":"success","data":{"resultType":"vector","result":[{"metric":{"instance":1}}]}}',
    ],
)
def test_only_vectors_are_taken(body: bytes) -> None:
    world = MonitoredCluster().add(0.9)
    world.prometheus.failing = Response(status=200, body=body)
    found = world.collected()
    assert len(found.problems) == 3
    assert found.snapshot.instances[0].cpu_quota_cores is None


# ---- where Prometheus is


def test_the_given_address_goes_before_what_pd_knows() -> None:
    world = MonitoredCluster().add(0.9)
    world.pd.keys["/topology/prometheus"] = b'{"ip":"elsewhere.test","port":9090,"path":"/x"}'
    assert not world.collected().problems


def test_the_key_in_etcd_goes_before_the_setting_of_pd() -> None:
    world = MonitoredCluster().add(0.9)
    world.pd.keys["/topology/prometheus"] = b'{"ip":"prometheus.test","port":9090,"path":"/deploy"}'
    world.pd.config = {"pd-server": {"metric-storage": "http://elsewhere.test"}}
    assert not world.collected(prometheus="").problems


@pytest.mark.parametrize("key", [None, b"", b"{}", b"not json", b'{"ip":"","port":9090}'])
def test_the_setting_of_pd_is_used_last(key: bytes | None) -> None:
    world = MonitoredCluster().add(0.9)
    if key is not None:
        world.pd.keys["/topology/prometheus"] = key
    world.pd.config = {"replication": {"max-replicas": 3}, "pd-server": {"metric-storage": f"{PROMETHEUS}/"}}
    assert not world.collected(prometheus="").problems


@pytest.mark.parametrize(
    "config", [{}, {"pd-server": {"metric-storage": ""}}, {"pd-server": {"metric-storage": "x y"}}]
)
def test_an_unknown_prometheus_is_reported(config: dict[str, object]) -> None:
    world = MonitoredCluster().add(0.9)
    world.pd.config = dict(config)
    found = world.collected(prometheus="")
    assert len(found.problems) == 1
    assert found.snapshot.instances[0].cpu_used_seconds is None
