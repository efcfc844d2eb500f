"""What the routes answer, beside kubectl's and the journal's own view."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from plimsoll.console.shared_answers import KEEP_S
from plimsoll.core.plans import NotDone, Plan, Reason, Ref
from plimsoll.journal.entries import Query
from tests.console.console_world import TOKEN, ConsoleWorld
from tests.journal import builders

if TYPE_CHECKING:
    from collections.abc import Iterator

BECAUSE = Reason(code="TooLarge", message="the largest machine has 8 cores", facts={"cores": 8})


@pytest.fixture(scope="module")
def world() -> Iterator[ConsoleWorld]:
    with ConsoleWorld() as made:
        made.namespace()
        made.add_node("n1", **{"cloud.plimsoll.io/node-group": "batch"})
        made.add_pod("web-0", "n1")
        made.add_pod("huge-0")
        made.add_pod("huge-1")
        for plan in list_plans():
            made.run.run_until(made.journal.append(plan, (builders.done(),)))
        made.run.run_until(made.journal.append(builders.plan(3, actions=(), subsystem="kafka")))
        yield made


def list_plans() -> Iterator[Plan]:
    reason = Reason(code="NoFit", message="fits no machine type", because=(BECAUSE,))
    about = tuple(Ref(kind="pod", namespace="here", name=f"huge-{number}") for number in range(2))
    yield builders.plan(1)
    yield builders.plan(2, not_done=(NotDone(what="stay pending", about=about, reason=reason),))


def refuse(world: ConsoleWorld, path: str) -> tuple[int, Any]:
    answer = world.call("GET", path, headers={"authorization": f"Bearer {TOKEN}"})
    return answer.status, answer.body


def test_decisions_are_those_of_the_journal_newest_first(world: ConsoleWorld) -> None:
    entries = world.run.run_until(world.journal.list_entries(Query()))
    listed = world.get("/api/decisions")["decisions"]
    assert [(row["number"], row["sentence"]) for row in listed] == [
        (entry.number, entry.format_sentence()) for entry in entries
    ]


@pytest.mark.parametrize(
    ("query", "numbers"),
    [
        ("subsystem=kafka", [3]),
        ("verb=grow", [2, 1]),
        ("verb=STAY", [2]),
        ("text=largest", [2]),
        ("text=nowhere", []),
        ("ref=pod/here/huge-1", [2]),
        ("limit=1", [3]),
        ("since=2026-01-01T12:00:02Z", [3, 2]),
        ("until=2026-01-01T12:00:01Z", [1]),
    ],
)
def test_decisions_are_filtered(world: ConsoleWorld, query: str, numbers: list[int]) -> None:
    assert [row["number"] for row in world.get(f"/api/decisions?{query}")["decisions"]] == numbers


def test_a_decision_has_its_tree_of_reasons(world: ConsoleWorld) -> None:
    decision = world.get("/api/decisions/2")
    (action,), (left,) = decision["actions"], decision["notDone"]
    assert (action["verb"], action["target"], action["result"]) == ("grow", "nodegroup/batch", "Done")
    assert left["about"] == ["pod/here/huge-0", "pod/here/huge-1"]
    assert left["reason"]["because"][0]["facts"] == {"cores": 8}


@pytest.mark.parametrize(
    ("path", "named"),
    [
        ("/api/decisions?limit=0", b"limit"),
        ("/api/decisions?limit=501", b"limit"),
        ("/api/decisions?limit=1e9", b"limit"),
        ("/api/decisions?since=yesterday", b"since"),
        ("/api/decisions?since=2026-01-01", b"since"),
        ("/api/decisions?ref=web", b"ref"),
        ("/api/decisions/0", b"number"),
        ("/api/decisions/-1", b"number"),
        ("/api/decisions/99999999999999999999999", b"number"),
        ("/api/decisions/%D9%A1", b"number"),
        ("/api/things/nodegruop/x", b"nodegroup"),
        ("/api/things/pod", b"pod"),
    ],
)
def test_a_bad_parameter_is_named(world: ConsoleWorld, path: str, named: bytes) -> None:
    status, body = refuse(world, path)
    assert status == 400
    assert named in body


def test_an_entry_that_the_journal_has_dropped_is_not_found(world: ConsoleWorld) -> None:
    assert refuse(world, "/api/decisions/77")[0] == 404


def test_pods_wait_by_reason(world: ConsoleWorld) -> None:
    (group,) = world.get("/api/waiting")["pods"]
    assert group["code"] == "NoFit"
    assert group["count"] == 2
    assert group["pods"] == ["pod/here/huge-0", "pod/here/huge-1"]
    assert "the largest machine has 8 cores" in group["reason"]


def test_a_pod_without_a_decision_waits_too(world: ConsoleWorld) -> None:
    world.add_pod("new-0")
    world.run.advance_by(KEEP_S)
    groups = world.get("/api/waiting")["pods"]
    assert [group["pods"] for group in groups if not group["code"]] == [["pod/here/new-0"]]
    world.ask("DELETE", "/api/v1/namespaces/here/pods/new-0?gracePeriodSeconds=0")
    world.run.settle()


def test_a_pod_has_its_node_requests_and_decisions(world: ConsoleWorld) -> None:
    pod = world.get("/api/things/pod/here/huge-0")
    assert pod["exists"] is True
    assert {fact["name"]: fact["value"] for fact in pod["facts"]}["requested cpu"] == "1"
    assert [decision["number"] for decision in pod["decisions"]] == [2]
    assert world.get("/api/things/pod/here/web-0")["decisions"] == []


def test_a_node_has_its_pods_and_a_group_its_nodes(world: ConsoleWorld) -> None:
    node = world.get("/api/things/node/n1")
    assert [pod["ref"] for pod in node["pods"]] == ["pod/here/web-0"]
    group = world.get("/api/things/nodegroup/batch")
    assert group["nodes"] == [{"ref": "node/n1", "state": "ready"}]
    assert [decision["number"] for decision in group["decisions"]] == [2, 1]


def test_events_of_both_kinds_of_recorders_are_shown_newest_first(world: ConsoleWorld) -> None:
    about = {"kind": "Pod", "namespace": "here", "name": "web-0"}
    times = {"old": {"lastTimestamp": "2026-01-01T00:00:00Z"}, "new": {"eventTime": "2026-01-01T00:00:01.000000Z"}}
    for name, time in times.items():
        event = {"metadata": {"name": name}, "involvedObject": about, "reason": name, "message": "m", **time}
        if "eventTime" in time:
            event |= {"action": "a", "reportingComponent": "c", "reportingInstance": "i", "type": "Normal"}
        world.made("/api/v1/namespaces/here/events", event)
    assert [event["reason"] for event in world.get("/api/things/pod/here/web-0")["events"]] == ["new", "old"]
    assert world.get("/api/things/pod/here/huge-0")["events"] == []


def test_a_thing_that_does_not_exist_says_so(world: ConsoleWorld) -> None:
    assert world.get("/api/things/node/gone")["exists"] is False


def test_the_overview_counts_what_is_there(world: ConsoleWorld) -> None:
    levels = {level["page"]: level for level in world.get("/api/overview")["levels"]}
    assert levels["nodes"]["count"] == 1
    assert levels["waiting"]["detail"].endswith("2 pods without a node") or levels["waiting"]["count"] is None
    assert levels["nodes"]["last"]["number"] == 2
    assert levels["tidb"]["start"] == "plimsoll run tidb"


def test_a_cluster_without_kafka_and_tidb_says_so(world: ConsoleWorld) -> None:
    assert world.get("/api/kafka") == {"clusters": None, "problem": "the cluster does not define Kafka"}
    assert world.get("/api/tidb")["autoscalers"] is None


def test_the_map_is_compressed_on_request(world: ConsoleWorld) -> None:
    for number in range(100):
        world.add_node(f"many-{number}")
    headers = {"authorization": f"Bearer {TOKEN}"}
    plain = world.call("GET", "/api/map", headers=headers)
    packed = world.call("GET", "/api/map", headers={**headers, "accept-encoding": "gzip"})
    assert packed.headers["content-encoding"] == "gzip"
    assert len(packed.body) < len(plain.body)
