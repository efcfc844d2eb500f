"""Objects that cannot be decoded: what is wrong, what can be read, and what can be written of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from plimsoll.kube.controller.finalizers import Finalizer, FinalizerOutcome
from plimsoll.kube.errors import Conflict, NotFound, UnreadableAnswer
from plimsoll.kube.undecoded_objects import get_or_explain, patch_undecoded_status, read_undecoded
from plimsoll.objects.codec.decode_problems import BadObject
from plimsoll.objects.registry import KINDS
from tests.kube.embedded_api import WIDGETS, EmbeddedApi, ScriptedTransport, Widget, json_reply
from tests.local.apiserver.builders import definition

if TYPE_CHECKING:
    from collections.abc import Iterator

    from plimsoll.kube.undecoded_objects import UndecodedObject

PATH = "/apis/ex.com/v1/namespaces/here/widgets"
FINALIZER = "ex.com/cleanup"
OPEN = {
    "name": "v1",
    "served": True,
    "storage": True,
    "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
    "subresources": {"status": {}},
}


@pytest.fixture
def world() -> Iterator[EmbeddedApi]:
    """A server whose widgets are not checked, with one that cannot be decoded."""
    with EmbeddedApi(kinds=KINDS.extend([WIDGETS])) as world:
        world.namespace()
        definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
        world.made(definitions, definition(versions=[OPEN]))
        metadata = {"name": "w", "labels": {"a": "b"}, "finalizers": [FINALIZER]}
        world.made(PATH, {"apiVersion": "ex.com/v1", "kind": "Widget", "metadata": metadata, "spec": "x"})
        yield world


def read(world: EmbeddedApi) -> UndecodedObject:
    found = world.do(read_undecoded(world.client, Widget, "w", namespace="here"))
    assert found is not None
    return found


def test_the_field_is_named(world: EmbeddedApi):
    bad = world.do(get_or_explain(world.client, Widget, "w", namespace="here"))
    assert isinstance(bad, BadObject)
    assert (bad.kind, bad.namespace, bad.name, bool(bad.uid)) == ("Widget", "here", "w", True)
    assert bad.problem.startswith("spec: ")


def test_an_object_that_can_be_decoded_is_given_with_its_bytes(world: EmbeddedApi):
    world.made(PATH, {"apiVersion": "ex.com/v1", "kind": "Widget", "metadata": {"name": "good"}, "spec": {"size": 2}})
    found = world.do(get_or_explain(world.client, Widget, "good", namespace="here"))
    assert not isinstance(found, BadObject)
    assert found.view.spec == {"size": 2}
    assert b'"size":2' in found.raw


def test_an_object_that_is_gone_is_neither(world: EmbeddedApi):
    with pytest.raises(NotFound):
        world.do(get_or_explain(world.client, Widget, "none", namespace="here"))
    assert world.do(read_undecoded(world.client, Widget, "none", namespace="here")) is None


@pytest.mark.parametrize(
    "answer", [["x"], {"kind": "Widget", "metadata": {"name": "other", "namespace": "here"}, "spec": "x"}]
)
def test_an_answer_that_is_not_the_object_says_nothing_about_it(answer: object):
    with EmbeddedApi(kinds=KINDS.extend([WIDGETS]), through=lambda _: ScriptedTransport(json_reply(answer))) as world:
        with pytest.raises(UnreadableAnswer):
            world.do(get_or_explain(world.client, Widget, "w", namespace="here"))
        with pytest.raises(UnreadableAnswer):
            world.do(read_undecoded(world.client, Widget, "w", namespace="here"))


def test_its_metadata_and_its_status_are_read_and_its_status_is_written(world: EmbeddedApi):
    found = read(world)
    assert (found.metadata.labels, found.status) == ({"a": "b"}, {})
    world.do(patch_undecoded_status(world.client, Widget, found.metadata, {"ready": False}))
    assert read(world).status == {"ready": False}
    with pytest.raises(Conflict):
        world.do(patch_undecoded_status(world.client, Widget, found.metadata, {"ready": True}))


def test_its_finalizer_is_removed(world: EmbeddedApi):
    world.server.ask("DELETE", f"{PATH}/w")
    outcome = world.do(Finalizer(world.client, FINALIZER).remove(Widget, read(world).metadata))
    assert outcome is FinalizerOutcome.CHANGED
    assert world.do(read_undecoded(world.client, Widget, "w", namespace="here")) is None
