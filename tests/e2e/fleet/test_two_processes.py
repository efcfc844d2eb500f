"""Two processes on one PostgreSQL: killed at random moments, and stopped past their leases."""

from __future__ import annotations

import random
import signal
import sys
import time
from typing import TYPE_CHECKING

import pytest

from plimsoll.fleet.store.database import open_database
from plimsoll.runtime.clocks import RealClock
from tests.e2e.fleet.fleet_load import FleetLoad
from tests.e2e.fleet.fleet_processes import LEASE_S, LIMIT, FleetProcesses
from tests.effort import share_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.e2e.fleet.postgresql_servers import PostgresqlServer

ROUNDS = share_of(100)
STOPS = share_of(15)


@pytest.fixture
def processes(postgresql_server: PostgresqlServer, postgresql_url: str, tmp_path: Path) -> Iterator[FleetProcesses]:
    open_database(postgresql_url, clock=RealClock()).close()
    with postgresql_server.connect(postgresql_url.rpartition("/")[2]) as connection:
        started = FleetProcesses(postgresql_url, tmp_path, connection)
        started.install_audit()
        try:
            yield started
        finally:
            started.kill_all()


def check_promises(processes: FleetProcesses, load: FleetLoad) -> None:
    """What no death of a process may break."""
    processes.check_leases()
    assert processes.get_most("clusters") == 1, "one need gave two rows"
    assert 0 < processes.get_most("kafka_requests") <= LIMIT
    assert load.accepted
    known = processes.list_kafka_ids()
    assert set(load.accepted) <= known, "a request that was answered 202 is lost"
    assert not [code for code in load.refused if code.startswith("5")], load.refused


def test_a_leader_that_is_killed_at_any_moment_breaks_no_promise(
    processes: FleetProcesses, postgresql_url: str, capsys: pytest.CaptureFixture[str]
):
    chance = random.Random(19)
    for _ in range(3):  # Two that run, and one that starts while the leader is killed.
        processes.start()
    with FleetLoad(processes, postgresql_url) as load:
        for _ in range(ROUNDS):
            leader = processes.wait_for_acting_leader(3)
            time.sleep(chance.uniform(0, 0.5))
            processes.send(leader, signal.SIGKILL)
            processes.start()
            successor = processes.wait_for_leader(other_than=leader)
    assert processes.stop_all()[successor] == 0
    check_promises(processes, load)
    with capsys.disabled():
        print_figures(f"{ROUNDS} kills", len(processes.list_changes()), load)


def test_a_process_that_is_stopped_past_its_lease_does_nothing_more(
    processes: FleetProcesses, postgresql_url: str, capsys: pytest.CaptureFixture[str]
):
    chance = random.Random(7)
    processes.start()
    processes.start()
    with FleetLoad(processes, postgresql_url) as load:
        for _ in range(STOPS):
            leader = processes.wait_for_acting_leader()
            time.sleep(chance.uniform(0, 0.3))
            processes.send(leader, signal.SIGSTOP)
            processes.wait_for_acting_leader(other_than=leader)
            processes.send(leader, signal.SIGCONT)
            processes.wait_for_acting_leader(3)
    assert set(processes.stop_all().values()) == {0}, processes.read_logs()
    check_promises(processes, load)
    with capsys.disabled():
        print_figures(f"{STOPS} stops of more than {LEASE_S:g} s", len(processes.list_changes()), load)


def print_figures(what: str, changes: int, load: FleetLoad) -> None:
    refused = ", ".join(f"{number} {code}" for code, number in sorted(load.refused.items()))
    sys.stdout.write(f"\n{what}: {changes} changes of workers, {len(load.accepted)} accepted, refused {refused} ")
