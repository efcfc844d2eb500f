from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from structlog.testing import capture_logs

from plimsoll.kube.leases import LeaseHolder, NotLeading, Phase
from plimsoll.testing import run_virtual
from tests.kube.leases.simulated_leases import PATH, CallOutcome, lease_world

if TYPE_CHECKING:
    from plimsoll.runtime.clocks import VirtualClock
    from tests.golden.reviewed_sentences import ReviewedSentences


def test_the_first_to_come_creates_the_lease_with_the_fields_of_client_go():
    async def main(clock: VirtualClock):
        async with lease_world(clock) as world:
            a = world.contender("a")
            world.start(a)
            await a.holder.wait_until_acquired()
            return await world.spec()

    spec = run_virtual(main)
    assert spec == {
        "holderIdentity": "a",
        "leaseDurationSeconds": 15,
        "acquireTime": spec["renewTime"],
        "renewTime": spec["renewTime"],
        "leaseTransitions": 0,
    }
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", spec["renewTime"])


def test_the_leader_renews_every_retry_period_and_keeps_its_acquire_time():
    async def main(clock: VirtualClock):
        async with lease_world(clock) as world:
            a = world.contender()
            world.start(a)
            await a.holder.wait_until_acquired()
            first = await world.spec()
            await clock.sleep(20.5)
            return first, await world.spec(), a.holder.renewals, len(a.network.calls)

    first, last, renewals, calls = run_virtual(main)
    assert renewals == 10
    assert calls == 2 + renewals, "a renewal is one call"
    assert last["acquireTime"] == first["acquireTime"]
    assert last["leaseTransitions"] == 0
    assert last["renewTime"] > first["renewTime"]


def test_a_renewal_is_a_patch_that_carries_the_version_it_replaces():
    async def main(clock: VirtualClock):
        async with lease_world(clock) as world:
            a = world.contender()
            world.start(a)
            await clock.sleep(3)
            return a.network.calls[-1]

    call = run_virtual(main)
    assert (call.method, call.path) == ("PATCH", PATH)
    assert call.headers["content-type"] == "application/merge-patch+json"
    assert b'"resourceVersion":"' in call.body


def test_a_call_may_last_as_long_as_the_lease_counted_from_before_the_renewal_was_sent():
    async def main(clock: VirtualClock):
        async with lease_world(clock) as world:
            a = world.contender()
            a.network.fate = lambda _: CallOutcome(to_server_s=0.5, to_us_s=0.5)
            world.start(a)
            await a.holder.wait_until_acquired()
            return a.holder.limit_duration_s(30.0), a.holder.limit_duration_s(3.0)

    longest_s, wanted_s = run_virtual(main)
    assert longest_s == pytest.approx(15 - 0.75 - 1.0)
    assert wanted_s == 3.0


def test_a_candidate_without_the_lease_may_not_act(reviewed: ReviewedSentences):
    async def main(clock: VirtualClock):
        async with lease_world(clock) as world:
            a, b = world.contender("a"), world.contender("b")
            world.start(a)
            await a.holder.wait_until_acquired()
            world.start(b)
            await clock.sleep(60)
            with pytest.raises(NotLeading) as raised:
                b.holder.limit_duration_s(0.1)
            reviewed(str(raised.value))
            return a.holder.is_leading, b.holder.is_leading, b.holder.observed_holder

    assert run_virtual(main) == (True, False, "a")


def test_before_a_removal_a_stolen_lease_is_noticed_at_once(reviewed: ReviewedSentences):
    """The clock alone would allow it until the next renewal."""

    async def main(clock: VirtualClock):
        async with lease_world(clock) as world:
            a = world.contender("a")
            world.start(a)
            await a.holder.wait_until_acquired()
            await a.holder.confirm()
            await world.patch({"spec": {"holderIdentity": "thief"}})
            await clock.sleep(1)
            assert a.holder.limit_duration_s(1.0) == 1.0, "it was not renewed since"
            with pytest.raises(NotLeading) as raised:
                await a.holder.confirm()
            reviewed(str(raised.value))

    run_virtual(main)


def test_before_a_removal_a_lease_that_is_gone_or_that_nothing_reads_is_not_held(reviewed: ReviewedSentences):
    async def main(clock: VirtualClock):
        async with lease_world(clock) as world:
            a = world.contender("a")
            unread = LeaseHolder(a.holder.settings, identity="a", clock=clock)
            for holder in (a.holder, unread):
                with pytest.raises(NotLeading) as raised:
                    await holder.confirm()
                reviewed(str(raised.value))

    run_virtual(main)


def test_removals_that_follow_each_other_share_a_read():
    async def main(clock: VirtualClock):
        async with lease_world(clock) as world:
            a = world.contender("a")
            world.start(a)
            await a.holder.wait_until_acquired()
            for _ in range(10):
                await a.holder.confirm()
            shared = len(world.reads)
            await clock.sleep(1)
            await a.holder.confirm()
            return shared, len(world.reads)

    assert run_virtual(main) == (1, 2)


def test_a_call_is_not_begun_in_the_last_moments_of_the_lease(reviewed: ReviewedSentences):
    async def main(clock: VirtualClock):
        async with lease_world(clock) as world:
            a = world.contender()
            world.start(a)
            await a.holder.wait_until_acquired()
            a.network.fate = lambda _: CallOutcome(outcome="unsent")
            await clock.sleep(14.0)
            assert a.holder.limit_duration_s(0.1) == 0.1
            with pytest.raises(NotLeading) as raised:
                a.holder.limit_duration_s(5.0)
            reviewed(str(raised.value))
            await clock.sleep(0.25)
            with pytest.raises(NotLeading):
                a.holder.limit_duration_s(0.0)

    run_virtual(main)


def test_a_leader_that_cannot_renew_by_the_deadline_has_lost_and_tries_no_more():
    async def main(clock: VirtualClock):
        async with lease_world(clock) as world:
            a = world.contender()
            running = world.start(a)
            await a.holder.wait_until_acquired()
            a.network.fate = lambda _: CallOutcome(outcome="unsent")
            began_s = clock.monotonic_s()
            await a.holder.wait_until_lost()
            assert clock.monotonic_s() - began_s == pytest.approx(10, abs=0.01)
            await running
            assert a.holder.phase is Phase.LOST
            assert "could not be renewed for 10 s" in a.holder.loss_reason
            assert not a.holder.is_leading
            assert a.holder.limit_duration_s(30) == pytest.approx(4.25, abs=0.01), "what is left serves a clean end"
            a.network.fate = lambda _: CallOutcome()
            renewed = await world.spec()
            await clock.sleep(60)
            assert await world.spec() == renewed

    run_virtual(main)


def test_one_lost_answer_does_not_extend_the_lease_and_is_found_by_looking():
    async def main(clock: VirtualClock):
        async with lease_world(clock) as world:
            a = world.contender()
            world.start(a)
            await a.holder.wait_until_acquired()
            until_s = a.holder.promised_until_s
            fates = iter([CallOutcome(outcome="lost"), CallOutcome(to_server_s=0.5)])
            a.network.fate = lambda _: next(fates, CallOutcome())
            await clock.sleep(2.2)
            assert a.holder.promised_until_s == until_s
            await clock.sleep(0.5)
            methods = [call.method for call in a.network.calls[2:]]
            return methods, a.holder.promised_until_s - until_s, a.holder.failures

    methods, gained_s, failures = run_virtual(main)
    assert methods == ["PATCH", "GET", "PATCH"]
    assert gained_s == pytest.approx(2.5, abs=0.01)
    assert failures == 1


@pytest.mark.parametrize("outcome", ["lost", "failed-late"])
def test_an_acquisition_whose_answer_is_lost_counts_from_when_it_was_sent(outcome: str):
    async def main(clock: VirtualClock):
        async with lease_world(clock) as world:
            a = world.contender()
            fates = iter([CallOutcome(), CallOutcome(outcome=outcome)])
            a.network.fate = lambda _: next(fates, CallOutcome())
            world.start(a)
            await a.holder.wait_until_acquired()
            return a.holder.promised_until_s, [call.method for call in a.network.calls]

    until_s, methods = run_virtual(main)
    assert methods == ["GET", "POST", "GET"]
    assert until_s == pytest.approx(14.25), "the write of the first instant"


def test_a_label_on_the_lease_does_not_end_a_leadership():
    async def main(clock: VirtualClock):
        async with lease_world(clock) as world:
            a = world.contender()
            world.start(a)
            await a.holder.wait_until_acquired()
            await world.patch({"metadata": {"labels": {"team": "data"}}})
            await clock.sleep(30)
            return a.holder.is_leading, a.holder.failures

    assert run_virtual(main) == (True, 1)


def test_a_wall_clock_that_stands_still_or_goes_back_still_gives_renewals_that_change_something(
    monkeypatch: pytest.MonkeyPatch,
):
    async def main(clock: VirtualClock):
        async with lease_world(clock) as world:
            a, b = world.contender("a"), world.contender("b")
            stopped = clock.now()
            monkeypatch.setattr(a.clock, "now", lambda: stopped)
            world.start(a)
            await a.holder.wait_until_acquired()
            world.start(b)
            await clock.sleep(60)
            a.clock.off_by_s = -86_400
            await clock.sleep(60)
            return a.holder.is_leading, b.holder.is_leading, a.holder.failures

    assert run_virtual(main) == (True, False, 0)


def test_a_failure_that_stays_is_reported_once_until_it_changes_or_is_over():
    async def main(clock: VirtualClock):
        async with lease_world(clock) as world:
            a = world.contender()
            with capture_logs() as logs:
                a.network.fate = lambda _: CallOutcome(outcome="failed")
                world.start(a)
                await clock.sleep(100)
                a.network.fate = lambda _: CallOutcome(outcome="unsent")
                await clock.sleep(100)
                a.network.fate = lambda _: CallOutcome()
                await clock.sleep(3)
                a.network.fate = lambda _: CallOutcome(outcome="unsent")
                await clock.sleep(5)
            tries = a.holder.failures
            return tries, [
                (log_entry["phase"], log_entry["error"])
                for log_entry in logs
                if log_entry["event"] == "lease.attempt_failed"
            ]

    tries, reported = run_virtual(main)
    assert tries > 100
    assert [(phase, error.split(":")[0]) for phase, error in reported] == [
        ("contending", "ServerFailed"),
        ("contending", "NotSent"),
        ("leading", "NotSent"),
    ]


def test_the_status_shows_what_a_metric_needs():
    async def main(clock: VirtualClock):
        async with lease_world(clock) as world:
            a = world.contender()
            world.start(a)
            await clock.sleep(4.5)
            return a.holder.get_status()

    status = run_virtual(main)
    assert (status.lease, status.identity, status.phase) == ("lease kube-system/cluster-autoscaler", "a", "leading")
    assert (status.renewals, status.failures, status.last_error, status.observed_holder) == (2, 0, "", "a")
    assert status.valid_for_s == pytest.approx(13.75)
