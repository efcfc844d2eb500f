"""The planner with a real Prometheus: recorded loads (T12 to T15), and live scrapes that fail and come back."""

from __future__ import annotations

import shutil
import signal
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from tests.e2e.tidb.fake_servers import FakeExporters, pd_server, serving
from tests.e2e.tidb.planner_processes import PlannerAnswer, PlannerProcess, planner
from tests.e2e.tidb.prometheus_processes import prometheus
from tests.e2e.tidb.recorded_loads import LOW, end, end_s, pods
from tests.e2e.timeouts import PATIENCE_S
from tests.tidb.pd.fake_pd import FakePd
from tests.tidb.planning.planner.builders import SMALL, strategy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.e2e.tidb.prometheus_processes import Binaries, PrometheusProcess

OWN = "default_homogeneous_tikv"
USED = "sum(increase(tikv_thread_cpu_seconds_total[60s])) by (instance, kubernetes_namespace)"
QUOTA = "tikv_server_cpu_cores_quota"


def cluster(*, group: int = 0) -> FakePd:
    """Three stores of its own, and so many of the group `small`."""
    pd = FakePd()
    since = {"start_ts": "2025-05-01T00:00:00.123456789Z"}
    for ordinal in range(3):
        pd.add_store(f"db-tikv-{ordinal}.db-tikv-peer.prod.svc:20160", **since)
    labels = {"group": "pd-auto-scaling-tikv-small", "resource-type": "small", "specialUse": "hotRegion"}
    for ordinal in range(group):
        pd.add_store(f"auto-small-tikv-{ordinal}.auto-small-tikv-peer.prod.svc:20160", labels=labels, **since)
    return pd


@contextmanager
def asked(found: PrometheusProcess, scratch: Path, *, time: str, group: int = 0) -> Iterator[PlannerProcess]:
    with pd_server(cluster(group=group)) as pd, planner(scratch, pd=pd, prometheus=found.url, time=time) as asking:
        yield asking


# ---- recorded


def test_t14_high_load_is_answered_and_a_stopped_prometheus_is_an_error(
    binaries: Binaries, blocks: Path, tmp_path: Path
) -> None:
    shutil.copytree(blocks, tmp_path / "data", ignore=shutil.ignore_patterns("lock", "queries.active"))
    with (
        prometheus(binaries, tmp_path / "data") as own,
        asked(own, tmp_path, time=end("high")) as planning,
    ):
        answer = planning.ask(strategy())
        assert answer.body == [{"component": "tikv", "count": 6, "resource_type": OWN, "labels": {}}]
        own.process.send_signal(signal.SIGSTOP)
        assert planning.ask(strategy()).error == (500, "insufficient_metrics"), "it hangs"
        own.stop()
        assert planning.ask(strategy()).error == (500, "insufficient_metrics")


def test_t12_another_clusters_metrics_change_nothing(recorded: PrometheusProcess, tmp_path: Path) -> None:
    hour = "high beside another cluster"
    assert set(recorded.query(QUOTA, end_s(hour))) == {*pods(1, 1, 1), *pods(1, 1, 1, tc="other")}
    with asked(recorded, tmp_path, time=end(hour)) as planning:
        assert planning.ask(strategy()).counts == {OWN: 6}


def test_t13_all_low_scales_in_unless_a_quota_is_missing(recorded: PrometheusProcess, tmp_path: Path) -> None:
    with asked(recorded, tmp_path, time=end("low"), group=1) as planning:
        assert planning.ask(strategy(SMALL)).counts == {}
    with asked(recorded, tmp_path, time=end("low without a quota"), group=1) as planning:
        assert planning.ask(strategy(SMALL)).counts == {"small": 1}


def test_t13_most_metrics_missing_is_an_error(recorded: PrometheusProcess, tmp_path: Path) -> None:
    with asked(recorded, tmp_path, time=end("one of three")) as planning:
        assert planning.ask(strategy(SMALL)).error == (500, "insufficient_metrics")


def test_t15_a_gap_of_45_seconds_is_stale(recorded: PrometheusProcess, tmp_path: Path) -> None:
    raw = recorded.query(USED, end_s("high") + 45)
    assert raw == pytest.approx(pods(81, 81, 81))
    with asked(recorded, tmp_path, time=end("high", later_s=45)) as planning:
        assert planning.ask(strategy()).error == (500, "insufficient_metrics")


def test_a_gauge_that_lives_for_five_minutes_is_stale_all_the_same(recorded: PrometheusProcess, tmp_path: Path) -> None:
    assert recorded.query(QUOTA, end_s("low") + 299)
    assert not recorded.query(QUOTA, end_s("low") + 301)
    with asked(recorded, tmp_path, time=end("low", later_s=299), group=1) as planning:
        assert planning.ask(strategy(SMALL)).error == (500, "insufficient_metrics")


def test_a_query_prometheus_refuses_is_an_error(recorded: PrometheusProcess, tmp_path: Path) -> None:
    flags = {"prometheus": recorded.url, "time": end("low"), "query": "tikv.cpu_used=sum("}
    with pd_server(cluster(group=1)) as pd, planner(tmp_path, pd=pd, **flags) as planning:
        answer = planning.ask(strategy(SMALL))
    assert answer.error == (500, "insufficient_metrics")
    assert "bad_data" in answer.body["detail"]


def test_prometheus_is_found_through_pd(recorded: PrometheusProcess, tmp_path: Path) -> None:
    known = cluster()
    known.config = {"pd-server": {"metric-storage": recorded.url}}
    with pd_server(known) as pd, planner(tmp_path, pd=pd, time=end("high")) as planning:
        assert planning.ask(strategy()).counts == {OWN: 6}


def test_without_pd_there_is_no_plan(recorded: PrometheusProcess, tmp_path: Path) -> None:
    with pd_server(cluster()) as gone:
        pass
    with planner(tmp_path, pd=gone, prometheus=recorded.url, time=end("high")) as planning:
        assert planning.ask(strategy()).error == (500, "pd_unreachable")


# ---- live


def types(answer: PlannerAnswer) -> set[str]:
    """Of what is planned; none if nothing can be."""
    return set(answer.counts) if answer.status == 200 else set()


def until(is_so: Callable[[], bool], what: str) -> None:
    until_s = time.monotonic() + PATIENCE_S
    while not is_so():
        assert time.monotonic() < until_s, f"not within {PATIENCE_S} s: {what}"
        time.sleep(0.2)


def test_failed_scrapes_keep_the_group_and_a_gap_is_an_error(binaries: Binaries, tmp_path: Path) -> None:
    exporters = FakeExporters(dict(LOW), quota=4)
    with (
        serving(exporters.answer) as targets,
        prometheus(binaries, tmp_path / "live", config=exporters.scraping(targets)) as scraping,
        pd_server(cluster(group=1)) as pd,
        planner(tmp_path, pd=pd, prometheus=scraping.url, window="5s", scrape_interval="1s") as planning,
    ):

        def ask() -> PlannerAnswer:
            return planning.ask(strategy(SMALL))

        until(lambda: ask().body == [], "all are low, the group goes")

        exporters.failing = {"db-tikv-2"}
        until(lambda: "db-tikv-2" not in scraping.query(QUOTA), "a failed scrape takes the quota away")
        # A busy machine may scrape the others late too; until most are known again there is no plan, and never [].
        answers = [ask()]
        while answers[-1].status != 200 and len(answers) < PATIENCE_S:
            answers.append(ask())
        assert answers[-1].counts == {"small": 1}
        assert {answer.error for answer in answers[:-1]} <= {(500, "insufficient_metrics")}

        exporters.failing = set(LOW)
        until(lambda: not scraping.query(QUOTA), "no scrape succeeds")
        assert ask().error == (500, "insufficient_metrics")

        exporters.failing = set()
        exporters.used_cores.update(dict.fromkeys(LOW, 3.6))
        until(lambda: OWN in types(ask()), "the load is high, and seen again")
