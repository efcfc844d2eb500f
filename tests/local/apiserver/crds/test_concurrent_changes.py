"""Definitions changed by several clients at once, or by one who goes in the middle; every write takes its time."""

from __future__ import annotations

import asyncio
import gc
import json
import weakref
from typing import TYPE_CHECKING, Any, ClassVar

import pytest

from plimsoll.local.apiserver.http_types import Request
from plimsoll.local.apiserver.storage import MemoryDriver
from tests.local.apiserver.builders import ADMIN, MERGE, ApiServerHarness, Reply, definition, read
from tests.narrowing import present

if TYPE_CHECKING:
    from plimsoll.local.apiserver.storage.drivers.interface import Write

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
WIDGETS = "/apis/ex.com/v1/namespaces/here/widgets"
WRITE_S = 0.01


class SlowDriver(MemoryDriver):
    """Others get a chance before a write is settled, as with a disk."""

    is_inline: ClassVar[bool] = False

    def submit(self, write: Write) -> None:
        asyncio.get_running_loop().call_later(WRITE_S, self._settle, ((write, None),))


@pytest.fixture
def world():
    with ApiServerHarness(driver=SlowDriver()) as made:
        made.namespace()
        yield made


def request(method: str, url: str, body: Any = None, *, content: str = "application/json") -> Request:
    headers = {"Authorization": f"Bearer {ADMIN}", "Content-Type": content, "User-Agent": "tester/1.0"}
    return Request.build(method, url, headers=headers, body=b"" if body is None else json.dumps(body).encode())


def together(world: ApiServerHarness, *requests: Request) -> list[Reply]:
    async def one(asked: Request) -> Reply:
        return await read(await world.application.handle(asked))

    async def all_of_them() -> list[Reply]:
        return await asyncio.gather(*map(one, requests))

    return world.run.run_until(all_of_them())


def given_up(world: ApiServerHarness, asked: Request, *, after_s: float) -> None:
    """Send a request, and be gone before it is answered."""
    task = world.run.loop.create_task(world.application.handle(asked))
    world.run.advance_by(after_s)
    assert task.cancel(), "it was answered already"
    world.run.advance_by(1.0)
    assert task.cancelled()


def widget(name: str = "w", **metadata: Any) -> dict[str, Any]:
    return {"apiVersion": "ex.com/v1", "kind": "Widget", "metadata": {"name": name, **metadata}}


def with_widgets(world: ApiServerHarness, count: int) -> None:
    world.made(CRDS, definition())
    for number in range(count):
        world.made(WIDGETS, widget(f"w{number}"))


def is_established(world: ApiServerHarness, name: str) -> bool:
    conditions = world.ask("GET", f"{CRDS}/{name}").body["status"]["conditions"]
    return {condition["type"]: condition["status"] for condition in conditions}["Established"] == "True"


@pytest.mark.parametrize("later_s", [0.0, WRITE_S / 2, WRITE_S, WRITE_S * 1.5])
def test_of_two_definitions_that_want_one_kind_at_once_one_gets_it(world: ApiServerHarness, later_s: float):
    first = world.run.spawn(world.application.handle(request("POST", CRDS, definition("widgetz"))))
    world.run.advance_by(later_s)
    second = world.run.spawn(world.application.handle(request("POST", CRDS, definition("widgets"))))
    assert [world.run.run_until(task).status for task in (first, second)] == [201, 201]
    assert [is_established(world, f"{plural}.ex.com") for plural in ("widgetz", "widgets")].count(True) == 1


@pytest.mark.parametrize("other", [f"{CRDS}/widgets.ex.com", WIDGETS, f"{WIDGETS}/w7"])
def test_a_definition_goes_while_another_client_deletes_too(world: ApiServerHarness, other: str):
    with_widgets(world, 20)
    replies = together(world, request("DELETE", f"{CRDS}/widgets.ex.com"), request("DELETE", other))
    assert replies[0].status == 200
    assert replies[1].status == 200
    assert world.ask("GET", f"{CRDS}/widgets.ex.com").status == 404
    assert world.server.store.count("ex.com/widgets") == 0


def test_a_definition_goes_with_the_finalizer_that_is_taken_off_meanwhile(world: ApiServerHarness):
    world.made(CRDS, definition())
    world.made(WIDGETS, widget(finalizers=["ex.com/hold"]))
    released = request("PATCH", f"{WIDGETS}/w", {"metadata": {"finalizers": None}}, content=MERGE)
    world.ask("DELETE", f"{WIDGETS}/w")
    together(world, request("DELETE", f"{CRDS}/widgets.ex.com"), released)
    assert world.ask("GET", f"{CRDS}/widgets.ex.com").status == 404


@pytest.mark.parametrize("after_s", [0.0, WRITE_S / 2, WRITE_S, WRITE_S * 1.5])
def test_what_is_served_follows_an_update_whose_client_is_gone(world: ApiServerHarness, after_s: float):
    world.made(CRDS, definition())
    body = world.ask("GET", f"{CRDS}/widgets.ex.com").body
    body["spec"]["versions"].append({**body["spec"]["versions"][0], "name": "v2", "storage": False})
    body["spec"]["names"]["shortNames"] = ["wd"]  # so that the update is followed by a write of the status
    given_up(world, request("PUT", f"{CRDS}/widgets.ex.com", body), after_s=after_s)
    assert world.ask("GET", "/apis/ex.com/v2/namespaces/here/widgets").status == 200


@pytest.mark.parametrize("after_s", [0.0, WRITE_S / 2, WRITE_S * 2.5])
def test_a_deletion_ends_although_its_client_is_gone(world: ApiServerHarness, after_s: float):
    with_widgets(world, 3)
    given_up(world, request("DELETE", f"{CRDS}/widgets.ex.com"), after_s=after_s)
    assert world.ask("GET", f"{CRDS}/widgets.ex.com").status == 404
    assert world.ask("GET", WIDGETS).status == 404


def test_a_creation_is_served_although_its_client_is_gone(world: ApiServerHarness):
    given_up(world, request("POST", CRDS, definition()), after_s=WRITE_S / 2)
    assert world.ask("GET", WIDGETS).status == 200


def test_what_was_deleted_before_a_collection_failed_is_followed(
    world: ApiServerHarness, monkeypatch: pytest.MonkeyPatch
):
    from plimsoll.local.apiserver.handlers import delete  # noqa: PLC0415 - the one name that is replaced
    from plimsoll.local.apiserver.registry.deletion import delete_object  # noqa: PLC0415 - as above

    world.made(CRDS, definition())
    world.made(CRDS, definition("zebras", kind="Zebra"))

    async def fails_at_zebras(server: Any, call: Any, options: Any) -> Any:
        if call.name == "zebras.ex.com":
            raise ValueError("half-way")
        return await delete_object(server, call, options)

    monkeypatch.setattr(delete, "delete_object", fails_at_zebras)
    assert world.ask("DELETE", CRDS).status == 500
    assert world.ask("GET", f"{CRDS}/widgets.ex.com").status == 404
    assert world.ask("GET", WIDGETS).status == 404
    assert world.ask("GET", f"{CRDS}/zebras.ex.com").status == 200


def test_objects_of_a_definition_without_served_versions_go_with_it(world: ApiServerHarness):
    with_widgets(world, 2)
    versions = [{**definition()["spec"]["versions"][0], "served": False}]
    world.ask("PATCH", f"{CRDS}/widgets.ex.com", {"spec": {"versions": versions}}, content=MERGE)
    world.ask("DELETE", f"{CRDS}/widgets.ex.com")
    assert world.server.store.count("ex.com/widgets") == 0
    assert world.ask("GET", f"{CRDS}/widgets.ex.com").status == 404


# ---- watches


def test_a_watch_ends_after_the_last_event_when_its_definition_is_gone(world: ApiServerHarness):
    with_widgets(world, 1)
    watching = world.watch(f"{WIDGETS}?watch=1")
    world.ask("DELETE", f"{CRDS}/widgets.ex.com")
    world.run.settle()
    assert watching.story == [("ADDED", "w0"), ("DELETED", "w0")]
    assert watching.has_ended


def test_a_watch_ends_when_its_definition_says_something_else(world: ApiServerHarness):
    with_widgets(world, 1)
    watching = world.watch(f"{WIDGETS}?watch=1&allowWatchBookmarks=true")
    names = {"names": {"shortNames": ["wd"]}}
    world.ask("PATCH", f"{CRDS}/widgets.ex.com", {"spec": names}, content=MERGE)
    world.run.settle()
    assert watching.has_ended


def test_a_watch_goes_on_when_only_labels_of_its_definition_change(world: ApiServerHarness):
    with_widgets(world, 1)
    watching = world.watch(f"{WIDGETS}?watch=1")
    world.ask("PATCH", f"{CRDS}/widgets.ex.com", {"metadata": {"labels": {"a": "b"}}}, content=MERGE)
    world.made(WIDGETS, widget("later"))
    world.run.settle()
    assert not watching.has_ended
    assert watching.story == [("ADDED", "w0"), ("ADDED", "later")]


def test_a_watch_of_another_definition_goes_on(world: ApiServerHarness):
    with_widgets(world, 1)
    world.made(CRDS, definition("zebras", kind="Zebra"))
    watching = world.watch(f"{WIDGETS}?watch=1")
    world.ask("DELETE", f"{CRDS}/zebras.ex.com")
    world.run.settle()
    assert not watching.has_ended


# ---- memory


def test_what_was_compiled_is_freed_when_a_definition_changes(world: ApiServerHarness):
    world.made(CRDS, definition())

    def compiled() -> weakref.ref[Any]:
        world.ask("GET", WIDGETS)  # whoever reads has its strategy made
        return weakref.ref(present(world.server.registry.find("ex.com", "v1", "widgets")).compiled)

    first = compiled()
    names = {"names": {"shortNames": ["wd"]}}
    world.ask("PATCH", f"{CRDS}/widgets.ex.com", {"spec": names}, content=MERGE)
    second = compiled()
    gc.collect()
    assert first() is None
    assert second() is not None
    world.ask("DELETE", f"{CRDS}/widgets.ex.com")
    gc.collect()
    assert second() is None
