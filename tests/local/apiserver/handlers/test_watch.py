from __future__ import annotations

import pytest

from tests.local.apiserver.builders import MERGE, ApiServerHarness, config_map


@pytest.fixture
def world():
    with ApiServerHarness() as made:
        yield made


@pytest.fixture
def maps(world: ApiServerHarness) -> str:
    return f"{world.namespace()}/configmaps"


def test_a_watch_without_a_revision_begins_with_the_present_state(world: ApiServerHarness, maps: str):
    world.made(maps, config_map("a"))
    watching = world.watch(f"{maps}?watch=true")
    world.made(maps, config_map("b"))
    world.ask("PATCH", f"{maps}/b", {"data": {"x": "1"}}, content=MERGE)
    world.ask("PATCH", f"{maps}/b", {"data": {"x": "1"}}, content=MERGE)
    world.ask("DELETE", f"{maps}/b")
    assert watching.story == [("ADDED", "a"), ("ADDED", "b"), ("MODIFIED", "b"), ("DELETED", "b")]


def test_a_watch_from_a_revision_sends_what_came_after_it(world: ApiServerHarness, maps: str):
    seen = world.made(maps, config_map("a"))["metadata"]["resourceVersion"]
    world.made(maps, config_map("b"))
    assert world.watch(f"{maps}?watch=1&resourceVersion={seen}").story == [("ADDED", "b")]


def test_leaving_the_selector_is_a_deletion_for_its_watcher(world: ApiServerHarness, maps: str):
    world.made(maps, config_map("a", metadata={"labels": {"w": "1"}}))
    watching = world.watch(f"{maps}?watch=1&labelSelector=w")
    world.ask("PATCH", f"{maps}/a", {"metadata": {"labels": {"w": None}}}, content=MERGE)
    world.ask("PATCH", f"{maps}/a", {"metadata": {"labels": {"w": "2"}}}, content=MERGE)
    assert watching.story == [("ADDED", "a"), ("DELETED", "a"), ("ADDED", "a")]


def test_a_watch_ends_when_its_time_is_up(world: ApiServerHarness, maps: str):
    watching = world.watch(f"{maps}?watch=1&timeoutSeconds=10")
    world.run.advance_by(9.9)
    assert not watching.has_ended
    world.run.advance_by(0.2)
    assert watching.has_ended


def test_a_watch_that_names_no_time_ends_within_an_hour(world: ApiServerHarness, maps: str):
    watching = world.watch(f"{maps}?watch=1")
    world.run.advance_by(1799)
    assert not watching.has_ended
    world.run.advance_by(1802)
    assert watching.has_ended


def test_bookmarks_come_once_a_minute_and_before_the_end(world: ApiServerHarness, maps: str):
    watching = world.watch(f"{maps}?watch=1&allowWatchBookmarks=true&timeoutSeconds=125")
    counts = []
    for seconds in (59, 2, 60, 2, 1, 2):
        world.run.advance_by(seconds)
        counts.append(len(watching.lines))
    assert counts == [0, 1, 2, 3, 4, 4]
    assert watching.events[0]["object"] == {
        "kind": "ConfigMap",
        "apiVersion": "v1",
        "metadata": {"resourceVersion": str(world.server.store.revision)},
    }


def test_bookmarks_are_sent_on_request_only(world: ApiServerHarness, maps: str):
    watching = world.watch(f"{maps}?watch=1&timeoutSeconds=125")
    world.run.advance_by(200)
    assert watching.lines == []


def test_a_streamed_list_ends_with_a_marked_bookmark(world: ApiServerHarness, maps: str):
    world.made(maps, config_map("a"))
    query = "watch=1&sendInitialEvents=true&allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan"
    events = world.watch(f"{maps}?{query}").events
    assert [event["type"] for event in events] == ["ADDED", "BOOKMARK"]
    assert events[1]["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}


def test_without_initial_events_only_what_is_new_is_reported(world: ApiServerHarness, maps: str):
    world.made(maps, config_map("a"))
    watching = world.watch(f"{maps}?watch=1&sendInitialEvents=false&resourceVersionMatch=NotOlderThan")
    world.made(maps, config_map("b"))
    assert watching.story == [("ADDED", "b")]


@pytest.mark.parametrize(
    "query",
    ["sendInitialEvents=true", "resourceVersionMatch=NotOlderThan", "sendInitialEvents=1&resourceVersionMatch=Exact"],
)
def test_options_of_a_watch_that_do_not_go_together(world: ApiServerHarness, maps: str, query: str):
    assert world.ask("GET", f"{maps}?watch=1&{query}").status == 422


def test_a_revision_history_has_forgotten_is_an_error_event(world: ApiServerHarness, maps: str):
    world.made(maps, config_map("a"))
    world.server.store.compact(world.server.store.revision)
    (event,) = world.ask("GET", f"{maps}?watch=1&resourceVersion=2").body
    assert event["type"] == "ERROR"
    assert (event["object"]["code"], event["object"]["reason"]) == (410, "Expired")
    assert event["object"]["message"].startswith("too old resource version: 2 (")


def test_a_revision_that_is_none_is_refused(world: ApiServerHarness, maps: str):
    reply = world.ask("GET", f"{maps}?watch=1&resourceVersion=abc")
    assert reply.status == 500
    assert reply.message == 'resourceVersion: Invalid value: "abc": strconv.ParseUint: parsing "abc": invalid syntax'


def test_all_watchers_of_the_plain_form_get_the_same_bytes(world: ApiServerHarness, maps: str):
    one, other = world.watch(f"{maps}?watch=1"), world.watch("/api/v1/configmaps?watch=1&labelSelector=w")
    world.made(maps, config_map("a", metadata={"labels": {"w": "1"}}))
    assert one.lines == other.lines != []


def test_a_watch_of_one_object_sees_no_other(world: ApiServerHarness, maps: str):
    watching = world.watch("/api/v1/watch/namespaces/here/configmaps/b")
    world.made(maps, config_map("a"))
    world.made(maps, config_map("b"))
    assert watching.story == [("ADDED", "b")]


def test_a_watch_whose_time_is_over_before_it_begins_ends_at_once(world: ApiServerHarness, maps: str):
    watching = world.watch(f"{maps}?watch=1&timeoutSeconds=-1&resourceVersion={world.server.store.revision}")
    assert watching.has_ended
    assert watching.lines == []
    endless = world.watch(f"{maps}?watch=1&timeoutSeconds=0&resourceVersion={world.server.store.revision}")
    world.run.advance_by(1_000)
    assert not endless.has_ended
    far = world.watch(f"{maps}?watch=1&timeoutSeconds={2**63 - 1}&resourceVersion={world.server.store.revision}")
    assert not far.has_ended
