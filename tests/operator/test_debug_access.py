"""Which requests are local; the pages behind the guard: tests/nodes/reporting/http."""

from __future__ import annotations

import pytest

from plimsoll.operator.debug_access import is_local

HERE, THERE = "127.0.0.1", "10.1.2.3"


@pytest.mark.parametrize(
    ("peer", "headers", "local"),
    [
        (HERE, {"host": "localhost:8085"}, True),
        ("::1", {"host": "[::1]:8085"}, True),
        ("::ffff:127.0.0.1", {"host": "127.0.0.1"}, True),
        (THERE, {"host": "localhost"}, False),
        (HERE, {"host": "rebound.example.com"}, False),
        (HERE, {"host": "10.1.2.3:8085"}, False),
        (HERE, {}, False),
        (HERE, {"host": "localhost", "origin": "https://evil.example.com"}, False),
        (HERE, {"host": "localhost", "origin": "http://localhost:3000"}, True),
        (HERE, {"host": "[bad"}, False),
        ("", {"host": "localhost"}, False),
    ],
)
def test_a_local_request_comes_from_this_machine_and_names_it(peer: str, headers: dict[str, str], *, local: bool):
    assert is_local(peer, headers) is local
