"""Whom a request may mean. Loopback cases over the wire: tests/e2e."""

from __future__ import annotations

import pytest

from plimsoll.web.guards import HostNames


def is_served(host: str, *, bound_to: str, origin: str = "") -> bool:
    return HostNames(bound_to).find_refusal([host], origin) is None


@pytest.mark.parametrize("host", ["localhost:6443", "127.0.0.1", "[::1]"])
def test_loopback_names_are_ours_wherever_we_listen(host: str):
    assert all(is_served(host, bound_to=bound_to) for bound_to in ("127.0.0.1", "10.1.2.3", "0.0.0.0", "::"))


def test_the_name_we_listen_on_is_ours():
    assert is_served("Api.Example:6443", bound_to="api.example")
    assert is_served("10.1.2.3", bound_to="10.1.2.3")
    assert not is_served("10.1.2.4", bound_to="10.1.2.3")


def test_on_all_addresses_every_address_is_ours_but_no_name():
    assert is_served("10.9.9.9:6443", bound_to="0.0.0.0")
    assert is_served("[fd00::1]:6443", bound_to="::")
    assert not is_served("rebound.example", bound_to="0.0.0.0")


@pytest.mark.parametrize("host", ["", ":6443", "localhost/x", "localhost?x", "a@localhost", "[::1", "localhost:99999"])
def test_what_is_no_authority_is_refused(host: str):
    assert not is_served(host, bound_to="127.0.0.1")


def test_the_refusal_names_what_was_asked_for():
    refusal = HostNames().find_refusal(["evil.example"])
    assert refusal is not None
    assert (refusal.status, refusal.status.phrase) == (403, "Forbidden")
    assert refusal.message == "this server is not called 'evil.example'"
