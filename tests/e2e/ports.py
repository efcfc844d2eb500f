"""Ports that stay free while nobody listens on them."""

from __future__ import annotations

import random
import socket


def lasting_port(chance: random.Random | None = None) -> int:
    """A free one below those that systems give to clients: nobody is given it while the server is down."""
    chance = chance or random.Random()
    while True:
        port = chance.randrange(20_000, 30_000)
        with socket.socket() as trying:
            if trying.connect_ex(("127.0.0.1", port)) != 0:
                return port
