"""A custom resource is presented once per write and version, and a changed definition shows at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import msgspec
import pytest

from plimsoll.local.apiserver.storage.objects import Key, Stored, Traits, build_stored
from plimsoll.local.apiserver.strategies.presented_objects import PresentedObjects
from tests.local.apiserver.builders import MERGE, ApiServerHarness

if TYPE_CHECKING:
    from collections.abc import Iterator

    from plimsoll.local.apiserver.strategies.interface import Strategy

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
WIDGETS = "/apis/ex.com/v1/namespaces/default/widgets"
JsonObject = dict[str, Any]


class CountingStrategy:
    """Presents an object with a mark, and counts."""

    def __init__(self, mark: str = "a", api_version: str = "ex.com/v1") -> None:
        self.resource = self
        self.api_version = api_version
        self.presented = 0
        self._mark = mark

    def present(self, stored: JsonObject) -> JsonObject:
        self.presented += 1
        return {**stored, "mark": self._mark}


def stored(name: str = "w", *, revision: int = 5, text: str = "") -> Stored:
    body = {"metadata": {"name": name, "resourceVersion": str(revision)}, "text": text}
    return build_stored(Traits("ex.com/widgets"), Key("ex.com/widgets", "default", name), body=body, revision=revision)


def encode(cache: PresentedObjects, strategy: CountingStrategy, kept: Stored) -> JsonObject:
    shown: JsonObject = msgspec.json.decode(cache.encode(cast("Strategy", strategy), kept))
    return shown


def test_an_object_is_presented_once_until_it_is_written_again():
    cache, strategy = PresentedObjects(), CountingStrategy()
    first, second = stored(), stored(revision=6, text="changed")
    assert encode(cache, strategy, first) == encode(cache, strategy, first) == {**first.decode_body(), "mark": "a"}
    assert strategy.presented == 1
    assert encode(cache, strategy, second)["text"] == "changed"
    assert strategy.presented == 2


def test_versions_and_changed_definitions_have_their_own_forms():
    cache, kept = PresentedObjects(), stored()
    old, new, other = CountingStrategy("old"), CountingStrategy("new"), CountingStrategy("b", "ex.com/v2")
    marks = [encode(cache, strategy, kept)["mark"] for strategy in (old, new, other, new, other)]
    assert marks == ["old", "new", "b", "new", "b"]
    assert (new.presented, other.presented) == (1, 1)


def test_a_revision_that_was_given_back_is_another_object():
    cache, strategy = PresentedObjects(), CountingStrategy()
    assert encode(cache, strategy, stored("a"))["metadata"]["name"] == "a"
    assert encode(cache, strategy, stored("b"))["metadata"]["name"] == "b"


def test_the_oldest_forms_are_evicted_when_there_are_too_many_bytes():
    cache, strategy = PresentedObjects(max_bytes=5_000), CountingStrategy()
    objects = [stored(revision=revision, text="x" * 1_000) for revision in (1, 2, 3)]
    for kept in (*objects, objects[2]):
        encode(cache, strategy, kept)
    assert strategy.presented == 3
    encode(cache, strategy, objects[0])
    assert strategy.presented == 4
    encode(cache, strategy, stored(revision=9, text="x" * 6_000))
    assert cache._bytes == len(cache._known) == 0


@pytest.fixture
def world() -> Iterator[ApiServerHarness]:
    with ApiServerHarness() as world:
        yield world


def define(*, default: str = "") -> JsonObject:
    described = {"type": "string", **({"default": default} if default else {})}
    spec = {"type": "object", "properties": {"v": described, "size": {"type": "integer"}}}
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}},
    }
    names = {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.ex.com"},
        "spec": {"group": "ex.com", "scope": "Namespaced", "names": names, "versions": [version]},
    }


def test_a_new_default_is_in_lists_gets_and_changes_of_objects_that_were_shown_before(world: ApiServerHarness):
    world.made(CRDS, define())
    widget = {"apiVersion": "ex.com/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": {"size": 1}}
    world.made(WIDGETS, widget)
    for url in (WIDGETS, f"{WIDGETS}/w"):
        assert "v" not in str(world.ask("GET", url).body.get("spec", {}))
    versions = define(default="new")["spec"]["versions"]
    assert world.ask("PATCH", f"{CRDS}/widgets.ex.com", {"spec": {"versions": versions}}, content=MERGE).status == 200
    assert world.ask("GET", f"{WIDGETS}/w").body["spec"] == {"size": 1, "v": "new"}
    assert [item["spec"] for item in world.ask("GET", WIDGETS).body["items"]] == [{"size": 1, "v": "new"}]
    changed = world.ask("PATCH", f"{WIDGETS}/w", {"spec": {"size": 2}}, content=MERGE).body
    assert changed["spec"] == {"size": 2, "v": "new"}
    assert [item["spec"] for item in world.ask("GET", WIDGETS).body["items"]] == [{"size": 2, "v": "new"}]
