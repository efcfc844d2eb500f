"""F28: two processes on one PostgreSQL and one OCM. Leaders are killed while Kafkas come and go.

Clusters at the provider are those that rows account for, always; one need never gives two clusters.
"""

from __future__ import annotations

import random
import signal
import sys
import time
from typing import TYPE_CHECKING

from plimsoll.fleet.store.database import open_database
from plimsoll.fleet.store.secrets import create_key_file
from plimsoll.runtime.clocks import RealClock
from tests.e2e.fleet.fleet_processes import FleetProcesses
from tests.e2e.fleet.ocm_load import OcmLoad
from tests.effort import share_of

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from tests.e2e.fleet.postgresql_servers import PostgresqlServer

ROUNDS = share_of(50)


def test_f28_leaders_that_are_killed_leave_one_cluster_per_row(
    postgresql_server: PostgresqlServer, postgresql_url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    open_database(postgresql_url, clock=RealClock()).close()
    name, chance = postgresql_url.rpartition("/")[2], random.Random(28)
    with postgresql_server.connect(name) as connection, postgresql_server.connect(name) as watching:
        load = OcmLoad(watching)
        create_key_file(tmp_path / "keys", "1")
        options = (f"--ocm-base-url=http://{load.address}", f"--secrets-key-file={tmp_path}/keys")
        processes = FleetProcesses(postgresql_url, tmp_path, connection, options=options)
        load.attach(processes)
        processes.install_audit()
        try:
            processes.start()
            processes.start()
            with load:
                for _ in range(ROUNDS):
                    leader = processes.wait_for_leader("cluster")
                    time.sleep(chance.uniform(0.5, 2.5))
                    processes.send(leader, signal.SIGKILL)
                    processes.start()
                    processes.wait_for_leader("cluster", other_than=leader)
                load.wait_until_settled()
                # The last process may not have come to its handlers of signals.
                assert set(processes.stop_all().values()) <= {0, -signal.SIGTERM}, processes.read_logs()
        finally:
            processes.kill_all()
        assert load.problems == []
        processes.check_leases()
        created = load.get_created()
        needs = connection.execute("SELECT count(*) FROM clusters").fetchone()
    assert set(created.values()) == {1}, "a row got two clusters"
    assert needs is not None
    assert len(created) <= needs[0]
    with capsys.disabled():
        sys.stdout.write(
            f"\n{ROUNDS} kills: {len(created)} clusters for {needs[0]} needs, at most {load.most_clusters} at once, "
            f"{load.accepted} Kafkas created and {load.deleted} deleted, {load.checks} checks "
        )
    assert load.accepted > 0
    assert load.checks > ROUNDS
