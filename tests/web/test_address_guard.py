"""Where an external service may be: not where only our controller can reach."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from plimsoll.core.errors import InvalidInput
from plimsoll.web.address_guard import find_refusal, parse_exceptions
from tests.tidb.external.fake_services import ADDRESS, FakeService, asked, problem_with, question

if TYPE_CHECKING:
    from tests.golden.reviewed_sentences import ReviewedSentences

REFUSED = [
    "127.0.0.1",
    "127.8.9.10",
    "::1",
    "::ffff:127.0.0.1",
    "64:ff9b::7f00:1",
    "2002:7f00:1::",
    "::127.0.0.1",
    "0.0.0.0",
    "0.1.2.3",
    "::",
    "169.254.169.254",
    "::ffff:169.254.169.254",
    "64:ff9b::a9fe:a9fe",
    "169.254.1.1",
    "fe80::1",
    "fe80::1%eth0",
    "fd00:ec2::254",
    "100.100.100.200",
    "168.63.129.16",
    "224.0.0.1",
    "ff02::1",
    "255.255.255.255",
    "nonsense",
]


@pytest.mark.parametrize("address", REFUSED)
def test_refused(address: str) -> None:
    assert find_refusal("advice.prod", address)


@pytest.mark.parametrize(
    "address", ["10.4.0.7", "192.168.1.1", "172.20.0.9", "100.64.0.3", "93.184.216.34", "fd00::7", "64:ff9b::a04:7"]
)
def test_ordinary_addresses_may_be_called(address: str) -> None:
    assert not find_refusal("advice.prod", address)


@pytest.mark.parametrize("address", REFUSED)
def test_a_host_that_resolves_to_one_is_not_called(address: str, reviewed: ReviewedSentences) -> None:
    service = FakeService(addresses=[(address,)])
    reviewed(problem_with(service))
    assert service.called == []


def test_one_bad_address_among_good_ones_spoils_the_host() -> None:
    service = FakeService(addresses=[(ADDRESS, "169.254.169.254")])
    assert "169.254.169.254 is a link-local address" in problem_with(service)
    assert service.called == []


def test_the_call_goes_to_the_address_that_was_judged() -> None:
    """A name that changes between judging and calling (DNS rebinding) gains nothing: it is resolved once."""
    service = FakeService(addresses=[(ADDRESS,), ("127.0.0.1",)])
    asked(service)
    assert [place.address for place in service.called] == [ADDRESS]


@pytest.mark.parametrize("allowed", ["127.0.0.1", "127.0.0.0/8", "advice.prod", "ADVICE.prod."])
def test_the_operator_may_allow_what_is_refused(allowed: str) -> None:
    service = FakeService(addresses=[("127.0.0.1",)])
    assert asked(service, allowed=[allowed]) == 3


def test_what_is_allowed_is_not_more_than_was_configured(reviewed: ReviewedSentences) -> None:
    service = FakeService(addresses=[("127.0.0.1",)])
    about = question(host="other.prod")
    reviewed(problem_with(service, about, allowed=["advice.prod", "127.0.0.2", "10.0.0.0/8"]))


@pytest.mark.parametrize("written", ["", "10.0.0.1/8", "10.0.0.0/40", "a/b"])
def test_exceptions_that_mean_nothing(written: str) -> None:
    with pytest.raises(InvalidInput, match="--external-allow"):
        parse_exceptions([written])
