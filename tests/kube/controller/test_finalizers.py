"""Our finalizer goes on and off, and no other finalizer is lost on the way."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plimsoll.core.errors import InvalidInput
from plimsoll.kube.controller.finalizers import ATTEMPTS, Finalizer, FinalizerOutcome
from plimsoll.kube.errors import AnswerLost, Conflict
from plimsoll.objects.api.core import ConfigMap
from tests.faults import CrashAfter, Crashed, Fault, LoseAnswers
from tests.kube.embedded_api import EmbeddedApi
from tests.local.apiserver.builders import MERGE, config_map

if TYPE_CHECKING:
    from collections.abc import Iterator

    from plimsoll.kube.transport import Request, Response, Transport
    from plimsoll.objects.api.meta import ObjectMeta

OURS, THEIRS = "plimsoll.dev/cleanup", "example.com/theirs"
URL = "/api/v1/namespaces/here/configmaps/a"


class ConcurrentWriter:
    """Another client that writes to the object whenever we are about to."""

    def __init__(self, world: EmbeddedApi, transport: Transport, changes: Iterator[dict[str, Any]]) -> None:
        self._world = world
        self._transport = transport
        self._changes = changes
        self._theirs = world.new_client()

    async def send(self, call: Request) -> Response:
        change = next(self._changes, None) if call.method == "PATCH" else None
        if change is not None:
            await self._theirs.merge_patch(ConfigMap, "a", change, namespace="here")
        return await self._transport.send(call)

    async def aclose(self) -> None:
        await self._transport.aclose()


@pytest.fixture
def world() -> Iterator[EmbeddedApi]:
    with EmbeddedApi() as world:
        world.namespace("here")
        yield world


def made(world: EmbeddedApi, *finalizers: str) -> ObjectMeta:
    world.made("/api/v1/namespaces/here/configmaps", config_map(metadata={"finalizers": list(finalizers)}))
    return read(world)


def read(world: EmbeddedApi) -> ObjectMeta:
    return world.do(world.client.get(ConfigMap, "a", namespace="here")).metadata


def patched(world: EmbeddedApi, **metadata: Any) -> None:
    world.ask("PATCH", URL, {"metadata": metadata}, content=MERGE)


def finalizer(world: EmbeddedApi) -> Finalizer:
    return Finalizer(world.client, OURS)


def test_it_goes_on_behind_what_is_there(world: EmbeddedApi):
    metadata = made(world, THEIRS)
    assert world.do(finalizer(world).add(ConfigMap, metadata)) is FinalizerOutcome.CHANGED
    assert read(world).finalizers == (THEIRS, OURS)


def test_putting_it_on_twice_is_putting_it_on_once(world: EmbeddedApi):
    metadata = made(world)
    world.do(finalizer(world).add(ConfigMap, metadata))
    assert world.do(finalizer(world).add(ConfigMap, metadata)) is FinalizerOutcome.UNCHANGED
    assert read(world).finalizers == (OURS,)


def test_it_comes_off_and_leaves_the_others(world: EmbeddedApi):
    metadata = made(world, OURS, THEIRS)
    assert world.do(finalizer(world).remove(ConfigMap, metadata)) is FinalizerOutcome.CHANGED
    assert read(world).finalizers == (THEIRS,)
    assert world.do(finalizer(world).remove(ConfigMap, metadata)) is FinalizerOutcome.UNCHANGED


def test_taking_it_off_lets_a_deleted_object_go(world: EmbeddedApi):
    metadata = made(world, OURS)
    world.ask("DELETE", URL)
    assert world.do(finalizer(world).remove(ConfigMap, metadata)) is FinalizerOutcome.CHANGED
    assert world.server.ask("GET", URL).status == 404


def test_nothing_is_put_on_an_object_that_is_being_deleted(world: EmbeddedApi):
    stale = made(world, THEIRS)
    world.ask("DELETE", URL)
    for metadata in (stale, read(world)):
        assert world.do(finalizer(world).add(ConfigMap, metadata)) is FinalizerOutcome.BEING_DELETED
    assert read(world).finalizers == (THEIRS,)


def test_what_is_gone_is_gone(world: EmbeddedApi):
    metadata = made(world)
    world.ask("DELETE", URL)
    assert world.do(finalizer(world).add(ConfigMap, metadata)) is FinalizerOutcome.GONE


def test_another_object_of_the_same_name_is_not_touched(world: EmbeddedApi):
    old = made(world)
    world.ask("DELETE", URL)
    made(world, OURS)
    assert world.do(finalizer(world).add(ConfigMap, old)) is FinalizerOutcome.GONE
    assert world.do(finalizer(world).remove(ConfigMap, old)) is FinalizerOutcome.GONE
    assert read(world).finalizers == (OURS,)


def test_a_cache_that_does_not_know_of_it_yet_does_not_leave_it_on(world: EmbeddedApi):
    stale = made(world, THEIRS)
    world.do(finalizer(world).add(ConfigMap, stale))
    assert world.do(finalizer(world).remove(ConfigMap, stale)) is FinalizerOutcome.CHANGED
    assert read(world).finalizers == (THEIRS,)


def test_a_cache_that_still_has_it_does_not_make_us_believe_it_is_on(world: EmbeddedApi):
    stale = made(world, OURS)
    patched(world, finalizers=None)
    assert world.do(finalizer(world).add(ConfigMap, stale)) is FinalizerOutcome.CHANGED
    assert read(world).finalizers == (OURS,)
    world.ask("DELETE", URL)
    assert world.do(finalizer(world).add(ConfigMap, stale)) is FinalizerOutcome.UNCHANGED, "on its way out, and kept"
    patched(world, finalizers=None)
    assert world.do(finalizer(world).add(ConfigMap, stale)) is FinalizerOutcome.GONE


def test_a_finalizer_that_came_in_between_is_kept(world: EmbeddedApi):
    stale = made(world)
    patched(world, finalizers=[THEIRS])
    assert world.do(finalizer(world).add(ConfigMap, stale)) is FinalizerOutcome.CHANGED
    assert read(world).finalizers == (THEIRS, OURS)


def test_an_object_that_never_stands_still_is_given_up_with_the_conflict(world: EmbeddedApi):
    metadata = made(world)
    busy = ({"metadata": {"labels": {"turn": str(turn)}}} for turn in itertools.count())
    client = world.new_client(through=lambda transport: ConcurrentWriter(world, transport, busy))
    with pytest.raises(Conflict):
        world.do(Finalizer(client, OURS).add(ConfigMap, metadata))
    assert read(world).labels == {"turn": str(ATTEMPTS - 1)}


@pytest.mark.parametrize("name", ["", "has space/x", "noslash", "a/b/c"])
def test_a_name_kubernetes_would_refuse_is_refused_at_once(world: EmbeddedApi, name: str):
    with pytest.raises(InvalidInput, match=r"^finalizer: "):
        Finalizer(world.client, name)


@settings(max_examples=40, deadline=None)
@given(
    meddling=st.lists(st.lists(st.sampled_from(["x.io/a", "x.io/b", "x.io/c"]), unique=True), max_size=ATTEMPTS - 1),
    wanted=st.booleans(),
)
def test_whatever_others_write_in_between_stays_as_they_wrote_it(meddling: list[list[str]], wanted: bool):
    with EmbeddedApi() as world:
        world.namespace("here")
        metadata = made(world, *(() if wanted else (OURS,)))
        keep = [] if wanted else [OURS]
        turns = enumerate(meddling)
        changes = iter(
            # The label makes each of them a change.
            [{"metadata": {"finalizers": [*theirs, *keep], "labels": {"turn": f"{turn}"}}} for turn, theirs in turns]
        )
        client = world.new_client(through=lambda transport: ConcurrentWriter(world, transport, changes))
        ours = Finalizer(client, OURS)
        world.do(ours.add(ConfigMap, metadata) if wanted else ours.remove(ConfigMap, metadata))
        theirs = meddling[-1] if meddling else []
        assert read(world).finalizers == (*theirs, *([OURS] if wanted else []))


# ---- crashes and lost answers: the same once for every call that is made


def _through(world: EmbeddedApi, fault: Fault) -> Finalizer:
    return Finalizer(world.new_client(through=fault.wrap), OURS)


async def _life(ours: Finalizer, world: EmbeddedApi) -> None:
    """What a controller does, put it on, see the object deleted, take it off; until it is gone."""
    theirs = world.new_client()
    for _ in range(10):
        listed = (await theirs.list(ConfigMap)).items
        found = next((item.metadata for item in listed if item.metadata.name == "a"), None)
        if found is None:
            return
        try:
            if found.deletion_timestamp is None:
                if await ours.add(ConfigMap, found) is FinalizerOutcome.CHANGED:
                    await theirs.merge_patch(ConfigMap, "a", {"data": {"held": "yes"}}, namespace="here")
                await theirs.delete(ConfigMap, "a", namespace="here")
            else:
                await ours.remove(ConfigMap, found)
        except AnswerLost:
            continue
    raise AssertionError("it never ended")


def test_a_crash_after_any_call_is_made_good_by_the_next_instance():
    for n in itertools.count(1):
        with EmbeddedApi() as world:
            world.namespace("here")
            made(world)
            crash = CrashAfter(n)
            try:
                world.do(_life(_through(world, crash), world))
            except Crashed:
                world.do(_life(finalizer(world), world))
            assert world.server.ask("GET", URL).status == 404
        if crash.struck is None:
            break
    assert n > 2


def test_a_lost_answer_to_any_call_is_got_over():
    for n in itertools.count(1):
        with EmbeddedApi() as world:
            world.namespace("here")
            made(world)
            lost = LoseAnswers(n, error=lambda: AnswerLost("lost"))
            world.do(_life(_through(world, lost), world))
            assert world.server.ask("GET", URL).status == 404
        if lost.struck is None:
            break
    assert n > 2
