"""Two processes on one PostgreSQL: killed at random moments, and stopped past their leases."""

from __future__ import annotations

import random
import signal
import sys
import time
from contextlib import ExitStack
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
RESTARTS = share_of(10)


@pytest.fixture
def processes(postgresql_server: PostgresqlServer, postgresql_url: str, tmp_path: Path) -> Iterator[FleetProcesses]:
    open_database(postgresql_url, clock=RealClock()).close()
    with postgresql_server.connect(get_database(postgresql_url)) as connection:
        started = FleetProcesses(postgresql_url, tmp_path, connection)
        started.install_audit()
        try:
            yield started
        finally:
            started.kill_all()


def get_database(url: str) -> str:
    return url.rpartition("/")[2]


def check_promises(processes: FleetProcesses, load: FleetLoad, *, failures: tuple[str, ...] = ()) -> None:
    """What no death of a process may break. `failures`: answers of 5xx that are right while there is no database."""
    processes.check_leases()
    assert processes.get_most("clusters") == 1, "one need gave two rows"
    assert 0 < processes.get_most("kafka_requests") <= LIMIT
    assert load.accepted
    known = processes.list_kafka_ids()
    assert set(load.accepted) <= known, "a request that was answered 202 is lost"
    failed = {code for code in load.refused if code.startswith("5")}
    assert failed <= set(failures), (load.refused, processes.list_failed_requests()[:10])


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


def test_a_server_that_is_restarted_loses_no_request(
    processes: FleetProcesses,
    postgresql_server: PostgresqlServer,
    postgresql_url: str,
    capsys: pytest.CaptureFixture[str],
):
    """Every other time as a crash. The processes go on with the new server, and answer 500 without one."""
    chance = random.Random(11)
    processes.start()
    processes.start()
    with ExitStack() as stack:
        with FleetLoad(processes, postgresql_url) as load:
            for number in range(RESTARTS):
                processes.wait_for_acting_leader(2)
                time.sleep(chance.uniform(0, 0.5))
                postgresql_server.stop(how=(signal.SIGINT, signal.SIGQUIT)[number % 2])
                postgresql_server.start()
                processes.reconnect(stack.enter_context(postgresql_server.connect(get_database(postgresql_url))))
            processes.wait_for_acting_leader(2)
            # Requests that are under way are answered before the database is closed.
            assert set(processes.stop_all().values()) == {0}, processes.read_logs()
        check_promises(processes, load, failures=("500/9",))
        unexpected = [line for line in processes.list_failed_requests() if "[warning" not in line]
        assert not unexpected, "these failed for another reason than the database"
        with capsys.disabled():
            print_figures(f"{RESTARTS} restarts of the server", len(processes.list_changes()), load)


def print_figures(what: str, changes: int, load: FleetLoad) -> None:
    refused = ", ".join(f"{number} {code}" for code, number in sorted(load.refused.items()))
    sys.stdout.write(f"\n{what}: {changes} changes of workers, {len(load.accepted)} accepted, refused {refused} ")
