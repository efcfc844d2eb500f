"""Processes of `plimsoll run fleet` on one PostgreSQL, and an audit that the database itself keeps of their writes.

Triggers write down every change of a row with the process that made it and the lease of the worker that such a change
belongs to, in the transaction of the change. So the audit shows who acted when, whatever a process says or forgets.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import quote

import yaml

from plimsoll.fleet.auth.issuer import Issuer, UserIdentity
from plimsoll.fleet.auth.issuer_keys import IssuerKeys
from plimsoll.fleet.config.files import FILE_NAMES
from plimsoll.fleet.config.policy_documents import DYNAMIC_SCALING, PROVIDERS
from plimsoll.runtime.clocks import RealClock
from plimsoll.runtime.entropy import SystemEntropy
from tests.e2e.ports import lasting_port
from tests.e2e.timeouts import PATIENCE_S
from tests.fleet.service import MACHINES

if TYPE_CHECKING:
    from pathlib import Path

    import psycopg

LIMIT: Final = 20
PUBLIC_URL: Final = "http://fleet.test"
PERIOD_S: Final = 0.2
LEASE_S: Final = 1.5
_AUDIT: Final = """
CREATE TABLE audit (
    id bigserial PRIMARY KEY, at timestamptz NOT NULL DEFAULT clock_timestamp(), process text, worker text,
    relation text, row_id text, before text, after text, holder text, is_held boolean, amount bigint
);

CREATE FUNCTION find_worker(relation text, before text, after text) RETURNS text AS $$
    SELECT CASE
        WHEN relation = 'clusters' AND before = '' AND after = 'cluster_accepted' THEN 'dynamic_scale_up'
        WHEN relation = 'clusters' AND before = 'ready' AND after = 'deprovisioning' THEN 'dynamic_scale_down'
        WHEN relation = 'kafka_requests' AND after = 'deprovision' THEN NULL
        WHEN relation = 'kafka_requests' AND before = 'accepted' THEN 'accepted_kafka'
        WHEN relation = 'kafka_requests' AND before = 'preparing' THEN 'preparing_kafka'
        WHEN relation = 'kafka_requests' AND before = 'deleting' AND after = 'removed' THEN 'deleting_kafka'
    END
$$ LANGUAGE sql IMMUTABLE;

CREATE FUNCTION audit_rows() RETURNS trigger AS $$
DECLARE
    before text := CASE WHEN TG_OP = 'INSERT' THEN '' ELSE OLD.status END;
    after text := CASE WHEN NEW.deleted_at IS NULL THEN NEW.status ELSE 'removed' END;
    acting text := find_worker(TG_TABLE_NAME, before, after);
    amount bigint;
BEGIN
    IF before = after THEN RETURN NULL; END IF;
    IF TG_TABLE_NAME = 'clusters' THEN
        SELECT count(*) INTO amount FROM clusters
            WHERE deleted_at IS NULL AND status = 'cluster_accepted' AND cluster_id = '';
    ELSE
        SELECT coalesce(sum(CASE size_id WHEN 'x2' THEN 2 ELSE 1 END), 0) INTO amount FROM kafka_requests
            WHERE deleted_at IS NULL;
    END IF;
    INSERT INTO audit (process, worker, relation, row_id, before, after, holder, is_held, amount)
        SELECT current_setting('fleet.process', true), acting, TG_TABLE_NAME, NEW.id, before, after,
            leases.holder, leases.expires_at > clock_timestamp(), amount
        FROM (SELECT 1) AS one LEFT JOIN leases ON leases.worker = acting;
    RETURN NULL;
END $$ LANGUAGE plpgsql;

CREATE FUNCTION audit_leases() RETURNS trigger AS $$
BEGIN
    INSERT INTO audit (process, worker, relation, row_id, before, after)
        SELECT current_setting('fleet.process', true), NEW.worker, 'leases', NEW.worker,
            CASE WHEN TG_OP = 'INSERT' THEN '' ELSE OLD.holder END, NEW.holder
        WHERE TG_OP = 'INSERT' OR OLD.holder <> NEW.holder;
    RETURN NULL;
END $$ LANGUAGE plpgsql;

CREATE TRIGGER audit_clusters AFTER INSERT OR UPDATE ON clusters FOR EACH ROW EXECUTE FUNCTION audit_rows();
CREATE TRIGGER audit_kafkas AFTER INSERT OR UPDATE ON kafka_requests FOR EACH ROW EXECUTE FUNCTION audit_rows();
CREATE TRIGGER audit_leases AFTER INSERT OR UPDATE ON leases FOR EACH ROW EXECUTE FUNCTION audit_leases();
"""


class Change(NamedTuple):
    """A change that a worker of a process made."""

    process: str
    worker: str
    row_id: str
    before: str
    after: str
    holder: str
    is_held: bool


class FleetProcesses:
    """Processes are started, killed, stopped and continued by name."""

    def __init__(
        self, url: str, folder: Path, connection: psycopg.Connection[Any], *, options: tuple[str, ...] = ()
    ) -> None:
        self._url = url
        self._options = options
        self._folder = folder
        self._connection = connection
        self._data = folder / "data"
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self._ports: dict[str, int] = {}
        self._started = 0
        self._write_configuration()
        keys = IssuerKeys(self._data / "fleet-issuer-keys.json", clock=RealClock(), entropy=SystemEntropy())
        issuer = Issuer(keys, base_url=f"{PUBLIC_URL}/auth", clock=RealClock(), entropy=SystemEntropy())
        self.tokens = [
            issuer.issue_user_token(UserIdentity(user=f"user-{number}", organisation="org")) for number in range(8)
        ]

    def install_audit(self) -> None:
        self._connection.execute(_AUDIT)

    # ---- processes

    def start(self) -> str:
        self._started += 1
        name = f"p{self._started}"
        port = self._ports[name] = lasting_port()
        pages = f"127.0.0.1:{lasting_port()}"
        command = [sys.executable, "-m", "plimsoll", "run", "fleet", f"--config-dir={self._folder}"]
        command += ["--dataplane-cluster-scaling-type=auto", f"--data={self._data}"]
        command += [f"--database-url={self._url}?options={quote(f'-c fleet.process={name}')}"]
        command += [f"--listen=127.0.0.1:{port}", f"--health-listen={pages}", f"--metrics-listen={pages}"]
        command += [f"--public-host-url={PUBLIC_URL}", f"--reconciler-repeat-interval={PERIOD_S * 1000:.0f}ms"]
        command += [
            f"--leader-lease-expiration-time={LEASE_S:g}s",
            "--leader-election-reconciler-repeat-interval=400ms",
            *self._options,
        ]
        with (self._folder / f"{name}.log").open("ab") as log:
            environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
            self._running[name] = subprocess.Popen(command, stdout=log, stderr=log, env=environment)
        return name

    def send(self, name: str, number: signal.Signals) -> None:
        self._running[name].send_signal(number)
        if number == signal.SIGKILL:
            self._running.pop(name).wait()

    def stop_all(self) -> dict[str, int]:
        """A clean exit of every process; their exit codes."""
        for process in self._running.values():
            process.send_signal(signal.SIGTERM)
        codes = {name: process.wait(PATIENCE_S) for name, process in self._running.items()}
        self._running.clear()
        return codes

    def kill_all(self) -> None:
        for process in self._running.values():
            process.kill()
            process.wait()

    def list_urls(self) -> list[str]:
        """The APIs of the processes that were not killed."""
        return [f"http://127.0.0.1:{self._ports[name]}" for name in self._running]

    def read_logs(self) -> str:
        """The ends of all logs, for a failure."""
        return "\n".join(
            f"{log.stem}: {log.read_text(errors='replace')[-1500:]}" for log in sorted(self._folder.glob("p*.log"))
        )

    def list_failed_requests(self) -> list[str]:
        """What the processes logged about answers of 5xx."""
        logs = (log.read_text(errors="replace").splitlines() for log in sorted(self._folder.glob("p*.log")))
        return [line for lines in logs for line in lines if "request.failed" in line]

    # ---- the audit

    def reconnect(self, connection: psycopg.Connection[Any]) -> None:
        """The audit is read by another connection: the server was restarted."""
        self._connection.close()
        self._connection = connection

    def find_leader(self, worker: str = "dynamic_scale_up") -> str | None:
        """The process that holds a lease now."""
        found = self._connection.execute(
            "SELECT holder FROM leases WHERE worker = %s AND expires_at > clock_timestamp()", (worker,)
        ).fetchone()
        return None if found is None else self._map_holders().get(found[0])

    def wait_for_leader(self, worker: str = "dynamic_scale_up", *, other_than: str = "") -> str:
        deadline = time.monotonic() + PATIENCE_S
        while True:
            leader = self.find_leader(worker)
            if leader and leader != other_than:
                return leader
            assert time.monotonic() < deadline, self.read_logs()
            time.sleep(0.02)

    def wait_for_acting_leader(self, number: int = 1, *, other_than: str = "") -> str:
        """Waits until a leader has changed that many rows. On a busy machine the lease may move meanwhile."""
        deadline = time.monotonic() + PATIENCE_S
        while True:
            leader = self.wait_for_leader(other_than=other_than)
            wanted = self._count_acts(leader) + number
            while self.find_leader() == leader:
                if self._count_acts(leader) >= wanted:
                    return leader
                assert time.monotonic() < deadline, self.read_logs()
                time.sleep(0.02)
            assert time.monotonic() < deadline, self.read_logs()

    def list_changes(self) -> list[Change]:
        """The changes of workers, in the order of the database."""
        rows = self._connection.execute(
            "SELECT process, worker, row_id, before, after, holder, is_held FROM audit "
            "WHERE worker IS NOT NULL AND relation <> 'leases' AND process LIKE 'p%' ORDER BY id"
        ).fetchall()
        return [Change(*row) for row in rows]

    def get_most(self, relation: str) -> int:
        """The most units that live Kafkas had, or the most clusters that were being made at once."""
        found = self._connection.execute("SELECT max(amount) FROM audit WHERE relation = %s", (relation,)).fetchone()
        return int(found[0]) if found and found[0] is not None else 0

    def list_kafka_ids(self) -> set[str]:
        """The ids of all Kafkas that were ever stored."""
        return {row[0] for row in self._connection.execute("SELECT id FROM kafka_requests").fetchall()}

    def check_leases(self) -> None:
        """Every change of a worker was made by the process that held its lease then.

        The leases themselves are in the audit too: between a lease that is taken and the next one of that worker only
        its holder acts. So no two acting intervals overlap.
        """
        holders = self._map_holders()
        changes = self.list_changes()
        assert changes, self.read_logs()
        for change in changes:
            assert change.is_held, change
            assert holders[change.holder] == change.process, change
        rows = self._connection.execute(
            "SELECT relation = 'leases', worker, process, after FROM audit WHERE worker IS NOT NULL "
            "AND process LIKE 'p%' ORDER BY id"
        ).fetchall()
        leading: dict[str, str] = {}
        for is_lease, worker, process, after in rows:
            if is_lease:
                leading[worker] = process if after else ""
            else:
                assert leading.get(worker) == process, f"{process} acts as {worker} while {leading.get(worker)} leads"

    def _map_holders(self) -> dict[str, str]:
        rows = self._connection.execute(
            "SELECT DISTINCT after, process FROM audit WHERE relation = 'leases' AND after <> ''"
        ).fetchall()
        return dict(rows)

    def _count_acts(self, process: str) -> int:
        found = self._connection.execute(
            "SELECT count(*) FROM audit WHERE process = %s AND relation <> 'leases' AND worker IS NOT NULL", (process,)
        ).fetchone()
        return int(found[0]) if found else 0

    def _write_configuration(self) -> None:
        self._data.mkdir()
        region = {"name": "us-east-1", "default": True}
        region["supported_instance_type"] = {
            "standard": {"limit": LIMIT, "min_available_capacity_slack_streaming_units": 1}
        }
        documents: dict[str, Any] = {
            PROVIDERS: {"supported_providers": [{"name": "aws", "default": True, "regions": [region]}]},
            DYNAMIC_SCALING: {
                "enable_dynamic_data_plane_scale_up": True,
                "enable_dynamic_data_plane_scale_down": True,
                "compute_machine_per_cloud_provider": {"aws": MACHINES},
            },
        }
        for key, document in documents.items():
            (self._folder / FILE_NAMES[key]).write_text(yaml.safe_dump(document))
