"""How long a lease has no leader: two processes, a real server, and the leader ended again and again.

The processes and their reports are those of `tests/e2e/kube_leases`: a hand-over lasts from the signal to the leader
until the other one acts. Ratios, because seconds are a matter of settings: after `kill -9` another may lead at the
latest after the lease's duration and a retry period, after a graceful stop after a retry period. The median counts:
whoever looks at a Lease at chance times comes early or late by chance.
"""

from __future__ import annotations

import signal
import statistics
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tests.e2e.kube_leases.contests import contest, now_s

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.e2e.kube_leases.contests import Contest

ROUNDS: Final = 7
DURATION_S: Final = 5
# Of a contender, see contender.py.
RETRY_PERIOD_S: Final = 0.15 * DURATION_S
HIGHEST_RATIO: Final = 1.2


def rows() -> Iterator[dict[str, Any]]:
    with tempfile.TemporaryDirectory() as folder, contest(Path(folder), duration_s=DURATION_S) as one:
        killed = hand_overs_s(one, signal.SIGKILL)
        stopped = hand_overs_s(one, signal.SIGTERM)
        overlaps = len(one.overlaps())
    yield row("hand-over after kill -9", killed, DURATION_S + RETRY_PERIOD_S, "duration + retry period")
    yield row("hand-over after a graceful stop", stopped, RETRY_PERIOD_S, "retry period")
    name = f"moments at which two acted, in {2 * ROUNDS} hand-overs"
    yield {"name": name, "value": overlaps, "unit": "", "target": "0", "met": overlaps == 0, "note": ""}


def hand_overs_s(one: Contest, number: signal.Signals) -> list[float]:
    took_s = []
    while len(one.processes) < 2:
        one.enter()
    leader = one.await_leader(now_s()).pid
    for _ in range(ROUNDS):
        for pid in one.processes:
            one.await_contender(pid)
        # The other one has seen the record, and the leader is somewhere between two renewals.
        time.sleep(2 * RETRY_PERIOD_S)
        ended_at_s = now_s()
        one.send(leader, number)
        begin = one.await_leader(ended_at_s, but_not=leader)
        took_s.append(begin.at_s - ended_at_s)
        if leader in one.processes:
            one.processes.pop(leader).wait(timeout=60)
        leader = begin.pid
        one.enter()
    return took_s


def row(name: str, took_s: list[float], at_most_s: float, of: str) -> dict[str, Any]:
    median_s = statistics.median(took_s)
    ratio = median_s / at_most_s
    note = f"of {of}, {at_most_s:.2f} s; {median_s:.2f} s, {min(took_s):.2f} to {max(took_s):.2f}, {len(took_s)} times"
    target = f"<= {HIGHEST_RATIO}"
    return {
        "name": name,
        "value": ratio,
        "unit": "times",
        "target": target,
        "met": ratio <= HIGHEST_RATIO,
        "note": note,
    }
