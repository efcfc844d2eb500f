"""From a change at the server to a key in the queue."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from plimsoll.kube.controller.controller import Again, Controller, Done
from plimsoll.kube.controller.enqueue import build_owner_keys, enqueue_on, get_own_key
from plimsoll.kube.informer import Added, BecameUnreadable, Deleted, Informer, Key, UnreadableDeleted, Updated
from plimsoll.objects.api.meta import ObjectMeta, OwnerReference
from plimsoll.objects.api.pods import Pod
from plimsoll.objects.codec.decode_problems import BadObject
from plimsoll.objects.registry import KINDS
from tests.kube.embedded_api import EmbeddedApi
from tests.local.apiserver.builders import MERGE, pod

if TYPE_CHECKING:
    from collections.abc import Iterator

    from plimsoll.objects.api.resource import Resource


def kind(name: str) -> Resource:
    found = KINDS.find_by_name(name)
    assert found is not None
    return found


def owned(by: str = "web", *, kind: str = "ReplicaSet", api_version: str = "apps/v1", controller: bool = True) -> Pod:
    owner = OwnerReference(api_version=api_version, kind=kind, name=by, controller=controller)
    return Pod(metadata=ObjectMeta(name="p", namespace="here", owner_references=(owner,)))


ALONE = Pod(metadata=ObjectMeta(name="p", namespace="here"))
BAD = BadObject.from_json({"metadata": {"name": "p", "namespace": "here"}}, kind="Pod", problem="spec: odd")


@pytest.mark.parametrize(
    "change",
    [
        Added(new=ALONE),
        Updated(old=ALONE, new=ALONE),
        Deleted(last=ALONE),
        BecameUnreadable(bad=BAD),
        UnreadableDeleted(bad=BAD),
    ],
)
def test_every_change_concerns_the_object_itself(change: Any):
    assert list(get_own_key(change)) == [Key("here", "p")]


@pytest.mark.parametrize(
    "change",
    [
        Added(new=owned()),
        Deleted(last=owned()),
        BecameUnreadable(bad=BAD, last=owned()),
        Updated(old=owned(), new=owned()),
    ],
)
def test_a_change_concerns_the_controller_among_the_owners_once(change: Any):
    assert list(build_owner_keys(kind("replicasets"))(change)) == [Key("here", "web")]


def test_a_change_of_owner_concerns_both():
    change = Updated(old=owned("old"), new=owned("new"))
    assert list(build_owner_keys(kind("replicasets"))(change)) == [Key("here", "old"), Key("here", "new")]


def test_another_version_of_the_owners_kind_is_the_same_kind():
    change = Added(new=owned(api_version="apps/v1beta2"))
    assert list(build_owner_keys(kind("replicasets"))(change)) == [Key("here", "web")]


@pytest.mark.parametrize(
    "value", [ALONE, owned(controller=False), owned(kind="StatefulSet"), owned(api_version="example.com/v1")]
)
def test_an_object_without_owner_or_of_another_kind_concerns_nothing(value: Pod):
    assert list(build_owner_keys(kind("replicasets"))(Added(new=value))) == []


def test_an_owner_without_a_namespace_is_found_without_one():
    change = Added(new=owned("n1", kind="Node", api_version="v1"))
    assert list(build_owner_keys(kind("nodes"))(change)) == [Key("", "n1")]


def test_what_cannot_be_read_has_no_owner():
    assert list(build_owner_keys(kind("replicasets"))(BecameUnreadable(bad=BAD))) == []
    assert list(build_owner_keys(kind("replicasets"))(UnreadableDeleted(bad=BAD))) == []


# ---- with a server


@pytest.fixture
def world() -> Iterator[EmbeddedApi]:
    with EmbeddedApi() as world:
        world.namespace("here")
        yield world


def test_a_controller_sees_what_was_there_what_comes_and_what_goes(world: EmbeddedApi):
    url = "/api/v1/namespaces/here/pods"
    pods = Informer(world.client, Pod, clock=world.clock, entropy=world.entropy)
    seen: list[tuple[str, bool]] = []

    async def reconcile(key: Key) -> Done | Again:
        seen.append((str(key), pods.cache.get(key.name, key.namespace) is not None))
        return Done()

    controller: Controller[Key] = Controller(
        "pods", reconcile, clock=world.clock, entropy=world.entropy, all_keys=pods.cache.iterate_keys
    )
    enqueue_on(pods, controller, get_own_key)
    world.made(url, pod("there"))
    world.run.spawn(controller.run())
    world.run.spawn(pods.run())
    world.run.advance_by(1)
    assert seen[0] == ("here/there", True)
    seen.clear()
    world.made(url, pod("comes"))
    world.run.advance_by(1)
    world.ask("PATCH", f"{url}/comes", {"metadata": {"labels": {"a": "b"}}}, content=MERGE)
    world.run.advance_by(1)
    world.ask("DELETE", f"{url}/comes?gracePeriodSeconds=0")
    world.run.advance_by(1)
    assert seen == [("here/comes", True), ("here/comes", True), ("here/comes", False)]
