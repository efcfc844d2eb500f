"""The stream of changes: the whole map first, then at most one event per second, and nothing without a browser."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.console.console_world import Browser, ConsoleWorld

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def world() -> Iterator[ConsoleWorld]:
    with ConsoleWorld() as made:
        made.namespace()
        made.add_node("n1", **{"cloud.plimsoll.io/node-group": "batch"})
        yield made


def test_a_browser_gets_the_whole_map_and_then_changes(world: ConsoleWorld) -> None:
    browser = Browser(world)
    (name, snapshot), *rest = browser.events
    assert (name, rest) == ("snapshot", [])
    assert snapshot["nodes"]["name"] == ["n1"]
    assert snapshot["names"]["nodes"]["group"] == ["batch"]

    world.add_pod("web-0", "n1")
    world.run.advance_by(2)

    name, change = browser.events[-1]
    assert name == "changes"
    assert change["version"] == snapshot["version"] + 1
    assert change["pods"]["rows"]["name"] == ["web-0"]
    assert change["names"]["pods"]["node"]["values"] == ["n1"]


def test_a_thousand_changes_within_a_second_are_one_event(world: ConsoleWorld) -> None:
    browser = Browser(world)
    for number in range(30):
        world.add_pod(f"web-{number}", "n1")
    world.run.advance_by(2)
    changes = [change for name, change in browser.events if name == "changes"]
    assert len(changes) <= 2
    assert sum(len(change["pods"]["slots"]) for change in changes) == 30


def test_a_pod_that_is_deleted_or_has_ended_leaves_the_map(world: ConsoleWorld) -> None:
    world.add_pod("web-0", "n1")
    browser = Browser(world)
    assert browser.events[0][1]["pods"]["name"] == ["web-0"]
    world.ask("DELETE", "/api/v1/namespaces/here/pods/web-0?gracePeriodSeconds=0")
    world.run.advance_by(2)
    assert browser.events[-1][1]["pods"]["gone"] == [0]


def test_all_browsers_get_the_same_event_and_one_that_leaves_is_forgotten(world: ConsoleWorld) -> None:
    browsers = [Browser(world) for _ in range(20)]
    browsers[0].leave()
    world.add_pod("web-0", "n1")
    world.run.advance_by(2)
    assert browsers[0].names() == ["snapshot"]
    assert all(browser.events[1:] == browsers[1].events[1:] for browser in browsers[1:])


def test_nothing_is_kept_while_no_browser_is_connected(world: ConsoleWorld) -> None:
    assert not world.console.is_map_kept
    browser = Browser(world)
    assert world.console.is_map_kept
    browser.leave()
    world.run.advance_by(120)
    assert not world.console.is_map_kept
    world.add_pod("web-0", "n1")
    again = Browser(world)
    assert again.events[0][1]["pods"]["name"] == ["web-0"]


def test_a_quiet_connection_shows_that_it_lives(world: ConsoleWorld) -> None:
    browser = Browser(world)
    world.run.advance_by(40)
    assert browser.comments >= 2
    assert browser.names() == ["snapshot"]


def test_a_slow_browser_gets_the_whole_map_again(world: ConsoleWorld) -> None:
    stream = world.console.subscribe()
    first = world.run.run_until(anext(stream))
    assert first.startswith(b"event: snapshot")
    for number in range(8):
        world.add_pod(f"web-{number}", "n1")
        world.run.advance_by(1.5)
    newest = world.run.run_until(anext(stream))
    seen = [newest]
    while not seen[-1].startswith(b"event: snapshot"):
        seen.append(world.run.run_until(anext(stream)))
        assert len(seen) < 10
    assert b"web-7" in seen[-1]


def test_the_end_of_the_process_ends_every_stream(world: ConsoleWorld) -> None:
    browser = Browser(world)
    world.stop()
    assert browser.has_ended
