"""A real PostgreSQL server on loopback: Debian's package, started by the run in a scratch folder.

PostgreSQL refuses to run as root, so a run as root starts it as an ordinary user. The server has an ICU locale: what is
ordered by code point there is ordered so by our own collation.
"""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any, Final

import psycopg
import pytest

from tests.e2e.ports import lasting_port
from tests.e2e.timeouts import PATIENCE_S

PASSWORD: Final = "s3cr3t-of-the-test"
_PROGRAMS: Final = ("postgres", "initdb")
_DEBIAN: Final = Path("/usr/lib/postgresql")
_SETTINGS: Final = {
    "listen_addresses": "127.0.0.1",
    "fsync": "off",
    "max_connections": "200",
    "log_statement": "none",
    "autovacuum": "off",
}


def find_programs() -> dict[str, str]:
    """The programs of PostgreSQL, from PATH or Debian's folder; where there are none, the tests are skipped."""
    folders = sorted(_DEBIAN.glob("*/bin"), key=lambda folder: int(folder.parent.name), reverse=True)
    search = os.pathsep.join([os.environ.get("PATH", ""), *map(str, folders)])
    found = {name: shutil.which(name, path=search) for name in _PROGRAMS}
    if missing := [name for name, path in found.items() if path is None]:
        pytest.skip(f"NOT TESTED: there is no PostgreSQL ({', '.join(missing)}); install Debian's postgresql")
    return {name: str(path) for name, path in found.items()}


def find_account() -> pwd.struct_passwd | None:
    """The ordinary user for a run as root. None: the run is not root."""
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    pytest.skip("NOT TESTED: PostgreSQL does not run as root, and there is neither user postgres nor nobody")


class PostgresqlServer:
    """A server that can be stopped, killed and started again on the same port and data."""

    def __init__(self) -> None:
        self._programs = find_programs()
        self._account = find_account()
        self._folder = Path(tempfile.mkdtemp(prefix="plimsoll-postgresql-"))
        self._data = self._folder / "data"
        self._process: subprocess.Popen[bytes] | None = None
        self.port = lasting_port()
        if self._account is not None:
            os.chown(self._folder, self._account.pw_uid, self._account.pw_gid)
        self._initialize()

    def build_url(self, database: str = "postgres") -> str:
        return f"postgresql://fleet:{PASSWORD}@127.0.0.1:{self.port}/{database}"

    def create_database(self, name: str, *, options: str = "") -> str:
        """A new database and its URL."""
        with self.connect() as connection:
            connection.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')
            connection.execute(f'CREATE DATABASE "{name}" {options}')
        return self.build_url(name)

    def connect(self, database: str = "postgres") -> psycopg.Connection[Any]:
        return psycopg.connect(self.build_url(database), autocommit=True, connect_timeout=5)

    def kill_connections(self, database: str) -> int:
        """Ends all connections to a database, whatever they do. Their number."""
        text = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE datname = %s"
        with self.connect() as connection:
            row = connection.execute(text, (database,)).fetchone()
        return int(row[0]) if row else 0

    def start(self) -> None:
        settings = [part for name, value in _SETTINGS.items() for part in ("-c", f"{name}={value}")]
        command = [self._programs["postgres"], "-D", str(self._data), "-p", str(self.port), "-k", str(self._folder)]
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen([*command, *settings], stdout=log, stderr=log, **self._build_identity())
        self._wait_until_ready()

    def stop(self, *, how: signal.Signals = signal.SIGINT) -> None:
        """SIGINT ends connections and writes everything; SIGQUIT is a crash of all processes."""
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait(PATIENCE_S)
            self._process = None

    def close(self) -> None:
        self.stop(how=signal.SIGQUIT)
        shutil.rmtree(self._folder, ignore_errors=True)

    def _initialize(self) -> None:
        password = self._folder / "password"
        password.write_text(PASSWORD)
        password.chmod(0o644)
        command = [self._programs["initdb"], "-D", str(self._data), "-U", "fleet", "--no-sync", "--encoding=UTF8"]
        command += ["--auth=scram-sha-256", f"--pwfile={password}", "--locale=C.UTF-8"]
        command += ["--locale-provider=icu", "--icu-locale=en-US"]
        made = subprocess.run(command, capture_output=True, text=True, check=False, **self._build_identity())
        assert made.returncode == 0, made.stderr

    def _wait_until_ready(self) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while not self._is_ready():
            has_ended = self._process is None or self._process.poll() is not None
            assert not has_ended and time.monotonic() < deadline, self.read_log()  # noqa: PT018 - one failure
            time.sleep(0.05)

    def _is_ready(self) -> bool:
        try:
            self.connect().close()
        except psycopg.OperationalError:
            return False
        return True

    def read_log(self) -> str:
        """The end of what the server wrote."""
        return (self._folder / "log").read_text(errors="replace")[-2000:]

    def _build_identity(self) -> dict[str, Any]:
        if self._account is None:
            return {"cwd": self._folder}
        account = self._account
        return {"cwd": self._folder, "user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}
