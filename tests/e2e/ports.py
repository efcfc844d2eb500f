"""Ports that stay free while no server listens on them."""

from __future__ import annotations

import fcntl
import os
import random
import socket
import tempfile
from functools import cache
from pathlib import Path
from typing import IO

_FIRST = 12_000
_PER_WORKER = 2_000
"""Below the ports from 20,000 on that the process kubelet chooses for Kafka nodes."""
_given: set[int] = set()
"""Ports that this process gave away. Their servers may not listen yet, or be down."""


def lasting_port(chance: random.Random | None = None) -> int:
    """A free port below those that the system gives to clients, so that it stays free while the server is down.

    Each worker of a parallel run has its own range, and gives a port once; a lock keeps it from other runs on this
    machine until the worker ends. So two servers never get the same port.
    """
    chance = chance or random.Random()
    first = _FIRST + _PER_WORKER * (int(os.environ.get("PYTEST_XDIST_WORKER", "gw0")[2:]) % 4)
    while True:
        port = chance.randrange(first, first + _PER_WORKER)
        if port not in _given and _try_hold(port) and _is_free(port):
            _given.add(port)
            return port


def _try_hold(port: int) -> bool:
    """Lock the byte of a port in the file of all runs. False: another process has it."""
    try:
        fcntl.lockf(_open_locks(), fcntl.LOCK_EX | fcntl.LOCK_NB, 1, port)
    except (BlockingIOError, PermissionError):
        return False
    return True


@cache
def _open_locks() -> IO[str]:
    """Open once: the locks of a process go when it closes the file."""
    return (Path(tempfile.gettempdir()) / f"plimsoll-test-ports-{os.getuid()}").open("w")


def _is_free(port: int) -> bool:
    """Whether a server could listen on it now."""
    with socket.socket() as trying:
        trying.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            trying.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
