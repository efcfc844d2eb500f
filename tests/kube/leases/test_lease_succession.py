from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from plimsoll.testing import run_virtual
from tests.kube.leases.simulated_leases import SETTINGS, CallOutcome, lease_world, overlapping

if TYPE_CHECKING:
    from plimsoll.runtime.clocks import VirtualClock
    from tests.kube.leases.simulated_leases import Contender, LeaseCluster

CLIENT_GO = {
    "holderIdentity": "ip-10-0-0-1_2c0ffe",
    "leaseDurationSeconds": 15,
    "acquireTime": "2026-01-01T00:00:00.000000Z",
    "renewTime": "2026-01-01T00:00:00.000000Z",
    "leaseTransitions": 7,
}


async def seconds_until_acquired(world: LeaseCluster, contender: Contender) -> float:
    began_s = world.clock.monotonic_s()
    world.start(contender)
    await contender.holder.wait_until_acquired()
    return world.clock.monotonic_s() - began_s


def test_after_a_crash_another_leads_within_duration_and_retry_period_and_not_before_the_duration():
    async def main(clock: VirtualClock):
        async with lease_world(clock) as world:
            a, b = world.contender("a"), world.contender("b")
            running = world.start(a)
            await a.holder.wait_until_acquired()
            world.start(b)
            await clock.sleep(31)
            running.cancel()
            until_s, began_s = a.holder.promised_until_s, clock.monotonic_s()
            await b.holder.wait_until_acquired()
            assert clock.monotonic_s() > until_s
            return clock.monotonic_s() - began_s, await world.spec()

    took_s, spec = run_virtual(main)
    assert 13 <= took_s <= 15 + 2
    assert (spec["holderIdentity"], spec["leaseTransitions"]) == ("b", 1)


def test_a_stand_down_hands_over_within_a_retry_period():
    async def main(clock: VirtualClock):
        async with lease_world(clock) as world:
            a, b = world.contender("a"), world.contender("b")
            running = world.start(a)
            await a.holder.wait_until_acquired()
            world.start(b)
            await clock.sleep(31)
            a.holder.stand_down()
            await running
            released, began_s = await world.spec(), clock.monotonic_s()
            await b.holder.wait_until_acquired()
            return released, clock.monotonic_s() - began_s, await world.spec()

    released, took_s, spec = run_virtual(main)
    assert (released["holderIdentity"], released["leaseDurationSeconds"], released["leaseTransitions"]) == ("", 1, 0)
    assert took_s <= 2
    assert (spec["holderIdentity"], spec["leaseDurationSeconds"], spec["leaseTransitions"]) == ("b", 15, 1)


def test_a_stand_down_does_not_touch_the_lease_of_another():
    async def main(clock: VirtualClock):
        async with lease_world(clock) as world:
            await world.put_record(**CLIENT_GO)
            a = world.contender("a")
            running = world.start(a)
            await clock.sleep(5)
            a.holder.stand_down()
            await running
            return await world.spec()

    assert run_virtual(main) == CLIENT_GO


def test_a_stand_down_while_the_acquisition_is_unanswered_gives_back_what_was_got():
    async def main(clock: VirtualClock):
        async with lease_world(clock) as world:
            a = world.contender("a")
            a.network.fate = lambda call: CallOutcome(outcome="lost" if call.method == "POST" else "ok")
            running = world.start(a)
            await clock.sleep(0.1)
            a.holder.stand_down()
            await running
            return (await world.spec())["holderIdentity"]

    assert run_virtual(main) == ""


def test_a_release_whose_answer_is_lost_is_not_sent_against_a_successor():
    async def main(clock: VirtualClock):
        async with lease_world(clock) as world:
            a, b = world.contender("a"), world.contender("b")
            running = world.start(a)
            await a.holder.wait_until_acquired()
            world.start(b)
            await clock.sleep(1)
            a.network.fate = lambda call: CallOutcome(outcome="lost" if call.method == "PATCH" else "ok", to_us_s=4)
            a.holder.stand_down()
            await running
            return (await world.spec())["holderIdentity"], b.holder.is_leading

    assert run_virtual(main) == ("b", True)


SILENT = CallOutcome(to_server_s=1000)


@pytest.mark.parametrize("stands_down_after_s", [1.0, 2.5], ids=["between two renewals", "in the middle of one"])
def test_leaving_takes_no_longer_than_its_timeout_when_the_server_does_not_answer(stands_down_after_s: float):
    async def main(clock: VirtualClock):
        async with lease_world(clock) as world:
            a = world.contender("a")
            running = world.start(a)
            await a.holder.wait_until_acquired()
            a.network.fate = lambda _: SILENT
            await clock.sleep(stands_down_after_s)
            began_s = clock.monotonic_s()
            a.holder.stand_down()
            await running
            return clock.monotonic_s() - began_s

    assert run_virtual(main) == pytest.approx(SETTINGS.release_timeout_s, abs=0.01)


def test_leaving_before_anything_was_written_takes_no_time_when_the_server_does_not_answer():
    async def main(clock: VirtualClock):
        async with lease_world(clock) as world:
            a = world.contender("a")
            a.network.fate = lambda _: SILENT
            running = world.start(a)
            await clock.sleep(1)
            a.holder.stand_down()
            await running
            return clock.monotonic_s()

    assert run_virtual(main) == 1


def test_a_renewal_that_was_broken_off_by_a_stand_down_is_given_back_too():
    async def main(clock: VirtualClock):
        async with lease_world(clock) as world:
            a = world.contender("a")
            running = world.start(a)
            await a.holder.wait_until_acquired()
            slow = [CallOutcome(to_us_s=2.0)]
            a.network.fate = lambda _: slow.pop() if slow else CallOutcome()
            await clock.sleep(2.5)
            assert not slow, "the renewal is on its way"
            a.holder.stand_down()
            await running
            return await world.spec(), clock.monotonic_s()

    spec, ended_at_s = run_virtual(main)
    assert spec["holderIdentity"] == ""
    assert ended_at_s < 2.6


def test_cluster_autoscaler_is_waited_for_as_long_as_its_record_says():
    async def main(clock: VirtualClock):
        async with lease_world(clock) as world:
            await world.put_record(**{**CLIENT_GO, "leaseDurationSeconds": 40})
            return await seconds_until_acquired(world, world.contender()), await world.spec()

    took_s, spec = run_virtual(main)
    assert 40 <= took_s <= 42
    assert spec["leaseTransitions"] == 8


@pytest.mark.parametrize(
    ("change", "at_least_s", "at_most_s"),
    [
        ({"holderIdentity": None}, 0, 0),
        ({"holderIdentity": ""}, 0, 0),
        ({"leaseDurationSeconds": None}, 15, 17),
        ({"leaseDurationSeconds": 2_000_000_000}, 3600, 3602),
        ({"renewTime": None, "acquireTime": None}, 15, 17),
        ({"renewTime": "2999-01-01T00:00:00.000000Z"}, 15, 17),
        ({"leaseTransitions": None}, 15, 17),
        ({"leaseTransitions": 2**31 - 1}, 15, 17),
    ],
)
def test_a_record_with_odd_fields_is_waited_for_and_taken(change: Any, at_least_s: float, at_most_s: float):
    async def main(clock: VirtualClock):
        async with lease_world(clock) as world:
            await world.put_record(
                **{key: value for key, value in {**CLIENT_GO, **change}.items() if value is not None}
            )
            took_s = await seconds_until_acquired(world, world.contender())
            await clock.sleep(20)
            return took_s, await world.spec()

    took_s, spec = run_virtual(main)
    assert at_least_s <= took_s <= at_most_s
    assert (spec["holderIdentity"], spec["leaseDurationSeconds"]) == ("a", 15)
    assert spec["leaseTransitions"] == {None: 1, 2**31 - 1: 2**31 - 1}.get(change.get("leaseTransitions", 7), 8)


def test_a_lease_without_any_record_is_taken_at_once():
    async def main(clock: VirtualClock):
        async with lease_world(clock) as world:
            await world.put_record()
            return await seconds_until_acquired(world, world.contender())

    assert run_virtual(main) == 0


def test_a_record_with_our_own_name_that_we_did_not_write_is_waited_for():
    async def main(clock: VirtualClock):
        async with lease_world(clock) as world:
            former, reborn = world.contender("a"), world.contender("a")
            running = world.start(former)
            await former.holder.wait_until_acquired()
            running.cancel()
            return await seconds_until_acquired(world, reborn), (await world.spec())["leaseTransitions"]

    took_s, transitions = run_virtual(main)
    assert 15 <= took_s <= 17
    assert transitions == 1


def test_the_version_counts_not_the_time_that_is_written():
    async def main(clock: VirtualClock):
        async with lease_world(clock) as world:
            await world.put_record(**CLIENT_GO)
            a = world.contender()
            world.start(a)
            for _ in range(10):
                await clock.sleep(4)
                # Renewed twice between two looks, back to the time that stood there.
                await world.patch({"spec": {"renewTime": "2026-01-01T00:00:09.000000Z"}})
                await world.patch({"spec": {"renewTime": CLIENT_GO["renewTime"]}})
            return a.holder.is_leading

    assert run_virtual(main) is False


def test_of_many_challengers_one_wins():
    async def main(clock: VirtualClock):
        async with lease_world(clock) as world:
            await world.put_record(**CLIENT_GO)
            many = [world.contender(f"c{number}") for number in range(6)]
            for contender in many:
                world.start(contender)
            await clock.sleep(40)
            return sum(candidate.holder.is_leading for candidate in many), (await world.spec())["leaseTransitions"]

    assert run_virtual(main) == (1, 8)


# -- another client removes or edits the lease of a leader


def test_a_leader_whose_lease_was_deleted_makes_it_again_and_goes_on():
    async def main(clock: VirtualClock):
        async with lease_world(clock) as world:
            a, b = world.contender("a"), world.contender("b")
            world.start(a)
            await a.holder.wait_until_acquired()
            world.start(b)
            await clock.sleep(5)
            await world.delete()
            await clock.sleep(30)
            return a.holder.is_leading, b.holder.is_leading, (await world.spec())["holderIdentity"]

    assert run_virtual(main) == (True, False, "a")


def test_a_leader_that_finds_its_lease_gone_does_not_act_until_its_creation_has_won():
    async def main(clock: VirtualClock):
        async with lease_world(clock) as world:
            a = world.contender("a")
            world.start(a)
            await a.holder.wait_until_acquired()
            a.network.fate = lambda call: CallOutcome(to_server_s=1.0 if call.method == "POST" else 0.0)
            await world.delete()
            await clock.sleep(2.5)
            during = a.holder.is_leading
            await clock.sleep(1)
            return during, a.holder.is_leading, a.holder.phase

    assert run_virtual(main) == (False, True, "leading")


def test_a_leader_whose_lease_was_deleted_and_made_by_another_has_lost():
    async def main(clock: VirtualClock):
        async with lease_world(clock) as world:
            a = world.contender("a")
            world.start(a)
            await a.holder.wait_until_acquired()
            await world.delete()
            await world.put_record(**CLIENT_GO)
            await a.holder.wait_until_lost()
            return clock.monotonic_s(), a.holder.loss_reason, a.holder.is_leading, (await world.spec())

    lost_at_s, reason, is_leading, spec = run_virtual(main)
    assert lost_at_s <= 2.1
    assert reason == f"its holder is {CLIENT_GO['holderIdentity']}"
    assert not is_leading
    assert spec == CLIENT_GO


def test_a_challenger_that_saw_a_holder_does_not_create_at_once_when_the_lease_is_gone():
    async def main(clock: VirtualClock):
        async with lease_world(clock) as world:
            a, b = world.contender("a"), world.contender("b")
            running = world.start(a)
            await a.holder.wait_until_acquired()
            world.start(b)
            await clock.sleep(5)
            running.cancel()
            until_s = a.holder.promised_until_s
            await world.delete()
            began_s = clock.monotonic_s()
            await b.holder.wait_until_acquired()
            return clock.monotonic_s() > until_s, clock.monotonic_s() - began_s

    is_after, took_s = run_virtual(main)
    assert is_after
    assert 15 <= took_s <= 17


def test_a_leader_whose_record_was_emptied_by_hand_gives_way():
    async def main(clock: VirtualClock):
        async with lease_world(clock) as world:
            a = world.contender("a")
            world.start(a)
            await a.holder.wait_until_acquired()
            await world.patch({"spec": {"holderIdentity": ""}})
            await a.holder.wait_until_lost()
            return a.holder.loss_reason, a.holder.is_leading

    assert run_virtual(main) == ("its holder is no process", False)


def test_a_frozen_leader_does_not_act_after_it_wakes():
    async def main(clock: VirtualClock):
        async with lease_world(clock) as world:
            a, b = world.contender("a"), world.contender("b")
            world.start(a)
            await a.holder.wait_until_acquired()
            world.start(b)
            acting = [world.spawn(contender.act()) for contender in (a, b)]
            await clock.sleep(7)
            a.freezer.freeze()
            frozen_at_s = clock.monotonic_s()
            await b.holder.wait_until_acquired()
            await clock.sleep(1)
            a.freezer.thaw()
            await clock.sleep(20)
            assert acting
            return max(begin for begin, _ in a.acted) <= frozen_at_s, a.holder.phase, len(b.acted), overlapping([a, b])

    stopped, phase, acts, overlaps = run_virtual(main)
    assert stopped
    assert phase == "lost"
    assert acts > 10
    assert overlaps == []
