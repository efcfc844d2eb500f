from __future__ import annotations

import signal
import time
from typing import TYPE_CHECKING

import pytest

from tests.e2e.apiserver.processes import running
from tests.e2e.kube_leases.contests import Contest, contest, now_s
from tests.effort import IS_LONG

if TYPE_CHECKING:
    from pathlib import Path

# Leases of a second or two: another suite beside it would decide who leads.
pytestmark = pytest.mark.serial

# A bound for a loaded machine; `make bench` measures.
GENEROUS = 20
KILLS = 25 if IS_LONG else 10


@pytest.mark.parametrize(("processes", "kills"), [(2, KILLS), (3, KILLS)])
def test_killing_the_leader_again_and_again_never_lets_two_act(tmp_path: Path, processes: int, kills: int):
    with contest(tmp_path) as one:
        for _ in range(processes):
            one.enter()
        leader = one.await_leader(0)
        for _ in range(kills):
            killed_at_s = now_s()
            one.send(leader.pid, signal.SIGKILL)
            one.enter()
            leader = one.await_leader(killed_at_s, but_not=leader.pid)
            assert leader.at_s - killed_at_s < GENEROUS * one.duration_s
        assert one.overlaps() == []
        # On a busy machine a leader may come too late to renew, and another process leads than the one waited for.
        assert len({act.pid for act in one.acts()}) > kills
        assert len(one.acts()) > kills


def test_a_stopped_leader_does_not_act_after_it_wakes(tmp_path: Path):
    with contest(tmp_path) as one:
        one.enter()
        frozen = one.await_leader(0)
        other = one.enter()
        one.await_contender(other)
        time.sleep(2 * one.duration_s)
        one.send(frozen.pid, signal.SIGSTOP)
        stopped_at_s = now_s()
        assert one.await_leader(stopped_at_s, but_not=frozen.pid).pid == other
        one.send(frozen.pid, signal.SIGCONT)
        assert one.processes.pop(frozen.pid).wait(timeout=60) != 0, "a process that lost its lease ends"
        later_s = now_s()
        assert one.await_leader(later_s).pid == other
        assert max(act.begin_s for act in one.acts() if act.pid == frozen.pid) <= stopped_at_s
        assert one.overlaps() == []


def test_a_leader_that_is_asked_to_stop_hands_over_at_once(tmp_path: Path):
    with contest(tmp_path, duration_s=30) as one:
        first = one.enter()
        assert one.await_leader(0).pid == first
        other = one.enter()
        one.await_contender(other)
        stopped_at_s = now_s()
        one.send(first, signal.SIGTERM)
        assert one.processes.pop(first).wait(timeout=60) == 0
        assert one.await_leader(stopped_at_s, but_not=first).at_s - stopped_at_s < one.duration_s
        assert one.overlaps() == []


def test_a_leader_whose_loop_is_blocked_renews_and_is_ended_when_it_can_no_longer(tmp_path: Path):
    with running(tmp_path / "data") as server:
        # Far longer than a busy server may take to answer: who cannot renew is ended, blocked or not.
        one = Contest(server.kubeconfig, tmp_path, duration_s=12)
        try:
            blocked = one.enter(CONTENDER_BLOCKS="1")
            assert one.await_leader(0).pid == blocked
            other = one.enter()
            one.await_contender(other)
            time.sleep(1.5 * one.duration_s)
            assert {act.pid for act in one.acts()} == {blocked}, "the thread renews"
            server.stop(signal.SIGKILL)
            assert one.processes.pop(blocked).wait(timeout=60) == 4
        finally:
            one.end()


def test_a_leader_that_is_asked_to_stop_while_the_server_is_frozen_ends_soon(tmp_path: Path):
    with running(tmp_path / "data") as server:
        one = Contest(server.kubeconfig, tmp_path, duration_s=30)
        try:
            leader = one.enter()
            assert one.await_leader(0).pid == leader
            server.process.send_signal(signal.SIGSTOP)
            stopped_at_s = now_s()
            one.send(leader, signal.SIGTERM)
            assert one.processes.pop(leader).wait(timeout=60) == 0
            # Three seconds by the settings, where the three requests of before took 10 s each.
            assert now_s() - stopped_at_s < GENEROUS
        finally:
            server.process.send_signal(signal.SIGCONT)
            one.end()
