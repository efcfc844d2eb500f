"""The process of a Kafka node, a broker or controller, and the lock on its directory."""

from __future__ import annotations

import fcntl
import signal
import subprocess
from typing import IO, TYPE_CHECKING, Final

from plimsoll.core.errors import PlimsollError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from plimsoll.local.kafka.processes.distribution import KafkaDistribution

PROPERTIES: Final = "server.properties"
_LOG: Final = "log"
_LOCK: Final = "lock"
_STOP_S: Final = 30.0
_SHOWN: Final = 3_000


class DirectoryInUse(PlimsollError):
    """Another process runs on the directory."""


class NodeProcess:
    """The node whose files are in a directory. It runs at most once at a time, whichever process starts it.

    Two processes on one directory corrupt the metadata log. The lock is inherited by the process of the node: it is
    held until that ends, though this process may end before.
    """

    def __init__(self, distribution: KafkaDistribution, directory: Path, *, heap_mb: int = 192) -> None:
        self._distribution = distribution
        self._heap_mb = heap_mb
        self.directory = directory
        self._process: subprocess.Popen[bytes] | None = None
        self.dump_archive: Path | None = None
        """Where to write the class-data archive when the process ends."""

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int | None:
        return None if self._process is None else self._process.pid

    @property
    def exit_code(self) -> int | None:
        """As a shell reports it: 143 after SIGTERM. None while it runs, and before it started."""
        code = None if self._process is None else self._process.poll()
        return code if code is None or code >= 0 else 128 - code

    def start(self) -> None:
        """Start the process from the thread with which it is to end. Raises `DirectoryInUse`."""
        if self.is_running:
            raise DirectoryInUse(f"{self.directory} has a running process: {self.pid}")
        with (self.directory / _LOCK).open("w") as lock, (self.directory / _LOG).open("ab") as log:
            if not _try_lock(lock):
                raise DirectoryInUse(f"another process runs on {self.directory}")
            self._process = subprocess.Popen(  # noqa: S603 - the java on PATH, with words from here
                self._distribution.build_command(
                    "kafka.Kafka",
                    str(self.directory / PROPERTIES),
                    heap_mb=self._heap_mb,
                    dump_archive=self.dump_archive,
                ),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                pass_fds=(lock.fileno(),),
            )

    def send(self, number: signal.Signals) -> None:
        """Send a signal, unless the process has ended."""
        if self._process is not None:
            self._process.send_signal(number)

    def stop(self, number: signal.Signals = signal.SIGTERM, *, within_s: float = _STOP_S) -> None:
        """End the process and wait for it; by SIGKILL where the signal does not end it in time."""
        if self._process is None:
            return
        self.send(number)
        try:
            self._process.wait(within_s)
        except subprocess.TimeoutExpired:
            self._process.kill()
        self._process.wait()

    def read_log(self) -> str:
        """The end of what the process wrote."""
        path = self.directory / _LOG
        return path.read_text(errors="replace")[-_SHOWN:] if path.exists() else ""


def build_format_command(
    distribution: KafkaDistribution, directory: Path, cluster_id: str, voters: str, *, users: Iterable[str] = ()
) -> list[str]:
    """The command that writes the first quorum, and its users, into the log directories of a controller of it."""
    return distribution.build_command(
        "kafka.tools.StorageTool",
        "format",
        f"--cluster-id={cluster_id}",
        f"--config={directory / PROPERTIES}",
        f"--initial-controllers={voters}",
        "--ignore-formatted",
        *(f"--add-scram={user}" for user in users),
    )


def is_in_use(directory: Path) -> bool:
    """Whether a process runs on the directory."""
    with (directory / _LOCK).open("w") as lock:
        return not _try_lock(lock)


def _try_lock(lock: IO[str]) -> bool:
    """Take the lock until the file is closed, also by processes that inherit it. False: another process has it."""
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
