"""Events go an hour after their last write, as in Kubernetes, also under virtual time and after a restart."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from plimsoll.local.apiserver.event_expiry import EventExpiry
from tests.local.apiserver.builders import MERGE, ApiServerHarness

if TYPE_CHECKING:
    from collections.abc import Iterator

EVENTS = "/api/v1/namespaces/default/events"


@pytest.fixture
def world() -> Iterator[ApiServerHarness]:
    with ApiServerHarness() as made:
        made.run.run_until(made.application.start())
        yield made


def begin(world: ApiServerHarness, **settings: Any) -> None:
    world.run.spawn(EventExpiry(world.server, **settings).run())
    world.run.settle()


def event(name: str, **more: Any) -> dict[str, Any]:
    about = {"kind": "Pod", "namespace": "default", "name": "p"}
    return {"metadata": {"name": name}, "involvedObject": about, "reason": "Started", "type": "Normal", **more}


def names(world: ApiServerHarness) -> list[str]:
    return [item["metadata"]["name"] for item in world.ask("GET", EVENTS).body["items"]]


def test_an_event_is_deleted_an_hour_after_its_last_write(world: ApiServerHarness):
    begin(world)
    watching = world.watch(f"{EVENTS}?watch=1&timeoutSeconds=36000")
    world.made(EVENTS, event("old"))
    world.run.advance_by(1_800)
    world.made(EVENTS, event("young"))
    world.run.advance_by(1_799)
    assert names(world) == ["old", "young"]
    world.run.advance_by(2)
    assert names(world) == ["young"]
    assert [(line["type"], line["object"]["metadata"]["name"]) for line in watching.events][-1] == ("DELETED", "old")
    world.run.advance_by(1_800)
    assert names(world) == []


def test_an_event_that_is_counted_up_lives_on(world: ApiServerHarness):
    begin(world)
    world.made(EVENTS, event("again"))
    for _ in range(3):
        world.run.advance_by(3_000)
        assert world.ask("PATCH", f"{EVENTS}/again", {"count": 2}, content=MERGE).status == 200
        world.ask("PATCH", f"{EVENTS}/again", {"count": 3}, content=MERGE)
    world.run.advance_by(3_601)
    assert names(world) == []


def test_the_time_can_be_chosen(world: ApiServerHarness):
    begin(world, ttl_s=60)
    world.made(EVENTS, event("short"))
    world.run.advance_by(61)
    assert names(world) == []


def test_events_of_an_earlier_run_are_as_old_as_they_say(world: ApiServerHarness):
    world.made(EVENTS, event("created"))
    world.run.advance_by(3_000)
    world.made(EVENTS, event("recent", lastTimestamp="2026-01-01T00:50:00Z"))
    world.made(EVENTS, event("odd", lastTimestamp="9999-12-31T23:59:59Z"))
    begin(world)
    world.run.advance_by(601)
    assert names(world) == ["odd", "recent"]
    world.run.advance_by(3_000)
    assert names(world) == []


def test_many_events_go_together_and_nothing_else_does(world: ApiServerHarness):
    begin(world)
    for number in range(450):
        world.made(EVENTS, event(f"e{number}"))
    world.made("/api/v1/namespaces/default/configmaps", {"metadata": {"name": "kept"}})
    world.run.advance_by(3_601)
    assert names(world) == []
    assert world.ask("GET", "/api/v1/namespaces/default/configmaps/kept").status == 200
