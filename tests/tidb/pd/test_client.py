"""PD's HTTP API as we speak it: what is sent, what is read, and what becomes of refusals."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.testing import run_virtual
from plimsoll.tidb.pd.client import EvictionExisted, PdClient, PdFailed
from plimsoll.tidb.pd.types import PlacementRule, Replication, count_needed_replicas, read_size
from plimsoll.web.client import Request, RequestFailed, Response

API = "http://pd.test/pd/api/v1"
GIB = 1024**3


class RecordedWeb:
    """A `Web` that gives prepared answers, by method and address."""

    def __init__(self, answers: dict[str, tuple[int, Any]]) -> None:
        self.answers = answers
        self.asked: list[str] = []
        self.bodies: list[Any] = []

    async def send(self, asked: Request) -> Response | RequestFailed:
        self.asked.append(f"{asked.method} {asked.url}")
        self.bodies.append(json.loads(asked.body) if asked.body else None)
        if self.asked[-1] not in self.answers:
            return RequestFailed(problem="cannot reach http://pd.test: connection refused")
        status, body = self.answers[self.asked[-1]]
        return Response(status=status, body=body if isinstance(body, bytes) else json.dumps(body).encode())


def reported(web: RecordedWeb, name: str, *arguments: Any) -> Any:
    return run_virtual(getattr(PdClient("http://pd.test", web=web), name)(*arguments))


# ---- sizes


@pytest.mark.parametrize(
    ("written", "size"),
    [
        ("97.66GiB", 104_861_626_532),
        ("745 GiB", 745 * GIB),
        ("100GB", 100 * GIB),
        ("100G", 100 * GIB),
        ("1.5TiB", 3 * 512 * GIB),
        ("512KiB", 512 * 1024),
        ("0B", 0),
        ("17", 17),
        (17, 17),
        ("1.024e+03MiB", GIB),
        ("", None),
        ("GiB", None),
        ("-1GiB", None),
        ("1 Gibberish", None),
        ("9" * 41, None),
        (None, None),
        (-1, None),
    ],
)
def test_sizes(written: str | int | None, size: int | None) -> None:
    assert read_size(written) == size


@given(st.integers(0, 2**60))
def test_a_size_in_four_digits_is_read_within_its_rounding(size: int) -> None:
    number, unit = float(size), 0
    while number >= 1024:
        number, unit = number / 1024, unit + 1
    found = read_size(f"{number:.4g}{['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB', 'EiB'][unit]}")
    assert found is not None
    assert abs(found - size) <= size / 1000


# ---- stores


def test_stores_are_read_as_pd_writes_them() -> None:
    store = {
        "store": {
            "id": 4,
            "address": "db-tikv-0.db-tikv-peer.prod.svc:20160",
            "labels": [{"key": "group", "value": "g"}],
            "version": "7.5.0",
            "state_name": "Down",
        },
        "status": {"capacity": "100GiB", "available": "40GiB", "leader_count": 3, "region_count": 9, "slow_score": 1},
    }
    web = RecordedWeb({f"GET {API}/stores": (200, {"count": 1, "stores": [store]})})
    (found,) = reported(web, "get_stores")
    assert (found.id, found.state, found.labels, found.is_tiflash) == (4, "Down", {"group": "g"}, False)
    assert (found.capacity_bytes, found.used_bytes, found.started) == (100 * GIB, 60 * GIB, None)
    assert (found.status.leader_count, found.status.region_count) == (3, 9)


def test_stores_of_given_states_are_asked_for() -> None:
    web = RecordedWeb({f"GET {API}/stores?state=0&state=2": (200, {"count": 0, "stores": None})})
    assert reported(web, "get_stores", (0, 2)) == ()


def test_a_store_is_deleted_without_force() -> None:
    web = RecordedWeb({f"DELETE {API}/store/4": (200, "The store is set as Offline.")})
    assert reported(web, "delete_store", 4) is None
    assert web.asked == [f"DELETE {API}/store/4"]


@pytest.mark.parametrize(
    ("status", "kind"), [(400, "is_refused"), (404, "is_gone"), (410, "is_gone"), (500, "is_not_bootstrapped")]
)
def test_refusals_are_distinguished(status: int, kind: str) -> None:
    web = RecordedWeb({f"DELETE {API}/store/4": (status, "not bootstrapped, or not enough stores")})
    failed = reported(web, "delete_store", 4)
    assert [
        name for name in ("is_unreachable", "is_refused", "is_gone", "is_not_bootstrapped") if getattr(failed, name)
    ] == [kind]
    assert "not enough stores" in failed.problem


def test_no_answer_is_a_value() -> None:
    failed = reported(RecordedWeb({}), "get_store", 4)
    assert isinstance(failed, PdFailed)
    assert failed.is_unreachable


def test_the_state_of_a_store_is_set() -> None:
    web = RecordedWeb({f"POST {API}/store/4/state?state=Up": (200, "ok")})
    assert reported(web, "set_store_state", 4, "Up") is None


# ---- replication


def test_replication_is_read_with_its_switch_as_text() -> None:
    web = RecordedWeb({f"GET {API}/config/replicate": (200, {"max-replicas": 3, "enable-placement-rules": "true"})})
    found = reported(web, "get_replication")
    assert (found.max_replicas, found.has_placement_rules) == (3, True)


def rule(count: int, start: str = "", *, engine: str = "") -> PlacementRule:
    constraints = [{"key": "engine", "op": "in", "values": [engine]}] if engine else None
    body = {"group_id": "pd", "id": f"{count}", "start_key": start, "count": count, "label_constraints": constraints}
    web = RecordedWeb({f"GET {API}/config/rules": (200, [body])})
    (found,) = reported(web, "get_placement_rules")
    assert isinstance(found, PlacementRule)
    return found


@pytest.mark.parametrize(
    ("switch", "rules", "needed"),
    [
        ("true", [], 3),
        ("true", [rule(3), rule(2)], 5),
        ("true", [rule(3), rule(4, "78")], 4),
        ("true", [rule(1)], 3),
        ("true", [rule(3), rule(2, engine="tiflash")], 3),
        ("false", [rule(3), rule(2)], 3),
    ],
)
def test_replicas_needed_are_the_most_of_any_range(switch: str, rules: list[PlacementRule], needed: int) -> None:
    assert count_needed_replicas(Replication(max_replicas=3, placement_rules=switch), tuple(rules)) == needed


# ---- schedulers


def test_leaders_are_evicted_by_a_scheduler() -> None:
    web = RecordedWeb({f"POST {API}/schedulers": (200, "The scheduler is created.")})
    assert reported(web, "evict_leaders", 4) is None
    assert web.bodies == [{"name": "evict-leader-scheduler", "store_id": 4}]


@pytest.mark.parametrize(
    ("listed", "named", "is_done"),
    [({"store-id-ranges": {"4": []}}, [], True), ({}, ["evict-leader-scheduler-4"], True), ({}, [], False)],
)
def test_an_eviction_that_is_under_way_is_no_failure(listed: Any, named: list[str], is_done: bool) -> None:
    web = RecordedWeb(
        {
            f"POST {API}/schedulers": (500, "scheduler existed"),
            f"GET {API}/scheduler-config/evict-leader-scheduler/list": (200, listed),
            f"GET {API}/schedulers": (200, named),
        }
    )
    assert isinstance(reported(web, "evict_leaders", 4), EvictionExisted) is is_done


@pytest.mark.parametrize(("status", "is_done"), [(200, True), (404, True), (500, False)])
def test_an_eviction_ends_or_has_ended(status: int, is_done: bool) -> None:
    web = RecordedWeb({f"DELETE {API}/schedulers/evict-leader-scheduler-4": (status, "")})
    assert (reported(web, "stop_evicting_leaders", 4) is None) is is_done


# ---- regions and keys


def test_regions_with_something_wrong_are_counted() -> None:
    web = RecordedWeb({f"GET {API}/regions/check/miss-peer": (200, {"count": 2, "regions": []})})
    assert reported(web, "count_regions", "miss-peer") == 2


def test_keys_are_asked_for_by_prefix_in_base_64() -> None:
    answer = {"kvs": [{"key": "L3RvcG9sb2d5L3RpZGIvYTo0MDAwL3R0bA==", "value": "MQ=="}], "count": "1"}
    web = RecordedWeb({"POST http://pd.test/v3/kv/range": (200, answer)})
    assert reported(web, "get_keys", "/topology/tidb/") == {"/topology/tidb/a:4000/ttl": b"1"}
    assert web.bodies == [{"key": "L3RvcG9sb2d5L3RpZGIv", "range_end": "L3RvcG9sb2d5L3RpZGIw"}]


@pytest.mark.parametrize(
    "answer", [b"<html>", {"kvs": [{"key": "?", "value": ""}]}, {"kvs": [{"key": "/w==", "value": ""}]}]
)
def test_keys_that_cannot_be_read_are_a_failure(answer: Any) -> None:
    web = RecordedWeb({"POST http://pd.test/v3/kv/range": (200, answer)})
    assert isinstance(reported(web, "get_keys", "/topology/tidb/"), PdFailed)
