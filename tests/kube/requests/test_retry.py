"""Which calls are sent again, when, and for how long; and which never."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plimsoll.kube.client import Client
from plimsoll.kube.errors import (
    AnswerLost,
    ApiError,
    Closed,
    NotAllowed,
    NotSent,
    ServerFailed,
    TimedOut,
    TlsRefused,
    TooManyRequests,
)
from plimsoll.kube.requests.options import ClientSettings, DeleteOptions
from plimsoll.kube.requests.retry import Effect, classify_effect
from plimsoll.kube.transport import Request, Response
from plimsoll.objects.api.core import ConfigMap
from plimsoll.objects.api.nodes import Node
from plimsoll.runtime.backoff import Backoff
from plimsoll.runtime.entropy import SeededEntropy
from plimsoll.runtime.virtual_run import VirtualRun
from tests.faults import Flaky
from tests.kube.embedded_api import UNLIMITED, EmbeddedApi, ScriptedTransport, json_reply, status_reply

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from plimsoll.core.clock import Clock
    from plimsoll.kube.transport import Guard

    Step = Response | Exception | Callable[[Request], Response]

NODE = json_reply({"kind": "Node", "metadata": {"name": "n"}})
STEADY = Backoff(initial_s=1, factor=2, cap_s=8, jitter=0, max_attempts=5)


class RetryHarness:
    """A client of a scripted server, and what happened to one call."""

    def __init__(self, *script: Step, settings: ClientSettings | None = None, guard: Guard | None = None) -> None:
        self._run = VirtualRun()
        self.clock: Clock = self._run.clock
        self.transport = ScriptedTransport(*script, clock=self.clock)
        chosen = settings or ClientSettings(qps=0, retry=STEADY)
        self.client = Client(self.transport, clock=self.clock, entropy=SeededEntropy(1), settings=chosen, guard=guard)

    def of(self, act: Callable[[Client], Awaitable[Any]]) -> RetryHarness:
        self.result: Any = None
        self.error: Exception | None = None

        async def main() -> None:
            try:
                self.result = await act(self.client)
            except (ApiError, NotSent, AnswerLost, NotAllowed) as error:
                self.error = error

        with self._run as run:
            run.run_until(main())
        return self

    @property
    def sends(self) -> int:
        return len(self.transport.sent)


async def read(client: Client) -> Node:
    return await client.get(Node, "n")


async def create(client: Client) -> Node:
    return await client.create(Node, {"metadata": {"name": "n"}})


async def merge(client: Client) -> Node:
    return await client.merge_patch(Node, "n", {"metadata": {"labels": {"a": "b"}}})


async def merge_at_a_version(client: Client) -> Node:
    return await client.merge_patch(Node, "n", {"metadata": {"resourceVersion": "7", "labels": {"a": "b"}}})


async def apply(client: Client) -> Node:
    return await client.apply(Node, "n", {"metadata": {"labels": {"a": "b"}}})


async def json_patch(client: Client) -> Node:
    return await client.patch_json(Node, "n", [{"op": "add", "path": "/spec/taints/-", "value": {"key": "x"}}])


async def delete(client: Client) -> None:
    await client.delete(Node, "n")


async def delete_this_one(client: Client) -> None:
    await client.delete(Node, "n", options=DeleteOptions(uid="u"))


async def evict(client: Client) -> object:
    return await client.evict("p", namespace="here")


async def try_to_create(client: Client) -> Node:
    return await client.create(Node, {"metadata": {"name": "n"}}, dry_run=True)


CHANGING = (create, merge, merge_at_a_version, apply, json_patch, delete, delete_this_one, evict)
ONCE = (create, merge_at_a_version, json_patch, delete, evict)
REPEATED = (merge, apply, delete_this_one)
CHANGING_NOTHING = (read, try_to_create)


# ---- which


@pytest.mark.parametrize("act", [*CHANGING, *CHANGING_NOTHING])
def test_what_was_not_sent_is_sent_again(act: Callable[[Client], Awaitable[Any]]):
    assert RetryHarness(NotSent("refused"), NODE).of(act).sends == 2


@pytest.mark.parametrize("act", [*CHANGING, *CHANGING_NOTHING])
def test_a_certificate_that_is_not_accepted_will_not_be_accepted_later(act: Callable[[Client], Awaitable[Any]]):
    reported = RetryHarness(TlsRefused("unknown authority"), NODE).of(act)
    assert (reported.sends, type(reported.error)) == (1, TlsRefused)


@pytest.mark.parametrize("act", [*CHANGING, *CHANGING_NOTHING])
def test_a_closed_transport_is_not_tried_again(act: Callable[[Client], Awaitable[Any]]):
    reported = RetryHarness(Closed("the transport is closed"), NODE).of(act)
    assert (reported.sends, type(reported.error)) == (1, Closed)


@pytest.mark.parametrize("act", [*REPEATED, *CHANGING_NOTHING])
@pytest.mark.parametrize("loss", [AnswerLost("reset"), TimedOut("30 s")])
def test_a_call_that_may_arrive_twice_is_sent_again_when_its_answer_is_lost(
    act: Callable[[Client], Awaitable[Any]], loss: Exception
):
    assert RetryHarness(loss, NODE).of(act).sends == 2


@pytest.mark.parametrize("act", ONCE)
@pytest.mark.parametrize("loss", [AnswerLost("reset"), TimedOut("30 s")])
def test_the_loss_of_an_answer_reaches_the_caller_of_a_call_that_must_not_arrive_twice(
    act: Callable[[Client], Awaitable[Any]], loss: Exception
):
    reported = RetryHarness(loss, NODE).of(act)
    assert (reported.sends, reported.error) == (1, loss)


@pytest.mark.parametrize("act", ONCE)
@pytest.mark.parametrize("code", [500, 504])
def test_a_failure_that_may_have_come_after_the_deed_reaches_the_caller_of_a_call_that_must_not_arrive_twice(
    act: Callable[[Client], Awaitable[Any]], code: int
):
    assert RetryHarness(status_reply(code, retry_after="1"), NODE).of(act).sends == 1


@pytest.mark.parametrize("act", [*REPEATED, *CHANGING_NOTHING])
@pytest.mark.parametrize("code", [500, 504])
def test_any_other_call_comes_back_after_a_failure_that_says_when(act: Callable[[Client], Awaitable[Any]], code: int):
    assert RetryHarness(status_reply(code, retry_after="1"), NODE).of(act).sends == 2


@pytest.mark.parametrize("act", [*CHANGING, *CHANGING_NOTHING])
@pytest.mark.parametrize("code", [429, 503])
def test_a_server_that_asks_to_come_back_gets_it(act: Callable[[Client], Awaitable[Any]], code: int):
    assert RetryHarness(status_reply(code, retry_after="1"), NODE).of(act).sends == 2


@pytest.mark.parametrize("code", [502, 503, 504])
def test_passing_trouble_is_waited_out_only_by_calls_that_change_nothing(code: int):
    assert RetryHarness(status_reply(code), NODE).of(read).sends == 2
    assert RetryHarness(status_reply(code), NODE).of(merge).sends == 1


@pytest.mark.parametrize("code", [400, 401, 403, 404, 409, 410, 413, 422, 500])
def test_other_answers_are_final(code: int):
    reported = RetryHarness(status_reply(code), NODE).of(read)
    assert (reported.sends, isinstance(reported.error, ApiError)) == (1, True)


def test_a_disruption_budgets_no_is_an_answer():
    details = {"causes": [{"reason": "DisruptionBudget"}], "retryAfterSeconds": 10}
    reported = RetryHarness(status_reply(429, details=details, retry_after="10")).of(evict)
    assert (reported.sends, reported.error) == (1, None)


def test_a_question_about_permissions_changes_nothing():
    path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    assert classify_effect(Request("POST", path)) is Effect.NONE
    assert classify_effect(Request("POST", "/api/v1/namespaces/a/serviceaccounts/b/token")) is Effect.ONCE


def test_a_deletion_whose_body_says_nothing_of_a_dry_run_is_none():
    query = [("dryRun", "All")]
    assert classify_effect(Request("DELETE", "/api/v1/nodes/n", query, body=b'{"gracePeriodSeconds":1}')) is Effect.ONCE
    assert classify_effect(Request("DELETE", "/api/v1/nodes/n", query)) is Effect.NONE


def test_a_patch_in_yaml_is_not_trusted_to_repeat_itself():
    headers = {"content-type": "application/apply-patch+yaml"}
    assert classify_effect(Request("PATCH", "/api/v1/nodes/n", headers=headers, body=b"kind: Node")) is Effect.ONCE


# ---- when


def test_waits_grow():
    reported = RetryHarness(*[NotSent("refused")] * 4, NODE).of(read)
    assert reported.transport.sent_at == [0, 1, 3, 7, 15]


def test_waits_are_spread_by_chance():
    jittery = ClientSettings(qps=0, retry=Backoff(initial_s=1, jitter=0.5))
    at = RetryHarness(NotSent("refused"), NODE, settings=jittery).of(read).transport.sent_at[1]
    assert 0.5 < at < 1.0


def test_a_server_is_not_asked_earlier_than_it_wants():
    reported = RetryHarness(status_reply(503, retry_after="20"), NODE).of(read)
    assert reported.transport.sent_at == [0, 20]


def test_a_server_cannot_make_us_hurry():
    reported = RetryHarness(status_reply(503, retry_after="0"), NODE).of(read)
    assert reported.transport.sent_at == [0, 1]


# ---- for how long


def test_after_the_last_attempt_its_error_is_raised_with_their_number():
    reported = RetryHarness(NotSent("refused")).of(read)
    assert (reported.sends, str(reported.error)) == (5, "refused")
    assert reported.error is not None
    assert reported.error.__notes__ == ["after 5 attempts in 15.0 s"]


def test_a_wait_beyond_the_deadline_is_not_begun():
    reported = RetryHarness(
        status_reply(503, "busy", retry_after="59"), NODE, settings=ClientSettings(qps=0, deadline_s=30)
    ).of(read)
    assert (reported.sends, str(reported.error), reported.clock.monotonic_s()) == (1, "busy", 0)


def test_an_attempt_has_at_most_what_is_left_of_the_deadline():
    settings = ClientSettings(qps=0, timeout_s=30, deadline_s=32, retry=STEADY)
    reported = RetryHarness(NotSent("refused"), NotSent("refused"), NODE, settings=settings).of(read)
    assert [call.timeout_s for call in reported.transport.sent] == [30, 30, 29]


def test_an_attempt_takes_no_longer_than_the_raw_call_says():
    reported = RetryHarness(NODE).of(lambda client: client.call(Request("GET", "/x", timeout_s=3)))
    assert reported.transport.sent[0].timeout_s == 3


def test_a_raw_call_takes_no_longer_than_the_client_allows():
    reported = RetryHarness(NODE, settings=ClientSettings(qps=0, timeout_s=2)).of(
        lambda client: client.call(Request("GET", "/x"))
    )
    assert reported.transport.sent[0].timeout_s == 2


def test_further_attempts_wait_for_their_turn():
    slow = ClientSettings(qps=0.1, burst=1, retry=STEADY)
    reported = RetryHarness(NotSent("refused"), NODE, settings=slow).of(read)
    assert reported.transport.sent_at == [0, 10]


def test_waiting_for_the_first_turn_does_not_count_against_the_deadline():
    slow = ClientSettings(qps=0.01, burst=1, deadline_s=60)

    async def twice(client: Client) -> None:
        await read(client)
        await read(client)

    reported = RetryHarness(NODE, settings=slow).of(twice)
    assert (reported.error, reported.transport.sent_at) == (None, [0, 100])


def test_a_turn_that_comes_too_late_for_the_deadline_raises_the_last_error():
    slow = ClientSettings(qps=0.01, burst=1, retry=STEADY)
    reported = RetryHarness(NotSent("refused"), NODE, settings=slow).of(read)
    assert (reported.sends, str(reported.error)) == (1, "refused")


def test_a_watch_is_opened_by_one_attempt():
    reported = RetryHarness(status_reply(503, "busy", retry_after="1")).of(lambda client: client.watch(Node))
    assert (reported.sends, type(reported.error)) == (1, ServerFailed)
    assert isinstance(reported.error, ServerFailed)
    assert reported.error.retry_after_s == 1


# ---- the guard


class CallBudget:
    """Allows so many seconds, and nothing any more after some calls; `is_stolen`: a read shows that it is over."""

    def __init__(self, limit_duration_s: float = 5, *, calls: int = 10, is_stolen: bool = False) -> None:
        self._allowed_s = limit_duration_s
        self._calls = calls
        self._is_stolen = is_stolen
        self.asked = 0

    def limit_duration_s(self, wanted_s: float) -> float:
        self.asked += 1
        if self.asked > self._calls:
            raise NotAllowed("the brake is on")
        return min(wanted_s, self._allowed_s)

    async def confirm(self) -> None:
        if self._is_stolen:
            raise NotAllowed("the lease was stolen")


@pytest.mark.parametrize("act", CHANGING)
def test_the_guard_bounds_every_attempt_that_changes_something(act: Callable[[Client], Awaitable[Any]]):
    brake = CallBudget()
    reported = RetryHarness(NotSent("refused"), NODE, guard=brake).of(act)
    assert (brake.asked, [call.timeout_s for call in reported.transport.sent]) == (2, [5, 5])


@pytest.mark.parametrize("act", CHANGING_NOTHING)
def test_the_guard_is_not_asked_where_nothing_changes(act: Callable[[Client], Awaitable[Any]]):
    assert RetryHarness(NODE, guard=CallBudget(calls=0)).of(act).error is None


def test_what_the_guard_forbids_is_not_sent():
    reported = RetryHarness(NODE, guard=CallBudget(calls=0)).of(merge)
    assert (reported.sends, str(reported.error)) == (0, "the brake is on")


@pytest.mark.parametrize("act", CHANGING)
def test_only_what_removes_something_has_the_guard_read_again(act: Callable[[Client], Awaitable[Any]]):
    removes = act in (delete, delete_this_one, evict)
    reported = RetryHarness(NODE, guard=CallBudget(is_stolen=True)).of(act)
    assert reported.sends == (0 if removes else 1)
    assert isinstance(reported.error, NotAllowed) is removes


def test_the_guard_may_forbid_a_second_attempt():
    reported = RetryHarness(NotSent("refused"), NODE, guard=CallBudget(calls=1)).of(merge)
    assert (reported.sends, type(reported.error)) == (1, NotAllowed)


def test_the_result_of_the_attempt_before_the_pause_is_reported_too():
    lost = AnswerLost("reset")
    reported = RetryHarness(lost, NODE, guard=CallBudget(calls=1)).of(merge)
    assert isinstance(reported.error, NotAllowed)
    assert reported.error.__cause__ is lost


def test_clients_under_different_guards_share_the_rate_limit():
    async def both(client: Client) -> None:
        free = client.with_guard(None)
        await asyncio.gather(read(client), create(free))

    brake = CallBudget(calls=0)
    reported = RetryHarness(NODE, settings=ClientSettings(qps=1, burst=1), guard=brake).of(both)
    assert (reported.error, reported.transport.sent_at) == (None, [0, 1])


# ---- invariants

steps = st.sampled_from(
    [NotSent("refused"), AnswerLost("reset"), TimedOut("30 s"), status_reply(429), status_reply(503, retry_after="1")]
)


@settings(max_examples=100)
@given(st.lists(steps, max_size=8), st.sampled_from(ONCE))
def test_nothing_is_sent_after_an_answer_was_lost_to_a_call_that_must_not_arrive_twice(
    script: list[Any], act: Callable[[Client], Awaitable[Any]]
):
    reported = RetryHarness(*script, NODE).of(act)
    used = script[: reported.sends]
    assert not any(isinstance(step, AnswerLost) for step in used[:-1])


@settings(max_examples=30)
@given(st.integers(0, 10_000))
def test_a_create_that_raises_lost_answers_made_at_most_one_object(seed: int):
    flaky = Flaky(seed, share=0.6, error=lambda: AnswerLost("reset"))
    with EmbeddedApi(settings=UNLIMITED, through=flaky.wrap) as world:
        world.namespace()
        raised = 0
        for number in range(10):
            body = {"metadata": {"generateName": f"c{number}-"}}
            try:
                world.do(world.client.create(ConfigMap, body, namespace="here"))
            except AnswerLost:
                raised += 1
        made = world.ask("GET", "/api/v1/namespaces/here/configmaps")["items"]
        names = [body["metadata"]["generateName"] for body in made if "generateName" in body["metadata"]]
    assert len(names) == len(set(names)) >= 10 - raised


def test_too_many_requests_in_the_end_is_what_it_is():
    assert isinstance(RetryHarness(status_reply(429, retry_after="1")).of(read).error, TooManyRequests)
