"""How an informer goes on after everything that can happen to a watch: from where it was, or from the start."""

from __future__ import annotations

import json
from typing import Any

import pytest
from structlog.testing import capture_logs

from plimsoll.kube.informer import InformerSettings
from tests.kube.embedded_api import status_reply
from tests.kube.informer.widget_server import BAD, WidgetCluster, known, widget


def query(call: Any) -> dict[str, str]:
    return dict(call.query)


def test_everything_is_listed_in_pages_of_one_consistent_read():
    with WidgetCluster() as world:
        for name in "abcde":
            world.put(name)
        informer = world.running(InformerSettings(page_size=2))
        assert known(informer) == world.truth()
        assert [query(call).get("limit") for call in world.line.lists] == ["2", "2", "2"]
        assert not any("resourceVersion" in query(call) for call in world.line.lists)


def test_a_watch_goes_on_from_the_list_with_bookmarks_for_some_minutes():
    with WidgetCluster() as world:
        world.put("a")
        informer = world.running()
        version = str(world.store.revision)
        world.run.advance_by(5000)
        asked = [query(call) for call in world.line.watches]
        assert asked[0]["resourceVersion"] == version == informer.status.resource_version
        assert {query["allowWatchBookmarks"] for query in asked} == {"true"}
        lengths = [int(query["timeoutSeconds"]) for query in asked]
        assert len(set(lengths)) > 1
        assert all(300 <= length <= 600 for length in lengths)
        assert len(world.line.lists) == 1


def test_without_bookmarks_a_quiet_watch_stays_open_and_delivers():
    week_s = 7 * 86_400
    quiet = InformerSettings(
        shortest_watch_s=week_s, longest_watch_s=week_s, wants_bookmarks=False, silence_s=week_s + 1
    )
    with WidgetCluster() as world:
        informer = world.running(quiet)
        world.run.advance_by(6 * 86_400)
        world.put("a")
        world.run.settle()
        assert known(informer) == world.truth()
        (asked,) = [query(call) for call in world.line.watches]
        assert "allowWatchBookmarks" not in asked


def test_a_dropped_connection_is_resumed_from_the_last_version_received():
    with WidgetCluster() as world:
        informer = world.running()
        world.put("a")
        world.run.settle()
        world.run.run_until(world.line.break_all())
        world.put("b")
        world.run.advance_by(1)
        assert known(informer) == world.truth()
        assert query(world.line.watches[-1])["resourceVersion"] == world.truth()["a"][1]
        assert len(world.line.sent) == 4  # one list, a watch, a look at where the server is, another watch
        assert len(world.line.lists) == 1


def test_a_bookmark_moves_the_place_to_resume_from():
    with WidgetCluster() as world:
        world.running()
        world._world.made("/api/v1/namespaces", {"metadata": {"name": "elsewhere"}})
        world.run.advance_by(61)
        world.run.run_until(world.line.break_all())
        world.run.advance_by(1)
        assert query(world.line.watches[-1])["resourceVersion"] == str(world.store.revision)


def test_a_version_that_is_gone_means_listing_again():
    with WidgetCluster() as world:
        world.put("a")
        world.put("b")
        informer = world.running()
        world.run.run_until(world.line.break_all())
        world.delete("a")
        world.compact()
        world.run.advance_by(3)
        assert known(informer) == world.truth()
        assert informer.status.relists == 1
        assert informer.status.trouble == ""


def test_pages_that_expire_on_the_way_are_listed_from_the_start(monkeypatch: pytest.MonkeyPatch):
    with WidgetCluster() as world:
        for name in "abcd":
            world.put(name)
        first_pages = [0]
        send = world.line.send

        async def expiring(call: Any) -> Any:
            if "continue" in query(call) and first_pages[0] < 2:
                first_pages[0] += 1
                return status_reply(410, reason="Expired")
            return await send(call)

        monkeypatch.setattr(world.line, "send", expiring)
        informer = world.running(InformerSettings(page_size=2))
        assert known(informer) == world.truth()
        assert "limit" not in query(world.line.lists[-1])  # pages do not work out: everything at once


@pytest.mark.parametrize("code", [401, 403, 429, 500, 503])
def test_a_refusal_keeps_the_cache_is_reported_once_and_does_not_mean_listing_again(code: int):
    with WidgetCluster() as world, capture_logs() as logs:
        world.put("a")
        informer = world.running()
        world.line.replies += [status_reply(code, "not now")] * 3
        world.run.run_until(world.line.break_all())
        world.put("b")
        world.run.advance_by(1.5)
        assert known(informer).keys() == {"a"}
        assert "not now" in informer.status.trouble
        world.run.advance_by(60)
        assert known(informer) == world.truth()
        assert informer.status.trouble == ""
        assert informer.status.relists == 0
        reported = [entry["problem"] for entry in logs if entry["event"] == "informer.trouble"]
        assert len([problem for problem in reported if "not now" in problem]) == 1


def test_failures_are_tried_again_slower_and_slower():
    with WidgetCluster() as world:
        world.running()
        world.line.is_down = True
        world.run.run_until(world.line.break_all())
        world.run.advance_by(300)
        assert 10 < len(world.line.sent) < 40


def test_where_the_server_sends_no_bookmarks_a_quiet_cache_stays_fresh_and_in_no_trouble():
    with WidgetCluster() as world, capture_logs() as logs:
        world.line.sends_bookmarks = False
        world.put("a")
        informer = world.running()
        for _ in range(720):
            world.run.advance_by(5)
            assert informer.get_age_s() <= InformerSettings().silence_s + 5
            assert informer.status.trouble == ""
        assert informer.status.relists == 0
        assert [entry for entry in logs if entry["log_level"] == "warning"] == []
        world.put("b")
        world.run.settle()
        assert known(informer) == world.truth()


def test_a_server_that_answers_nothing_more_is_noticed_within_silence_and_probe():
    with WidgetCluster() as world:
        informer = world.running()
        world.line.streams[0].is_silent = True
        world.line.stalls_calls = True
        settings = InformerSettings()
        world.run.advance_by(settings.silence_s + settings.probe_timeout_s + 5)
        assert "no answer" in informer.status.trouble
        assert informer.get_age_s() > settings.silence_s
        world.line.stalls_calls = False
        world.put("a")
        world.run.advance_by(60)
        assert informer.status.trouble == ""
        assert known(informer) == world.truth()


def test_watches_that_never_deliver_are_replaced_by_lists():
    with WidgetCluster() as world:
        world.line.stalls_watches = True
        informer = world.running()
        world.put("a")
        world.run.advance_by(2 * InformerSettings().silence_s + 5)
        assert known(informer) == world.truth()
        assert informer.status.relists == 1
        world.run.advance_by(3600)
        assert informer.status.relists == 1


def test_a_connection_that_falls_silent_is_given_up_and_resumed():
    with WidgetCluster() as world:
        informer = world.running()
        world.line.streams[0].is_silent = True
        world.put("a")
        world.run.advance_by(95)
        assert known(informer) == {}
        assert informer.get_age_s() == pytest.approx(95)
        world.run.advance_by(10)
        assert known(informer) == world.truth()
        assert informer.status.relists == 0
        assert world.line.streams[0].is_closed or len(world.line.streams) == 1


def test_a_watch_that_ends_again_and_again_is_not_opened_in_a_hurry():
    with WidgetCluster() as world:
        world.put("a")
        informer = world.running(InformerSettings(shortest_watch_s=1, longest_watch_s=1, reopen_after_s=5))
        world.run.advance_by(100)
        assert len(world.line.watches) <= 21
        assert informer.get_age_s() < 60


@pytest.mark.parametrize("down_s", [0.0, 60.0])
def test_a_server_restored_from_a_backup_replaces_everything(down_s: float):
    with WidgetCluster() as world:
        world.put("a", 1)
        backup = world.backup()
        informer = world.running()
        world.put("a", 2)
        world.put("b", 2)
        world.run.settle()
        world.restore(backup, down_s=down_s)
        assert world.store.revision < int(world.backup().revision) + 1
        assert known(informer) == world.truth()
        assert {name: size for name, (_, _, size) in known(informer).items()} == {"a": 1}
        world.put("c", 3)
        world.run.advance_by(1)
        assert known(informer) == world.truth()


def test_a_frame_that_cannot_be_read_means_listing_again_but_not_all_the_time():
    with WidgetCluster() as world:
        informer = world.running()
        for number in range(5):
            world.line.streams[-1].garbage = b"nonsense\n"
            world.put(f"w{number}")
            world.run.advance_by(10)
        assert informer.status.unreadable == 5
        assert informer.status.relists == 1
        world.run.advance_by(400)
        assert informer.status.relists == 2
        assert known(informer) == world.truth()


@pytest.mark.parametrize("kind", ["BOOKMARK", "ADDED"])
def test_a_watch_that_sends_an_older_version_means_listing_again(kind: str):
    with WidgetCluster() as world:
        informer = world.running()
        world.put("a")
        world.run.settle()
        older = {**widget("b"), "metadata": {"name": "b", "namespace": "here", "resourceVersion": "1"}}
        world.line.streams[-1].garbage = json.dumps({"type": kind, "object": older}).encode() + b"\n"
        world.put("a", 2)
        world.run.advance_by(5)
        assert informer.status.relists == 1
        assert known(informer) == world.truth()


def test_until_what_could_not_be_read_is_listed_the_cache_is_as_old_as_that():
    with WidgetCluster() as world:
        informer = world.running()
        for name in "ab":
            world.line.streams[-1].garbage = b"nonsense\n"
            world.put(name)
            world.run.advance_by(10)
        # The first one was listed at once, the second has to wait for its turn; bookmarks make it no younger.
        assert informer.status.is_suspect
        world.run.advance_by(190)
        assert informer.get_age_s() == pytest.approx(200, abs=1)
        heard_at = informer.status.last_received_at
        assert heard_at is not None
        assert (world.clock.now() - heard_at).total_seconds() < 70
        world.run.advance_by(200)
        assert not informer.status.is_suspect
        assert informer.get_age_s() < 70
        assert known(informer) == world.truth()


def test_a_bad_object_is_reported_once_however_often_it_changes():
    with WidgetCluster() as world, capture_logs() as logs:
        informer = world.running()
        for label in range(4):
            world.put("a", BAD)
            patch = {"metadata": {"labels": {"x": str(label)}}}
            world._world.ask(
                "PATCH", "/apis/ex.com/v1/namespaces/here/widgets/a", patch, content="application/merge-patch+json"
            )
            world.run.settle()
        assert len([entry for entry in logs if entry["event"] == "informer.bad_object"]) == 1
        assert informer.cache.get("a", "here") is None
        assert [bad.name for bad in informer.cache.bad.values()] == ["a"]
        assert informer.status.bad == 1


def test_first_events_of_a_watch_take_the_place_of_a_list():
    with WidgetCluster() as world:
        world.put("a")
        informer = world.running(InformerSettings(uses_watch_list=True))
        world.put("b")
        world.run.settle()
        assert known(informer) == world.truth()
        assert world.line.lists == []
        assert query(world.line.watches[0])["sendInitialEvents"] == "true"
        assert query(world.line.watches[0])["resourceVersionMatch"] == "NotOlderThan"


@pytest.mark.parametrize("code", [400, 422])
def test_a_server_without_first_events_is_listed(code: int):
    with WidgetCluster() as world:
        world.put("a")
        world.line.replies.append(status_reply(code))
        informer = world.running(InformerSettings(uses_watch_list=True))
        assert known(informer) == world.truth()
        assert len(world.line.lists) == 1


def test_a_server_that_never_ends_the_first_events_is_listed(monkeypatch: pytest.MonkeyPatch):
    with WidgetCluster() as world:
        world.put("a")
        send = world.line.send

        async def forgetful(call: Any) -> Any:
            pairs = [pair for pair in call.query if pair[0] not in ("sendInitialEvents", "resourceVersionMatch")]
            return await send(call._replace(query=pairs))

        monkeypatch.setattr(world.line, "send", forgetful)
        informer = world.running(InformerSettings(uses_watch_list=True))
        assert known(informer) == world.truth()
        assert len(world.line.lists) == 1


def test_before_the_first_list_nothing_is_known_and_the_cache_is_infinitely_old():
    with WidgetCluster() as world:
        world.line.is_down = True
        informer = world.informer()
        world.run.spawn(informer.run())
        world.run.advance_by(10)
        assert not informer.has_synced
        assert informer.get_age_s() == float("inf")
        assert informer.status.last_received_at is None
        assert "connection refused" in informer.status.trouble
