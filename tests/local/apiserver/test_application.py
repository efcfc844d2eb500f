from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING

import pytest

from plimsoll.local.apiserver.application import Application
from plimsoll.local.apiserver.http_types import Request
from plimsoll.local.apiserver.storage import SqliteDriver
from plimsoll.runtime.clocks import RealClock
from tests.local.apiserver.builders import ADMIN, GUEST, ApiServerHarness, config_map, definition, new_server, pod, read

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def world():
    with ApiServerHarness() as made:
        yield made


def test_a_wrong_token_is_refused_before_anything_else(world: ApiServerHarness):
    reply = world.ask("GET", "/apis/nowhere.example.com/v1/things", token="no such token")
    assert (reply.status, reply.body["reason"]) == (401, "Unauthorized")


def test_a_user_without_permission_does_not_learn_what_exists(world: ApiServerHarness):
    reply = world.ask("GET", "/apis/nowhere.example.com/v1/things", token=GUEST)
    assert (reply.status, reply.body["reason"]) == (403, "Forbidden")


def test_an_unknown_group_is_a_plain_page_and_an_unknown_resource_a_status(world: ApiServerHarness):
    page = world.ask("GET", "/apis/nowhere.example.com/v1/things")
    assert (page.status, page.body) == (404, "404 page not found\n")
    status = world.ask("GET", "/apis/apps/v1/things")
    assert (status.status, status.body["details"]) == (404, {})


def test_a_refusal_comes_in_the_media_type_of_the_request(world: ApiServerHarness):
    reply = world.ask("GET", "/api/v1/namespaces/none", headers={"Accept": "application/yaml"})
    assert reply.status == 404
    assert "reason: NotFound" in reply.body


def test_warnings_become_headers_also_of_a_refusal(world: ApiServerHarness):
    here = world.namespace()
    made = world.ask("POST", f"{here}/configmaps", config_map(extra=1))
    assert made.warnings == ('299 - "unknown field \\"extra\\""',)
    refused = world.ask("POST", f"{here}/configmaps", config_map(extra=1))
    assert (refused.status, refused.warnings) == (409, made.warnings)


def test_a_mistake_of_ours_is_a_500_without_details(world: ApiServerHarness, monkeypatch: pytest.MonkeyPatch):
    def broken(*_: object) -> None:
        raise ZeroDivisionError("secret detail")

    monkeypatch.setattr(world.server.store, "get", broken)
    reply = world.ask("GET", "/api/v1/namespaces/default")
    assert (reply.status, reply.body["reason"]) == (500, "InternalError")
    assert "secret" not in str(reply.body)


def test_a_fresh_server_holds_the_first_namespaces(world: ApiServerHarness):
    reply = world.ask("GET", "/api/v1/namespaces")
    names = [item["metadata"]["name"] for item in reply.body["items"]]
    assert names == ["default", "kube-node-lease", "kube-public", "kube-system"]


def test_what_was_deleted_from_a_store_with_a_past_does_not_come_back():
    with ApiServerHarness() as world:
        assert world.ask("DELETE", "/apis/scheduling.k8s.io/v1/priorityclasses/system-node-critical").status == 200
        again = Application(world.server)
        request = Request.build(
            "GET",
            "/apis/scheduling.k8s.io/v1/priorityclasses/system-node-critical",
            headers={"Authorization": f"Bearer {ADMIN}"},
        )
        assert world.run.run_until(again.handle(request)).status == 404


def test_everything_happens_in_the_loop_of_virtual_time(world: ApiServerHarness):
    """A thread, a socket or an executor would raise LeftVirtualTime."""
    here = world.namespace()
    world.made(f"{here}/pods", pod())
    world.made("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition())
    watching = world.watch(f"{here}/pods?watch=1&timeoutSeconds=90&allowWatchBookmarks=true")
    world.run.advance_by(91)
    assert watching.has_ended
    assert world.run.clock.monotonic_s() >= 91


def test_definitions_are_served_again_after_a_restart(tmp_path: Path):
    async def first() -> None:
        server = new_server(RealClock(), driver=SqliteDriver(tmp_path))
        application = Application(server)
        request = Request.build(
            "POST",
            "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
            headers={"Authorization": f"Bearer {ADMIN}"},
            body=json.dumps(definition()).encode(),
        )
        assert (await application.handle(request)).status == 201
        await server.store.aclose()

    async def second() -> int:
        server = new_server(RealClock(), driver=SqliteDriver(tmp_path))
        headers = {"Authorization": f"Bearer {ADMIN}"}
        answer = await Application(server).handle(Request.build("GET", "/apis/ex.com/v1/widgets", headers=headers))
        reply = await read(answer)
        await server.store.aclose()
        return reply.status

    asyncio.run(first())
    assert asyncio.run(second()) == 200
