"""Ports that stay free while no server listens on them."""

from __future__ import annotations

import os
import random
import socket

_FIRST = 12_000
_PER_WORKER = 2_000
"""Below the ports from 20,000 on that the process kubelet chooses for Kafka nodes."""
_given: set[int] = set()
"""Ports that this process gave away. Their servers may not listen yet, or be down."""


def lasting_port(chance: random.Random | None = None) -> int:
    """A free port below those that the system gives to clients, so that it stays free while the server is down.

    Each worker of a parallel run has its own range, and gives a port once: two servers never get the same port.
    """
    chance = chance or random.Random()
    first = _FIRST + _PER_WORKER * (int(os.environ.get("PYTEST_XDIST_WORKER", "gw0")[2:]) % 4)
    while True:
        port = chance.randrange(first, first + _PER_WORKER)
        if port in _given:
            continue
        with socket.socket() as trying:
            if trying.connect_ex(("127.0.0.1", port)) != 0:
                _given.add(port)
                return port
