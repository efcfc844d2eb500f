"""One clock for each group, in two places (docs/design/tidb.md 3.4)."""

from __future__ import annotations

from datetime import timedelta

import pytest

from plimsoll.tidb.planning.reconcile.cooldown import check_cooldown, find_last_change
from tests.narrowing import present
from tests.tidb.planning.reconcile.builders import KEY, at, codes, decided, entry, group, next_pass, plan, seen

DAY_S = 24 * 3600


@pytest.mark.parametrize(("seconds", "waits"), [(299, True), (299.999, True), (300, False), (300.5, False)])
def test_whole_seconds_count(seconds: float, waits: bool):
    assert bool(check_cooldown(find_last_change([at(0)], now=at(seconds)), interval_s=300, now=at(seconds))) is waits


def test_the_later_of_status_and_annotation_counts():
    assert find_last_change([at(5), at(9)], now=at(20)).moment == at(9)
    assert find_last_change([at(5), None], now=at(20)).moment == at(5)
    assert find_last_change([None, None], now=at(20)).moment is None


def test_a_time_ahead_is_waited_for_even_without_an_interval():
    assert check_cooldown(find_last_change([at(60)], now=at(0)), interval_s=0, now=at(0))
    assert not check_cooldown(find_last_change([at(60)], now=at(60)), interval_s=0, now=at(60))


def test_a_time_of_more_than_a_day_ahead_is_not_believed_and_reported():
    assert find_last_change([at(DAY_S)], now=at(0)).moment == at(DAY_S)
    found = find_last_change([at(DAY_S + 1), at(-5)], now=at(0))
    assert found.moment == at(-5)
    assert [note.code for note in found.build_clock_notes()] == ["ClockJumped"]
    world = seen(group(), status={KEY: entry(2 * DAY_S)})
    (act,) = decided(world, plan(count=2)).acts
    assert [reason.code for reason in act.reason.because] == ["ClockJumped"]


def test_a_crash_before_the_status_was_written_does_not_scale_twice():
    world = seen(group())
    world = next_pass(world, decided(world, plan(count=2)), now=0, crashes=True)
    assert KEY not in world.status
    assert codes(decided(world, plan(count=3), now=30)) == {KEY: "CoolingDown"}


def test_what_waits_is_reported_in_words_that_stay_the_same():
    world = seen(group(), status={KEY: entry(0)})
    early, later = (decided(world, plan(count=2), now=now) for now in (10, 200))
    assert early == later
    assert "2026-01-01T00:05:00Z" in str(early.held[0].reason)


def test_times_are_kept_in_whole_seconds():
    world = seen()
    world = next_pass(world, decided(world, plan()), now=0.75)
    assert world.status[KEY].last_auto_scaling_timestamp == at(0)
    assert present(world.status[KEY].last_auto_scaling_timestamp).utcoffset() == timedelta(0)
