"""Many requests for the same things at once, over a store whose writes take their time."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plimsoll.local.apiserver.http_types import Request
from plimsoll.local.apiserver.storage import Delete, Key, Put
from tests.local.apiserver.admission.lagging_driver import LaggingDriver
from tests.local.apiserver.builders import ADMIN, APPLY, JSON, MERGE, ApiServerHarness, Reply, config_map, read

NAMESPACE = "/api/v1/namespaces/here"
MAPS = f"{NAMESPACE}/configmaps"
QUOTAS = f"{NAMESPACE}/resourcequotas"


class DelayedRequest(NamedTuple):
    """A request, and how many turns of the loop after the others it starts."""

    method: str
    url: str
    body: Any = None
    content: str = JSON
    after: int = 0


async def answered(world: ApiServerHarness, sent: DelayedRequest) -> Reply:
    for _ in range(sent.after):
        await asyncio.sleep(0)
    headers = {"Authorization": f"Bearer {ADMIN}", "Accept": JSON, "Content-Type": sent.content}
    data = b"" if sent.body is None else json.dumps(sent.body).encode()
    return await read(await world.application.handle(Request.build(sent.method, sent.url, headers=headers, body=data)))


def at_once(world: ApiServerHarness, *requests: DelayedRequest) -> list[Reply]:
    async def together() -> list[Reply]:
        return list(await asyncio.gather(*(answered(world, sent) for sent in requests)))

    return world.run.run_until(together())


def patch(number: int, *, after: int = 0, **metadata: str) -> DelayedRequest:
    body: dict[str, Any] = {"data": {f"k{number}": "1"}}
    if metadata:
        body["metadata"] = metadata
    return DelayedRequest("PATCH", f"{MAPS}/a", body, MERGE, after)


def apply(number: int, *, name: str = "new", after: int = 0) -> DelayedRequest:
    body = config_map(name, data={f"k{number}": "1"})
    return DelayedRequest("PATCH", f"{MAPS}/{name}?fieldManager=m{number}", body, APPLY, after)


def keys(count: int) -> dict[str, str]:
    return {f"k{number}": "1" for number in range(count)}


async def emptied_and_ended(world: ApiServerHarness, *, after: int) -> None:
    """What the namespace controller does, without a pause."""
    going = await answered(world, DelayedRequest("DELETE", NAMESPACE, after=after))
    listed = await answered(world, DelayedRequest("GET", MAPS))
    for item in listed.body["items"]:
        await answered(world, DelayedRequest("DELETE", f"{MAPS}/{item['metadata']['name']}"))
    ended = {"metadata": {"name": "here"}, "spec": {}}
    assert going.status == 200
    assert (await answered(world, DelayedRequest("PUT", f"{NAMESPACE}/finalize", ended))).status == 200


LAGS = st.lists(st.integers(0, 4), max_size=6)
STARTS = st.lists(st.integers(0, 12), min_size=1, max_size=16)


@given(starts=STARTS, lags=LAGS)
@settings(max_examples=20, deadline=None)
def test_every_unconditional_patch_lands(starts: list[int], lags: list[int]):
    with ApiServerHarness(driver=LaggingDriver(lags)) as world:
        world.namespace()
        world.made(MAPS, config_map())
        replies = at_once(world, *(patch(number, after=after) for number, after in enumerate(starts)))
        assert {reply.status for reply in replies} == {200}
        assert world.ask("GET", f"{MAPS}/a").body["data"] == keys(len(starts))


@given(starts=STARTS, lags=LAGS)
@settings(max_examples=20, deadline=None)
def test_concurrent_applies_of_a_new_object_succeed_and_one_creates_it(starts: list[int], lags: list[int]):
    with ApiServerHarness(driver=LaggingDriver(lags)) as world:
        world.namespace()
        replies = at_once(world, *(apply(number, after=after) for number, after in enumerate(starts)))
        assert Counter(reply.status for reply in replies) == Counter({201: 1, 200: len(starts) - 1})
        assert world.ask("GET", f"{MAPS}/new").body["data"] == keys(len(starts))


@given(starts=STARTS, end=st.integers(0, 12), lags=LAGS)
@settings(max_examples=40, deadline=None)
def test_no_object_is_left_without_its_namespace(starts: list[int], end: int, lags: list[int]):
    with ApiServerHarness(driver=LaggingDriver(lags)) as world:
        world.namespace()
        creations = [
            DelayedRequest("POST", MAPS, config_map(f"c{number}"), after=after)
            if number % 2
            else apply(number, name=f"c{number}", after=after)
            for number, after in enumerate(starts)
        ]

        async def together() -> list[Reply]:
            ending = emptied_and_ended(world, after=end)
            _, *replies = await asyncio.gather(ending, *(answered(world, sent) for sent in creations))
            return replies

        statuses = {reply.status for reply in world.run.run_until(together())}
        assert statuses <= {201, 403, 404}
        assert world.ask("GET", NAMESPACE).status == 404
        assert world.server.store.count("configmaps", "here") == 0


@pytest.fixture
def world():
    with ApiServerHarness(driver=LaggingDriver([2, 3])) as made:
        made.namespace()
        yield made


def test_of_several_updates_of_the_same_version_one_wins(world: ApiServerHarness):
    version = world.made(MAPS, config_map())["metadata"]["resourceVersion"]
    replies = at_once(world, *(patch(number, resourceVersion=version) for number in range(5)))
    assert Counter(reply.status for reply in replies) == Counter({200: 1, 409: 4})


def test_a_deletion_goes_through_however_many_patch(world: ApiServerHarness):
    world.made(MAPS, config_map())
    *patches, deletion = at_once(world, *(patch(number) for number in range(20)), DelayedRequest("DELETE", f"{MAPS}/a"))
    assert deletion.status == 200
    assert {reply.status for reply in patches} == {200}
    assert world.ask("GET", f"{MAPS}/a").status == 404


def test_a_deletion_of_a_version_that_was_changed_is_a_conflict(world: ApiServerHarness):
    version = world.made(MAPS, config_map())["metadata"]["resourceVersion"]
    options = {"preconditions": {"resourceVersion": version}}
    patched, deletion = at_once(world, patch(0), DelayedRequest("DELETE", f"{MAPS}/a", options))
    assert (patched.status, deletion.status) == (200, 409)
    assert "the ResourceVersion in the precondition" in deletion.message


def test_a_patch_lands_although_other_writes_bypass_the_handlers_more_than_ten_times(
    world: ApiServerHarness, monkeypatch: pytest.MonkeyPatch
):
    world.made(MAPS, config_map(data={"x": "0"}))
    store, real, left = world.server.store, world.server.admission.mutate, iter(range(30))

    async def mutate(attempt: Any) -> Any:
        number = next(left, None)
        if number is not None:
            other = store.get(Key("configmaps", "here", "a"))
            assert other is not None
            body = other.decode_body()
            body["data"]["theirs"] = str(number)
            await store.update(other.key, lambda _: Put(body))
        return await real(attempt)

    monkeypatch.setattr(world.server.admission, "mutate", mutate)
    reply = world.ask("PATCH", f"{MAPS}/a", {"data": {"mine": "1"}}, content=MERGE)
    assert (reply.status, reply.body["data"]) == (200, {"x": "0", "theirs": "29", "mine": "1"})


@pytest.mark.parametrize("what", ["created", "deleted"])
def test_apply_goes_round_again_when_its_object_is_created_or_deleted_meanwhile(
    world: ApiServerHarness, what: str, monkeypatch: pytest.MonkeyPatch
):
    made = world.made(MAPS, config_map("new", data={"theirs": "1"}))
    key, store, real, done = (
        Key("configmaps", "here", "new"),
        world.server.store,
        world.server.admission.mutate,
        list[Any](),
    )
    if what == "created":
        assert world.ask("DELETE", f"{MAPS}/new").status == 200

    async def mutate(attempt: Any) -> Any:
        if not done:
            done.append(1)
            await store.update(key, lambda _: Put(made) if what == "created" else Delete())
        return await real(attempt)

    monkeypatch.setattr(world.server.admission, "mutate", mutate)
    (reply,) = at_once(world, apply(0))
    expected = (200, {"theirs": "1", "k0": "1"}) if what == "created" else (201, {"k0": "1"})
    assert (reply.status, reply.body["data"]) == expected


def test_concurrent_applies_of_one_object_are_charged_to_the_quota_once(world: ApiServerHarness):
    world.made(QUOTAS, {"metadata": {"name": "q"}, "spec": {"hard": {"configmaps": "1"}}})
    replies = at_once(world, *(apply(number) for number in range(5)))
    assert Counter(reply.status for reply in replies) == Counter({201: 1, 200: 4})
