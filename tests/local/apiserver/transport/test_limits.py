from __future__ import annotations

from contextlib import ExitStack

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.local.apiserver.http_types import Request
from plimsoll.local.apiserver.status_errors import StatusError
from plimsoll.local.apiserver.transport.limits import InFlight, Limits, PriorityLevel, find_priority_level


def asked(method: str = "GET", url: str = "/api/v1/pods", *, token: str = "one") -> Request:
    return Request.build(method, url, headers={"Authorization": f"Bearer {token}"})


@pytest.mark.parametrize(
    ("method", "url", "lane"),
    [
        ("GET", "/api/v1/pods", PriorityLevel.READING),
        ("HEAD", "/api/v1/pods", PriorityLevel.READING),
        ("GET", "/api/v1/pods?watch=0", PriorityLevel.READING),
        ("GET", "/api/v1/pods?watch=False", PriorityLevel.READING),
        ("GET", "/api/v1/pods?watch=true", PriorityLevel.WATCHES),
        ("GET", "/api/v1/pods?watch=1", PriorityLevel.WATCHES),
        ("GET", "/api/v1/pods?watch", PriorityLevel.WATCHES),
        ("GET", "/api/v1/watch/pods", PriorityLevel.WATCHES),
        ("GET", "/api/v1/watch/namespaces/x/pods/p", PriorityLevel.WATCHES),
        ("GET", "/apis/apps/v1/watch/deployments?watch=0", PriorityLevel.WATCHES),
        ("GET", "/api/v1//watch/pods", PriorityLevel.WATCHES),
        ("GET", "/api/v1/namespaces/watch/pods", PriorityLevel.READING),
        ("GET", "/api/v1/watch", PriorityLevel.READING),
        ("GET", "/version", PriorityLevel.READING),
        ("PUT", "/api/v1/watch/pods", PriorityLevel.MUTATING),
        ("POST", "/api/v1/pods", PriorityLevel.MUTATING),
        ("POST", "/api/v1/pods?watch=1", PriorityLevel.MUTATING),
        ("DELETE", "/api/v1/pods", PriorityLevel.MUTATING),
        ("NONSENSE", "/", PriorityLevel.MUTATING),
    ],
)
def test_requests_are_counted_by_kind(method: str, url: str, lane: PriorityLevel):
    assert find_priority_level(asked(method, url)) is lane


def test_the_defaults_are_those_of_kube_apiserver():
    limits = Limits()
    assert (limits.mutating, limits.reading, limits.max_body_bytes) == (200, 400, 3145728)


def test_a_client_with_too_many_requests_is_asked_to_retry_after_a_second():
    requests = InFlight(Limits(reading=1))
    with requests.admit(asked()):
        with pytest.raises(StatusError) as refused, requests.admit(asked()):
            pass
        with requests.admit(asked("POST")), requests.admit(asked(token="another")):
            pass
    assert refused.value.status == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": "Too many requests, please try again later.",
        "reason": "TooManyRequests",
        "details": {"retryAfterSeconds": 1},
        "code": 429,
    }
    assert refused.value.headers == (("Retry-After", "1"),)


def test_a_refused_request_takes_no_place():
    requests = InFlight(Limits(reading=1))
    with requests.admit(asked()), pytest.raises(StatusError), requests.admit(asked()):
        pass
    with requests.admit(asked()):
        pass


@given(st.lists(st.sampled_from(["one", "two"]), max_size=40), st.integers(1, 5))
def test_no_client_ever_has_more_than_the_limit_and_nothing_is_left_behind(tokens: list[str], most: int):
    requests = InFlight(Limits(reading=most))
    inside: list[str] = []
    with ExitStack() as places:
        for token in tokens:
            try:
                places.enter_context(requests.admit(asked(token=token)))
            except StatusError:
                assert inside.count(token) == most
            else:
                inside.append(token)
                assert inside.count(token) <= most
    assert requests._counts == {}


def test_memory_of_bodies_is_given_back():
    requests = InFlight(Limits(max_bodies_bytes=10))
    for _ in range(3):
        with requests.reserve_body() as one, requests.reserve_body() as other:
            one.grow(6)
            with pytest.raises(StatusError, match="Too many requests"):
                other.grow(5)
            other.grow(4)
