"""What the scheduler's events look like, and that saying the same again does not make more of them."""

from __future__ import annotations

from plimsoll.local.scheduler.events import NOTE_CHARACTERS, truncate_note
from tests.local.scheduler.builders import SchedulerCluster


def test_events_are_of_the_newer_kind_with_a_time_and_no_count():
    with SchedulerCluster() as world:
        world.node("n1")
        world.pod("p")

        [event] = world.events("p")
        assert event["eventTime"]
        assert event["firstTimestamp"] is None
        assert "count" not in event
        assert (event["action"], event["reportingComponent"]) == ("Binding", "default-scheduler")


def test_the_same_failure_of_the_same_version_becomes_a_series():
    with SchedulerCluster() as world:
        world.node("n1")
        world.pod("p", cpu="9")
        assert len(world.events("p")) == 1

        world.run.advance_by(3_000)

        last = world.events("p")[-1]
        assert last["series"]["count"] > 2
        assert len(world.events("p")) == 2  # before the condition was there, and after


def test_a_note_that_is_too_long_ends_in_dots():
    assert truncate_note("x" * NOTE_CHARACTERS) == "x" * NOTE_CHARACTERS
    assert truncate_note("x" * 2_000) == "x" * 1_020 + " ..."
