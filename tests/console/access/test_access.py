"""Who is served: a code works once, a session is for this console alone, and no other Host or Origin is."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.console.console_world import HOST, PORT, TOKEN, ConsoleWorld

if TYPE_CHECKING:
    from collections.abc import Iterator

SAMPLES = {"{number}": "1", "{thing:path}": "node/n1"}
CREDENTIALS = {
    "none": {},
    "a wrong token": {"authorization": "Bearer wrong"},
    "a token in another scheme": {"authorization": f"Basic {TOKEN}"},
    "an empty token": {"authorization": "Bearer "},
    "a wrong cookie": {"cookie": f"plimsoll-console-{PORT}=wrong"},
    "the cookie of another port": {"cookie": "plimsoll-console-9999=wrong"},
    "an empty cookie": {"cookie": f"plimsoll-console-{PORT}="},
}
FOREIGN = {
    "another host": ({"host": "evil.example"}, 403),
    "another host with our port": ({"host": f"evil.example:{PORT}"}, 403),
    "no host": ({"host": ""}, 403),
    "another origin": ({"origin": "http://evil.example"}, 403),
    "an opaque origin": ({"origin": "null"}, 403),
    "our origin by another scheme": ({"origin": f"https://{HOST}"}, 403),
}


@pytest.fixture(scope="module")
def world() -> Iterator[ConsoleWorld]:
    with ConsoleWorld() as made:
        yield made


def list_paths(world: ConsoleWorld) -> list[str]:
    paths = ["/api/map", "/api/changes", *world.console.paths]
    for written, sample in SAMPLES.items():
        paths = [path.replace(written, sample) for path in paths]
    return paths


def open_session(world: ConsoleWorld) -> str:
    code = world.console.sessions.issue_code()
    answer = world.call("POST", "/api/session", body={"code": code})
    assert answer.status == 200
    return answer.headers["set-cookie"]


@pytest.mark.parametrize("credentials", CREDENTIALS.values(), ids=CREDENTIALS.keys())
def test_no_route_serves_a_request_without_a_session_or_token(world: ConsoleWorld, credentials: dict[str, str]) -> None:
    paths = list_paths(world)
    assert len(paths) > 8
    for path in paths:
        assert world.call("GET", path, headers=credentials).status == 401, path


@pytest.mark.parametrize(("headers", "status"), FOREIGN.values(), ids=FOREIGN.keys())
def test_no_route_serves_another_host_or_origin(world: ConsoleWorld, headers: dict[str, str], status: int) -> None:
    for path in [*list_paths(world), "/", "/main.js", "/api/session"]:
        answer = world.call("GET", path, headers={"authorization": f"Bearer {TOKEN}", **headers})
        assert answer.status == status, path


def test_a_code_works_once(world: ConsoleWorld) -> None:
    code = world.console.sessions.issue_code()
    assert world.call("POST", "/api/session", body={"code": code}).status == 200
    assert world.call("POST", "/api/session", body={"code": code}).status == 403


@pytest.mark.parametrize("body", [None, {}, [], "text", {"code": 1}, {"code": ""}, {"code": "é"}, {"code": "x" * 900}])
def test_what_is_no_code_opens_nothing(world: ConsoleWorld, body: object) -> None:
    world.console.sessions.issue_code()
    assert world.call("POST", "/api/session", body=body).status == 403


def test_a_long_body_is_refused(world: ConsoleWorld) -> None:
    assert world.call("POST", "/api/session", body={"code": "x" * 5_000}).status == 413


def test_a_code_is_too_old_after_a_quarter_of_an_hour(world: ConsoleWorld) -> None:
    code = world.console.sessions.issue_code()
    world.run.advance_by(15 * 60)
    assert world.call("POST", "/api/session", body={"code": code}).status == 403


def test_the_cookie_is_strict_and_opens_the_routes_until_it_ends(world: ConsoleWorld) -> None:
    cookie = open_session(world)
    assert "; HttpOnly; SameSite=Strict; Path=/api" in cookie
    headers = {"cookie": cookie.partition(";")[0], "origin": f"http://{HOST}"}
    assert world.call("GET", "/api/overview", headers=headers).status == 200
    assert world.call("DELETE", "/api/session", headers=headers).status == 200
    assert world.call("GET", "/api/overview", headers=headers).status == 401


def test_a_session_ends_after_half_a_day(world: ConsoleWorld) -> None:
    headers = {"cookie": open_session(world).partition(";")[0]}
    world.run.advance_by(12 * 3_600)
    assert world.call("GET", "/api/overview", headers=headers).status == 401


def test_at_most_a_hundred_sessions_are_kept(world: ConsoleWorld) -> None:
    first = {"cookie": open_session(world).partition(";")[0]}
    for _ in range(100):
        newest = {"cookie": open_session(world).partition(";")[0]}
    assert world.call("GET", "/api/overview", headers=first).status == 401
    assert world.call("GET", "/api/overview", headers=newest).status == 200


def test_every_answer_forbids_foreign_scripts_and_frames(world: ConsoleWorld) -> None:
    for path in ("/", "/main.js", "/none", "/api/overview"):
        policy = world.call("GET", path).headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "script-src 'self';" in policy
        assert "frame-ancestors 'none'" in policy


@pytest.mark.parametrize(
    "path",
    ["/../pyproject.toml", "/%2e%2e/console.css", "/static/main.js", "/__init__.py", "/index.html/", "//main.js"],
)
def test_only_the_files_of_the_pages_are_served(world: ConsoleWorld, path: str) -> None:
    assert world.call("GET", path).status == 404


def test_the_console_changes_nothing(world: ConsoleWorld) -> None:
    headers = {"authorization": f"Bearer {TOKEN}"}
    for path in [*list_paths(world), "/"]:
        for method in ("POST", "PUT", "PATCH", "DELETE"):
            assert world.call(method, path, headers=headers).status == 405, path
