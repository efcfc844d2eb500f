"""`POST /autoscaling`: whole answers from what is collected, or errors; never an empty plan for want of data."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from structlog.testing import capture_logs

from plimsoll.testing import run_virtual
from plimsoll.tidb.planner.service import MAX_REQUEST_BYTES, PlannerService
from tests.tidb.planner.fake_monitoring import NOW, MonitoredCluster, error_of, in_virtual_time, plans_of
from tests.tidb.planning.planner.builders import SMALL, strategy, thresholds

if TYPE_CHECKING:
    from collections.abc import MutableMapping

    from plimsoll.runtime.clocks import VirtualClock
    from plimsoll.web.responses import PageResponse

OWN = "default_homogeneous_tikv"


# ---- acceptance scenarios, on a played Prometheus


def test_t01_average_high() -> None:
    page = MonitoredCluster().add(0.9, 0.9, 0.9).answered(strategy())
    assert json.loads(bytes(page.body)) == [{"component": "tikv", "count": 6, "resource_type": OWN, "labels": {}}]
    assert page.headers["x-plan-complete"] == "true"


def test_t11_tiflash_and_a_users_own_cluster() -> None:
    world = (
        MonitoredCluster()
        .add(0.9, 0.9, 0.9)
        .add(0.9, 0.9, tc="cold")
        .add(None, None, tc="f", labels={"engine": "tiflash"})
    )
    assert plans_of(world.answered(strategy())) == {OWN: 8}


def test_t12_metrics_of_another_cluster_change_nothing() -> None:
    world = MonitoredCluster().add(0.9, 0.9, 0.9)
    for ordinal in range(3):
        world.measure(f"other-tikv-{ordinal}", "test", used=0.99 * 240, quota=4)
    assert plans_of(world.answered(strategy())) == {OWN: 6}


def test_groups_grow_where_the_cluster_may_not_if_its_operator_wants_that() -> None:
    world, asked = MonitoredCluster().add(0.9, 0.9, 0.9), strategy(SMALL, limit=3)
    assert plans_of(world.answered(asked)) == {}
    assert plans_of(world.answered(asked, falls_back=True)) == {"small": 4}


def test_t13_a_missing_quota_blocks_scale_in() -> None:
    world = MonitoredCluster().add(0.05, 0.05, 0.05).add_group("small", 0.05)
    assert plans_of(world.answered(strategy(SMALL))) == {}
    world.forget("quota", "db-tikv-2")
    assert plans_of(world.answered(strategy(SMALL))) == {"small": 1}


def test_t13_most_metrics_missing_is_an_error() -> None:
    page = MonitoredCluster().add(0.05, None, None).answered(strategy(SMALL))
    assert error_of(page) == (500, "insufficient_metrics")
    assert "db-tikv-1: missing quota" in json.loads(bytes(page.body))["detail"]


def test_t14_a_silent_prometheus_is_an_error_within_six_seconds() -> None:
    world = MonitoredCluster().add(0.9, 0.9, 0.9)
    world.prometheus.silent = True

    async def asked(clock: VirtualClock) -> tuple[PageResponse, float]:
        page = await PlannerService(world.collector(), now=clock.now).answer_request(json.dumps(strategy()).encode())
        return page, clock.monotonic_s()

    page, took_s = run_virtual(asked, start=NOW)
    assert error_of(page) == (500, "insufficient_metrics")
    assert took_s < 6


def test_t15_stale_metrics_are_an_error() -> None:
    world = MonitoredCluster().add(0.9 * 81 / 216, 0.9 * 81 / 216, 0.9 * 81 / 216)
    for ordinal in range(3):
        world.measured(f"db-tikv-{ordinal}", ago_s=45)
    page = world.answered(strategy())
    assert error_of(page) == (500, "insufficient_metrics")
    assert "measured more than 30 s ago" in json.loads(bytes(page.body))["detail"]


@pytest.mark.parametrize("trap", ["stale", "too young", "no usage", "no quota"])
def test_one_instance_that_cannot_be_trusted_keeps_every_group(trap: str) -> None:
    young = {"start_ts": "2025-12-31T23:59:30Z"} if trap == "too young" else {}
    world = MonitoredCluster().add(0.01, **young).add(0.01, 0.01).add_group("small", 0.01, 0.01)
    if trap == "stale":
        world.measured("db-tikv-0", ago_s=40)
    if trap == "no usage":
        world.forget("used", "db-tikv-0")
    if trap == "no quota":
        world.forget("quota", "db-tikv-0")
    assert plans_of(world.answered(strategy(SMALL))) == {"small": 2}


def test_an_instance_without_metrics_does_not_block_scale_out() -> None:
    assert plans_of(MonitoredCluster().add(0.9, 0.9, 0.9, None).answered(strategy())) == {OWN: 7}


def test_full_disks_are_answered_while_prometheus_is_down() -> None:
    world = MonitoredCluster().add(0.3, 0.3, 0.3, used_size="90GiB")
    world.prometheus.silent = True
    question = strategy(cpu=thresholds(), storage=thresholds(), own_storage=100 * 1024**3)
    assert plans_of(world.answered(question)) == {OWN: 6}


def test_tidb_is_planned_from_its_topology() -> None:
    world = MonitoredCluster().add(0.85, 0.85, component="tidb")
    assert plans_of(world.answered(strategy(component="tidb"))) == {"default_homogeneous_tidb": 4}


def test_a_question_about_both_components_is_answered_in_one() -> None:
    world = MonitoredCluster().add(0.9, 0.9, 0.9).add(0.85, 0.85, component="tidb")
    one, other = strategy(component="tidb"), strategy()
    both = {**one, "rules": one["rules"] + other["rules"], "resources": one["resources"] + other["resources"]}
    assert plans_of(world.answered(both)) == {"default_homogeneous_tidb": 4, OWN: 6}


# ---- errors


@pytest.mark.parametrize("component", ["tikv", "tidb"])
def test_no_instance_at_all_is_an_error_and_not_an_empty_plan(component: str) -> None:
    assert error_of(MonitoredCluster().answered(strategy(component=component))) == (500, "insufficient_metrics")


def test_a_bad_strategy_is_refused_with_the_path_of_the_field() -> None:
    page = MonitoredCluster().add(0.9).answered(strategy(cpu=thresholds(1.5)))
    assert error_of(page) == (400, "bad_strategy")
    assert json.loads(bytes(page.body))["detail"].startswith("rules[0].cpu_rule")


@pytest.mark.parametrize(
    "body", [b"", b"null", b"[]", b"{}", b'{"rules":[]}', b'{"rules":[{}],}', b"\xff", b"[" * 9999]
)
def test_what_is_no_strategy_is_refused(body: bytes) -> None:
    assert error_of(MonitoredCluster().add(0.9).answered(body)) == (400, "bad_strategy")


def test_a_group_without_a_resource_type_is_an_error_of_the_world() -> None:
    world = MonitoredCluster().add(0.9).add(0.9, tc="auto", labels={"group": "pd-auto-scaling-tikv-small"})
    assert error_of(world.answered(strategy(SMALL))) == (500, "missing_resource_type")


@pytest.mark.parametrize(
    ("status", "body", "code"),
    [(500, b'"TiKV cluster not bootstrapped"', "not_bootstrapped"), (502, b"<html>", "pd_failed")],
)
def test_without_pd_there_is_no_plan(status: int, body: bytes, code: str) -> None:
    world = MonitoredCluster().add(0.9)
    world.pd.stated["/pd/api/v1/stores"] = (status, body)
    assert error_of(world.answered(strategy())) == (500, code)


# ---- HTTP


class AsgiExchange:
    """One request to the ASGI application, without a server; `body` in pieces."""

    def __init__(self, method: str, path: str, *body: bytes, ends: bool = True) -> None:
        self.scope = {"type": "http", "method": method, "path": path, "headers": [], "query_string": b""}
        pieces = [*body] or [b""]
        self.incoming = [
            {"type": "http.request", "body": piece, "more_body": not ends or index < len(pieces) - 1}
            for index, piece in enumerate(pieces)
        ]
        self.sent: list[MutableMapping[str, Any]] = []

    async def receive(self) -> dict[str, Any]:
        return self.incoming.pop(0) if self.incoming else {"type": "http.disconnect"}

    async def send(self, message: MutableMapping[str, Any]) -> None:
        self.sent.append(message)

    def made(self, world: MonitoredCluster) -> tuple[int, dict[str, str], bytes]:
        service = PlannerService(world.collector(), now=lambda: NOW)
        run_virtual(service(self.scope, self.receive, self.send), start=NOW)
        start, body = self.sent
        return start["status"], {name.decode(): value.decode() for name, value in start["headers"]}, body["body"]


def test_a_question_may_come_in_pieces() -> None:
    body = json.dumps(strategy()).encode()
    status, headers, answer = AsgiExchange("POST", "/autoscaling", body[:10], body[10:]).made(
        MonitoredCluster().add(0.9, 0.9, 0.9)
    )
    assert (status, headers["content-type"], headers["x-plan-complete"]) == (200, "application/json", "true")
    assert int(headers["content-length"]) == len(answer)


def test_an_empty_plan_is_an_array() -> None:
    body = json.dumps(strategy()).encode()
    assert AsgiExchange("POST", "/autoscaling", body).made(MonitoredCluster().add(0.5))[2] == b"[]"


def test_a_question_that_is_too_large_is_not_read_to_its_end() -> None:
    exchange = AsgiExchange("POST", "/autoscaling", b" " * MAX_REQUEST_BYTES, b" ", b" ")
    assert exchange.made(MonitoredCluster())[0] == 413
    assert len(exchange.incoming) == 1


def test_a_question_that_breaks_off_is_refused() -> None:
    assert AsgiExchange("POST", "/autoscaling", b"{", ends=False).made(MonitoredCluster())[0] == 400


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [("GET", "/healthz", 200), ("HEAD", "/healthz", 200), ("GET", "/autoscaling", 405), ("POST", "/", 404)],
)
def test_other_requests(method: str, path: str, status: int) -> None:
    exchange = AsgiExchange(method, path)
    found, headers, body = exchange.made(MonitoredCluster())
    assert found == status
    assert bool(body) is (method != "HEAD")
    assert headers.get("allow") == ("POST" if status == 405 else None)


def test_what_stays_missing_is_warned_of_once():
    world = MonitoredCluster().add(0.5, 0.5, None)
    service = PlannerService(world.collector(), now=lambda: NOW)
    with capture_logs() as logs:
        for _ in range(3):
            in_virtual_time(service.answer_request(json.dumps(strategy()).encode()))
    assert [log["event"] for log in logs if log["log_level"] == "warning"] == ["planner.gaps"]
