"""No request gives a 5xx: addresses, bodies and searches that generators miss."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from plimsoll.fleet.api.application import FleetApi
from plimsoll.fleet.api.errors import BASE_PATH, ERRORS
from plimsoll.fleet.api.operations import Group
from plimsoll.fleet.errors import UnusableDatabase, UnusableKeys
from tests.fleet.api.api_world import ApiWorld

if TYPE_CHECKING:
    from collections.abc import Iterator

    from plimsoll.fleet.api.operations import Operation

MEBIBYTE = 1024 * 1024
UNTEXTS = ["%00", "%ED%A0%80", "%FF", "%C0%80", "a%00b"]


@pytest.fixture(scope="module")
def shared() -> Iterator[ApiWorld]:
    world = ApiWorld()
    world.add_cluster()
    yield world
    world.close()


def make_token(world: ApiWorld, group: Group) -> str:
    if group is Group.AGENT:
        return world.issuer.issue_agent_token("agent-a")
    return world.admin_token() if group is Group.ADMIN else world.user_token()


def fill(operation: Operation, value: str) -> str:
    path = operation.path.replace("{id}", value)
    return path.replace("{cloud_provider}", value).replace("{cloud_region}", value)


@pytest.mark.parametrize("text", UNTEXTS)
def test_text_that_is_none_is_refused_in_the_path_and_the_query_of_every_route(shared: ApiWorld, text: str):
    for operation in shared.api.operations:
        token = make_token(shared, operation.group)
        cluster_id = "cid-a" if operation.group is Group.AGENT else "x"
        asked = [(fill(operation, cluster_id), f"search={text}"), (fill(operation, cluster_id), f"{text}=1")]
        if "{" in operation.path:
            asked.append((fill(operation, text), ""))
        for path, query in asked:
            answer = shared.call(operation.method, path, {}, token=token, query=query)
            assert (answer.status, answer.code) == (400, "8"), f"{operation.method} {path} {query}"


@pytest.mark.parametrize(
    ("value", "code"),
    [
        (rb'"\u0000"', "8"),
        (rb'"\ud800"', "8"),
        (rb'"\uDFFF x"', "8"),
        (b'"\xed\xa0\x80"', "8"),
        (rb'{"x\u0000": 1}', "8"),
        (b"9223372036854775808", "8"),
        (b"-9223372036854775809", "8"),
        (b"9" * 10_000, "8"),
        (b"1e400", "8"),
        (b"NaN", "17"),
        (b"Infinity", "17"),
        (b"\xff", "17"),
        (b"", "17"),
        (b'"x', "17"),
        (b"[" * (MEBIBYTE - 100), "17"),
        (b'{"a":' * 100_000, "17"),
        (b"'x'", "17"),
    ],
)
def test_bodies_that_cannot_be_stored_are_refused_on_every_route_with_a_body(shared: ApiWorld, value: bytes, code: str):
    with_body = [operation for operation in shared.api.operations if operation.body is not None]
    assert len(with_body) >= 7
    kafka_id = shared.call("GET", "/kafkas", token=shared.user_token()).document["items"] or [
        shared.create("orders").document
    ]
    ids = {"/agent-clusters": "cid-a", "/admin/clusters": "a"}
    for operation in with_body:
        row_id = next((found for prefix, found in ids.items() if operation.path.startswith(prefix)), kafka_id[0]["id"])
        raw = b'{"name": ' + value + b"}"
        token = make_token(shared, operation.group)
        answer = shared.call(operation.method, fill(operation, row_id), raw=raw, token=token, query="async=true")
        assert (answer.status, answer.code) == (400, code), f"{operation.method} {operation.path}"


def test_an_escaped_backslash_before_u0000_is_text(shared: ApiWorld):
    raw = rb'{"name": "\\u0000"}'
    answer = shared.call("POST", "/kafkas", raw=raw, token=shared.user_token(), query="async=true")
    assert (answer.status, answer.code) == (400, "32")
    pair = rb'{"name": "\ud83d\ude00"}'
    answer = shared.call("POST", "/kafkas", raw=pair, token=shared.user_token(), query="async=true")
    assert (answer.status, answer.code) == (400, "32")


@pytest.mark.parametrize("document", [None, [], "x", 7, True, [[]], {"0": 1}])
def test_documents_of_another_shape_are_refused(shared: ApiWorld, document: object):
    raw = json.dumps(document).encode()
    for path in ("/kafkas", "/admin/clusters"):
        token = shared.admin_token() if "admin" in path else shared.user_token()
        answer = shared.call("POST", path, raw=raw, token=token, query="async=true")
        assert (answer.status, answer.code) == (400, "37")


def test_mistakes_of_a_body_are_named_together_in_our_words(shared: ApiWorld):
    raw = b'{"plan": 7, "nmae": "x", "reauthentication_enabled": "no"}'
    answer = shared.call("POST", "/kafkas", raw=raw, token=shared.user_token(), query="async=true")
    assert answer.document["reason"] == (
        "plan: must be a text; reauthentication_enabled: must be true or false; nmae: unknown key"
    )
    answer = shared.call("POST", "/kafkas", raw=b"[]", token=shared.user_token(), query="async=true")
    assert answer.document["reason"] == "body: must be a mapping"


def test_bodies_beyond_their_size_are_413(shared: ApiWorld):
    small, large = b" " * MEBIBYTE, b" " * (16 * MEBIBYTE)
    token, agent = shared.user_token(), make_token(shared, Group.AGENT)
    for headers in ({}, {"content-length": "999999999"}):
        answer = shared.call("POST", "/kafkas", raw=small + b"{}", token=token, query="async=true", headers=headers)
        assert (answer.status, answer.code) == (413, "21")
    assert shared.call("PUT", "/agent-clusters/cid-a/kafkas/status", raw=small + b"{}", token=agent).status == 200
    answer = shared.call("PUT", "/agent-clusters/cid-a/kafkas/status", raw=large + b"{}", token=agent)
    assert (answer.status, answer.code) == (413, "21")


def test_a_trailing_slash_gives_the_same_answer(shared: ApiWorld):
    for operation in shared.api.operations:
        token = make_token(shared, operation.group)
        path = fill(operation, "cid-a" if operation.group is Group.AGENT else "unknown")
        plain, slash = (shared.call(operation.method, found, {}, token=token) for found in (path, f"{path}/"))
        assert (slash.status, slash.code) == (plain.status, plain.code)
        assert slash.status not in {301, 302, 307, 308}


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "TRACE", "BREW"])
def test_405_names_all_methods_of_the_path(shared: ApiWorld, method: str):
    by_path: dict[str, set[str]] = {}
    for known, path in shared.api.list_routes():
        by_path.setdefault(path, set()).add(known)
    for path, methods in by_path.items():
        if method not in methods:
            filled = path.replace("{id}", "x").replace("{cloud_provider}", "x").replace("{cloud_region}", "x")
            answer = shared.call(method, filled)
            assert answer.status == 405, f"{method} {path}"
            assert {name.strip() for name in answer.headers["allow"].split(",")} == methods
            assert answer.code == "10" or method == "HEAD"


@pytest.mark.parametrize(
    "path",
    [
        "/clusters",
        "/clusters/x",
        "/clusters/x/addon_parameters",
        "/kafkas/x/promote",
        "/kafkas/x/metrics/query",
        "/kafkas/x/metrics/query_range",
        "/kafkas/x/metrics/federate",
        "/service_accounts",
        "/service_accounts/x",
        "/service_accounts/x/reset_credentials",
        "/obs-proxy-verification/x",
        "/admin/kafkas/x/revoke_tls_certificate",
    ],
)
@pytest.mark.parametrize("method", ["GET", "POST", "DELETE"])
def test_routes_out_of_scope_are_405(shared: ApiWorld, path: str, method: str):
    answer = shared.call(method, path, token=shared.user_token())
    assert (answer.status, answer.code, answer.headers["allow"]) == (405, "10", "")


@pytest.mark.parametrize("path", ["/api", "/api/kafkas_mgmt/v2", "/nothing", "/kafkas/x/y", "//", "/kafkas//x"])
def test_other_paths_are_404(shared: ApiWorld, path: str):
    answer = shared.call("GET", path, token=shared.user_token())
    assert (answer.status, answer.code) == (404, "7")


def test_errors_are_listed_and_carry_an_operation_id(shared: ApiWorld):
    listed = shared.call("GET", "/errors").document
    assert (listed["kind"], listed["total"]) == ("ErrorList", len(ERRORS))
    for item in listed["items"]:
        assert shared.call("GET", f"/errors/{item['id']}").document == item
        assert item["href"] == f"{BASE_PATH}/errors/{item['id']}"
    assert (shared.call("GET", "/errors/3").status, shared.call("GET", "/errors/007").code) == (404, "7")
    first, second = shared.call("GET", "/nothing"), shared.call("GET", "/nothing")
    assert first.document["operation_id"] == first.headers["x-operation-id"]
    assert first.document["operation_id"] != second.document["operation_id"]


def test_an_error_of_our_own_is_500_without_its_text(monkeypatch: pytest.MonkeyPatch):
    world = ApiWorld()

    async def fail(*_arguments: object) -> None:
        raise RuntimeError("a secret of a row")

    monkeypatch.setattr(world.store, "get_kafka", fail)
    answer = world.call("GET", "/kafkas/x", token=world.user_token())
    assert (answer.status, answer.code) == (500, "9")
    assert "secret" not in json.dumps(answer.document)
    world.close()


@pytest.mark.parametrize("error", [UnusableDatabase("the file is malformed"), UnusableKeys("there is no key")])
def test_a_damaged_database_is_no_mistake_of_the_caller(monkeypatch: pytest.MonkeyPatch, error: Exception):
    world = ApiWorld()

    async def fail(*_arguments: object) -> None:
        raise error

    monkeypatch.setattr(world.store, "get_kafka", fail)
    answer = world.call("GET", "/kafkas/x", token=world.user_token())
    assert (answer.status, answer.code) == (500, "9")
    assert str(error) not in json.dumps(answer.document)
    world.close()


def test_an_application_is_built_without_a_call(shared: ApiWorld):
    assert FleetApi(shared.ports).operations


def test_a_search_has_at_most_ten_joins(shared: ApiWorld):
    for comparisons, status in ((11, 200), (12, 400)):
        search = "%20and%20".join("name%20=%20x" for _ in range(comparisons))
        answer = shared.call("GET", "/kafkas", token=shared.user_token(), query=f"search={search}")
        assert (answer.status, answer.code) == (status, "" if status == 200 else "23")
