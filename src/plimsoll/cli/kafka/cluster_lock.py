"""A lock per Kafka cluster, for the processes of one user on one machine: two of them do not execute on one cluster.

Kafka itself has no lock for clients that reassign partitions. Processes on other machines are noticed by their
reassignments, which are left alone (docs/design/kafka.md 9.1).
"""

from __future__ import annotations

import os
import re
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

import typer

from plimsoll.core.errors import PlimsollError
from plimsoll.core.plans import Reason
from plimsoll.kafka.executor.errors import ExecutionRefused
from plimsoll.runtime.sqlite_file import FileErrors, FileLock

if TYPE_CHECKING:
    from collections.abc import Iterator

_NOT_FOR_FILES: Final = re.compile(r"[^A-Za-z0-9_-]")


class _LockUnusable(PlimsollError):
    """The file of a lock cannot be made."""


@contextmanager
def lock_cluster(cluster_id: str) -> Iterator[None]:
    """Hold the lock of a cluster. Raises `ExecutionRefused` if another process holds it.

    Where no file can be made, there is a warning and no lock: the directory of the record has one of its own.
    """
    if not cluster_id:
        yield
        return
    try:
        lock = FileLock(_find_file(cluster_id), errors=_ERRORS, in_use=lambda _, holder: _refuse(cluster_id, holder))
    except _LockUnusable as error:
        typer.echo(f"warning: {error}; another process on this cluster is not noticed", err=True)
        yield
        return
    try:
        yield
    finally:
        lock.release()


def _find_file(cluster_id: str) -> Path:
    try:
        state = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state")
    except RuntimeError as error:  # a user without a home, as in a container
        raise _LockUnusable("XDG_STATE_HOME is not set, and the user has no home directory") from error
    return state / "plimsoll" / "kafka" / f"{_NOT_FOR_FILES.sub('_', cluster_id)}.lock"


def _refuse(cluster_id: str, holder: str) -> ExecutionRefused:
    process = f"process {holder}" if holder else "another process"
    message = f"{process} executes on cluster {cluster_id}, with another --data; one process executes at a time"
    end = "; Ctrl-C or SIGTERM stops it" if holder else ""
    return ExecutionRefused(Reason(code="ClusterInUse", message=f"{message}{end}", facts={"cluster": cluster_id}))


def _build_error(file: Path, problem: str) -> _LockUnusable:
    return _LockUnusable(f"{file}: {problem}")


_ERRORS: Final = FileErrors(
    noun="lock",
    unusable=_build_error,
    corrupt=_build_error,
    too_new=lambda file, _found, _newest: _build_error(file, ""),
)
