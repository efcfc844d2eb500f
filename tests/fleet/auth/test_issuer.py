"""The built-in issuer over HTTP, and keys by URL and by file."""

from __future__ import annotations

import asyncio
import errno
import json
import shutil
from typing import TYPE_CHECKING
from urllib.parse import urlencode

import pytest

from plimsoll.core.errors import InvalidInput
from plimsoll.fleet.auth.claims import Caller
from plimsoll.fleet.auth.issuer import Realm, UserIdentity
from plimsoll.fleet.auth.issuer_keys import ROTATION_S, IssuerKeys
from plimsoll.fleet.auth.key_sets import REFRESH_S, SHORTEST_REFRESH_S, KeyAddress, KeyFile, KeySet, parse_key_set
from plimsoll.fleet.auth.verification import TokenVerifier
from plimsoll.runtime.entropy import SeededEntropy
from plimsoll.web.asgi_client import AsgiClient
from plimsoll.web.client import Request, RequestFailed
from plimsoll.web.client import Response as WebResponse
from tests.fleet.api.api_world import ISSUER_URL, ApiWorld, make_key_folder
from tests.fleet.fleet_rows import NOW
from tests.fleet.store.databases import SetClock

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

FORM = "application/x-www-form-urlencoded"
GRANT = {"grant_type": "client_credentials"}


@pytest.fixture
def world(tmp_path: Path) -> Iterator[ApiWorld]:
    """With a key file of its own, which begins with the key of all tests."""
    shared = IssuerKeys(make_key_folder() / "keys.json", clock=SetClock(NOW), entropy=SeededEntropy(1))
    shared.get_signing_key()
    shutil.copy(make_key_folder() / "keys.json", tmp_path)
    world = ApiWorld(key_file=tmp_path / "keys.json")
    yield world
    world.close()


class CountingClient:
    """Counts requests, and loses answers on demand."""

    def __init__(self, inner: AsgiClient) -> None:
        self._inner = inner
        self.requests = 0
        self.is_lost = False

    async def send(self, request: Request) -> WebResponse | RequestFailed:
        self.requests += 1
        return RequestFailed(problem="lost") if self.is_lost else await self._inner.send(request)


@pytest.mark.parametrize("realm", list(Realm))
def test_a_realm_is_discovered(world: ApiWorld, realm: Realm):
    answer = world.call("GET", f"/auth/{realm}/.well-known/openid-configuration")
    assert answer.document["issuer"] == f"{ISSUER_URL}/{realm}"
    keys = world.call("GET", answer.document["jwks_uri"].removeprefix("http://fleet.test")).document
    assert [key["alg"] for key in keys["keys"]] == ["RS256"]
    assert {"d", "p", "q"}.isdisjoint(keys["keys"][0])
    assert ("token_endpoint" in answer.document) is (realm is Realm.AGENT)


def test_an_agent_gets_a_token_for_its_credentials(world: ApiWorld):
    cluster = world.add_cluster()
    form = urlencode({**GRANT, "client_id": cluster.client_id, "client_secret": cluster.client_secret}).encode()
    answer = world.call("POST", "/auth/agent/token", raw=form, headers={"content-type": FORM})
    assert (answer.status, answer.document["token_type"]) == (200, "Bearer")
    token = answer.document["access_token"]
    assert world.call("GET", f"/agent-clusters/{cluster.cluster_id}", token=token).status == 200
    world.run.advance_by(answer.document["expires_in"] + 60)
    assert world.call("GET", f"/agent-clusters/{cluster.cluster_id}", token=token).status == 401


@pytest.mark.parametrize(
    ("fields", "status", "error"),
    [
        ({"client_id": "agent-a", "client_secret": "wrong"}, 401, "invalid_client"),
        ({"client_id": "agent-a", "client_secret": ""}, 401, "invalid_client"),
        ({"client_id": "agent-a"}, 401, "invalid_client"),
        ({"client_id": "", "client_secret": ""}, 401, "invalid_client"),
        ({"client_id": "unknown", "client_secret": "x"}, 401, "invalid_client"),
        ({"client_id": "agent-a\x00", "client_secret": "x"}, 401, "invalid_client"),
        ({"client_id": "agent-blank", "client_secret": ""}, 401, "invalid_client"),
        ({"grant_type": "password", "client_id": "agent-a"}, 400, "unsupported_grant_type"),
    ],
)
def test_wrong_credentials_get_no_token(world: ApiWorld, fields: dict[str, str], status: int, error: str):
    world.add_cluster()
    world.add_cluster("blank", client_secret="")
    answer = world.call("POST", "/auth/agent/token", raw=urlencode(GRANT | fields).encode())
    assert (answer.status, answer.document) == (status, {"error": error})


@pytest.mark.parametrize("raw", [b"\xff", b"a=%ff&" * 3, b"&".join(b"a=1" for _ in range(100)), b"x" * 20_000])
def test_a_form_that_cannot_be_read_gets_no_token(world: ApiWorld, raw: bytes):
    assert world.call("POST", "/auth/agent/token", raw=raw).status in {400, 413}


def test_keys_by_url_are_read_again_for_an_unknown_key_but_not_each_time(world: ApiWorld):
    web = CountingClient(AsgiClient(world.api.application))
    keys = KeySet([KeyAddress(f"{ISSUER_URL}/public/keys", web=web)], clock=world.clock)
    verifier = TokenVerifier(keys, audience="plimsoll-fleet", clock=world.clock)

    def is_valid(token: str) -> bool:
        return isinstance(world.run.run_until(verifier.verify(token)), Caller)

    assert is_valid(world.user_token())
    assert web.requests == 1
    world.issuer.keys.rotate()
    rotated = world.user_token()
    assert not any(is_valid(rotated) for _ in range(5))
    assert web.requests == 1
    world.run.advance_by(SHORTEST_REFRESH_S)
    assert is_valid(rotated)
    assert web.requests == 2
    world.run.advance_by(REFRESH_S)
    web.is_lost = True
    assert is_valid(rotated)
    assert web.requests == 3


def test_requests_wait_for_the_keys_that_are_being_read(world: ApiWorld):
    """The first requests after a start come before the issuer has answered: none of them is refused."""
    source = SlowSource(world.issuer.keys.build_key_set())
    keys = KeySet([source], clock=world.clock)
    key_id = world.issuer.keys.get_signing_key().id

    async def ask_at_once() -> list[object]:
        asked = [asyncio.create_task(keys.find_key(name)) for name in (key_id, key_id, "unknown")]
        await world.clock.sleep(SHORTEST_REFRESH_S * 2)
        assert not any(task.done() for task in asked)
        source.answer.set()
        return await asyncio.gather(*asked)

    first, second, unknown = world.run.run_until(ask_at_once())
    assert first is second is not None
    assert unknown is None
    assert source.reads == 1


def test_known_keys_are_served_while_they_are_read_again(world: ApiWorld):
    source = SlowSource(world.issuer.keys.build_key_set())
    source.answer.set()
    keys = KeySet([source], clock=world.clock)
    key_id = world.issuer.keys.get_signing_key().id
    assert world.run.run_until(keys.find_key(key_id)) is not None

    async def ask_at_once() -> None:
        source.answer.clear()
        await world.clock.sleep(REFRESH_S)
        reading = asyncio.create_task(keys.find_key("unknown"))
        await asyncio.sleep(0)
        assert await keys.find_key(key_id) is not None
        source.answer.set()
        assert await reading is None

    world.run.run_until(ask_at_once())
    assert source.reads == 2


class SlowSource:
    """A JWKS document that comes when a test lets it."""

    name = "slow"

    def __init__(self, document: bytes) -> None:
        self._document = document
        self.answer = asyncio.Event()
        self.reads = 0

    async def read(self) -> bytes:
        self.reads += 1
        await self.answer.wait()
        return self._document


def test_keys_by_file_follow_the_file(world: ApiWorld, tmp_path: Path):
    file = tmp_path / "jwks.json"
    keys = KeySet([KeyFile(file)], clock=world.clock)
    key_id = world.issuer.keys.get_signing_key().id
    assert world.run.run_until(keys.find_key(key_id)) is None
    file.write_bytes(world.issuer.keys.build_key_set())
    world.run.advance_by(SHORTEST_REFRESH_S)
    assert world.run.run_until(keys.find_key(key_id)) is not None


@pytest.mark.parametrize(
    "document", [b"", b"[]", b"{}", b'{"keys": 7}', b"\xff", b"[" * 100_000, b'{"keys": null}', b"null"]
)
def test_what_is_no_key_set_has_no_keys(document: bytes):
    assert parse_key_set(document) is None


@pytest.mark.parametrize(
    "change",
    [{"kty": "oct", "k": "AAAA"}, {"use": "enc"}, {"alg": "HS256"}, {"kid": 7}, {"n": "AQAB"}, {"n": 7}, {"e": "!"}],
)
def test_keys_that_do_not_sign_are_left_out(world: ApiWorld, change: dict[str, object]):
    (key,) = json.loads(world.issuer.keys.build_key_set())["keys"]
    document = json.dumps({"keys": [key | change, "odd", key | {"kid": "good"}]}).encode()
    assert list(parse_key_set(document) or ()) == ["good"]


def test_an_old_key_is_replaced_and_the_file_is_private(tmp_path: Path, world: ApiWorld):
    file = tmp_path / "own" / "keys.json"
    keys = IssuerKeys(file, clock=world.clock, entropy=SeededEntropy(1))
    first = keys.get_signing_key()
    assert file.stat().st_mode & 0o077 == 0
    assert IssuerKeys(file, clock=world.clock, entropy=SeededEntropy(2)).get_signing_key() == first
    world.run.advance_by(ROTATION_S)
    second = keys.get_signing_key()
    assert second.id != first.id
    assert len(json.loads(keys.build_key_set())["keys"]) == 2


def test_a_key_file_that_cannot_be_read_is_named(tmp_path: Path, world: ApiWorld):
    file = tmp_path / "broken.json"
    file.write_text("{")
    with pytest.raises(InvalidInput) as caught:
        IssuerKeys(file, clock=world.clock, entropy=SeededEntropy(1)).get_signing_key()
    assert caught.value.path == str(file)


def test_a_key_that_cannot_be_replaced_signs_on(tmp_path: Path, world: ApiWorld, monkeypatch: pytest.MonkeyPatch):
    """A full disk, or a directory that is read-only."""
    file = tmp_path / "own" / "keys.json"
    keys = IssuerKeys(file, clock=world.clock, entropy=SeededEntropy(1))
    first = keys.get_signing_key()
    world.run.advance_by(ROTATION_S)

    def fail(*_arguments: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("plimsoll.fleet.auth.issuer_keys.replace_file", fail)
    assert keys.get_signing_key() == first
    assert len(json.loads(keys.build_key_set())["keys"]) == 1
    monkeypatch.undo()
    assert keys.get_signing_key().id != first.id


def test_a_damaged_key_file_leaves_the_keys_that_are_known(tmp_path: Path, world: ApiWorld):
    token = world.user_token()
    assert world.call("GET", "/kafkas", token=token).status == 200
    world.issuer.keys.get_signing_key()
    (tmp_path / "keys.json").write_text("{")
    world.run.advance_by(REFRESH_S)
    assert world.call("GET", "/kafkas", token=token).status == 200
    answer = world.call("POST", "/auth/agent/token")
    assert answer.status != 200


def test_a_token_does_not_outlive_its_key(world: ApiWorld):
    with pytest.raises(InvalidInput):
        world.issuer.issue_user_token(UserIdentity(user="alice"), lifetime_s=10**6)
