"""Addresses that can be listened on; servers over sockets: tests/e2e."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from plimsoll.core.errors import InvalidInput
from plimsoll.web.serving import CannotListen, bind_socket, check_address, parse_address

if TYPE_CHECKING:
    from tests.golden.reviewed_sentences import ReviewedSentences


@pytest.mark.parametrize(
    ("address", "parsed"),
    [(":8085", ("0.0.0.0", 8085)), ("localhost:0", ("localhost", 0)), ("[::1]:8085", ("::1", 8085))],
)
def test_an_address_is_host_and_port(address: str, parsed: tuple[str, int]):
    assert parse_address(address) == parsed


@pytest.mark.parametrize("address", ["", "8085x", "localhost", "localhost:", ":65536", "a:-1"])
def test_any_other_address_is_refused(address: str, reviewed: ReviewedSentences):
    with pytest.raises(InvalidInput) as refused:
        parse_address(address)
    reviewed(str(refused.value))


def test_an_address_in_use_is_refused_with_advice(reviewed: ReviewedSentences):
    with bind_socket("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(CannotListen, match=f"port {port} of 127.0.0.1 is in use"):
            bind_socket("127.0.0.1", port)
        with pytest.raises(InvalidInput) as raised:
            check_address(f"127.0.0.1:{port}")
        reviewed(str(raised.value).replace(str(port), "PORT"))
    check_address(f"127.0.0.1:{port}")
