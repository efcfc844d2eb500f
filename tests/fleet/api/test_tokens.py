"""Every route with every token that must not open it. The routes come from the application, so none is forgotten."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from typing import TYPE_CHECKING, Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from plimsoll.fleet.api.errors import BASE_PATH
from plimsoll.fleet.api.operations import Group
from plimsoll.fleet.api.ports import RateLimit
from plimsoll.fleet.auth.claims import Caller
from plimsoll.fleet.auth.issuer import Realm, UserIdentity, build_issuer_url
from plimsoll.fleet.auth.issuer_keys import RETIREMENT_S, load_private_key
from plimsoll.fleet.auth.key_sets import KeyFile
from plimsoll.fleet.auth.verification import TokenRefused
from plimsoll.fleet.model.access import AccessPolicy
from tests.fleet.api.api_world import ADMIN_ROLE, ISSUER_URL, ApiWorld

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from plimsoll.fleet.api.operations import Operation
    from tests.fleet.api.api_world import Answer

UNAUTHENTICATED = (401, "15")
ABSENT = (404, "7")
REALMS = {Group.PUBLIC: Realm.PUBLIC, Group.AGENT: Realm.AGENT, Group.ADMIN: Realm.ADMIN}
OPEN_PATHS = {"", "/openapi", "/errors", "/errors/{id}", "/sso_providers"}
OTHER_KEY_ID = "key of another issuer"
HOUR_S = 3600
WRONG_KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)


class Tokens:
    """Tokens that are right in everything but one thing."""

    def __init__(self, world: ApiWorld) -> None:
        self.world = world
        self.kafka_id = world.create("orders").document["id"]
        world.add_cluster("a")
        world.add_cluster("b")
        world.add_cluster("blank", client_id="", client_secret="")

    @property
    def guarded(self) -> list[Operation]:
        return [operation for operation in self.world.api.operations if operation.group is not Group.OPEN]

    def claims(self, group: Group, **changes: Any) -> dict[str, Any]:
        """What the issuer would sign for a caller that the group admits."""
        now_s = int(self.world.clock.now().timestamp())
        claims: dict[str, Any] = {
            "iss": build_issuer_url(ISSUER_URL, REALMS[group]),
            "aud": "plimsoll-fleet",
            "iat": now_s,
            "nbf": now_s,
            "exp": now_s + HOUR_S,
            "username": "alice",
            "org_id": "org-1",
            "clientId": "agent-a",
            "realm_access": {"roles": [ADMIN_ROLE.upper()]},
        }
        return {name: value for name, value in (claims | changes).items() if value is not None}

    def sign(self, group: Group, *, key: Any = None, key_id: str = "", **changes: Any) -> str:
        own = self.world.issuer.keys.get_signing_key()
        private = key or load_private_key(own.pem)
        return jwt.encode(self.claims(group, **changes), private, "RS256", headers={"kid": key_id or own.id})

    def sign_by_hand(self, group: Group, algorithm: str, secret: bytes) -> str:
        """PyJWT refuses to make such tokens."""
        header = {"alg": algorithm, "typ": "JWT", "kid": self.world.issuer.keys.get_signing_key().id}
        parts = [encode(json.dumps(part).encode()) for part in (header, self.claims(group))]
        signature = hmac.new(secret, ".".join(parts).encode(), hashlib.sha256).digest() if secret else b""
        return ".".join([*parts, encode(signature)])

    def call(self, operation: Operation, token: str, *, cluster_id: str = "cid-a") -> Answer:
        ids = {
            "/agent-clusters": cluster_id,
            "/admin/clusters": "a",
            "/cloud_providers": "aws",
            "/kafkas": self.kafka_id,
            "/admin/kafkas": self.kafka_id,
        }
        row_id = next((value for prefix, value in ids.items() if operation.path.startswith(prefix)), "7")
        path = operation.path.replace("{id}", row_id).format(cloud_provider="aws", cloud_region="us-east-1")
        return self.world.call(operation.method, path, {}, token=token, query="async=true")


def encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


@pytest.fixture(scope="module")
def tokens(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tokens]:
    """The keys of another issuer are known as well."""
    file = tmp_path_factory.mktemp("keys") / "jwks.json"
    public = jwt.algorithms.RSAAlgorithm.to_jwk(WRONG_KEY.public_key(), as_dict=True)
    file.write_text(json.dumps({"keys": [{**public, "kid": OTHER_KEY_ID}]}))
    world = ApiWorld(other_keys=[KeyFile(file)])
    yield Tokens(world)
    world.close()


def find_other_answers(
    tokens: Tokens, make: Callable[[Group], str], expected: Callable[[Group], tuple[int, str] | None]
) -> list[str]:
    """The routes that answer something else."""
    found = []
    for operation in tokens.guarded:
        wanted = expected(operation.group)
        answer = None if wanted is None else tokens.call(operation, make(operation.group))
        if answer is not None and (answer.status, answer.code) != wanted:
            found.append(f"{operation.method} {operation.path}: {answer.status} {answer.code}")
    return found


def make_public_pem(tokens: Tokens) -> bytes:
    private = load_private_key(tokens.world.issuer.keys.get_signing_key().pem)
    return private.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


def test_every_route_is_in_the_table_and_only_the_descriptions_are_open(tokens: Tokens):
    table = {(operation.method, operation.full_path) for operation in tokens.world.api.operations}
    root = ("GET", BASE_PATH.rpartition("/")[0])
    assert set(tokens.world.api.list_routes()) == {*table, root}
    assert {op.path for op in tokens.world.api.operations if op.group is Group.OPEN} == OPEN_PATHS
    for operation in tokens.world.api.operations:
        if operation.group is Group.OPEN:
            assert tokens.call(operation, "").status == 200
    assert tokens.world.call("GET", root[1]).status == 200


def test_valid_tokens_open_every_route(tokens: Tokens):
    for operation in tokens.guarded:
        if operation.method in {"GET", "PUT"}:
            assert tokens.call(operation, tokens.sign(operation.group)).status in {200, 204}, operation.path
        else:
            assert tokens.call(operation, tokens.sign(operation.group)).status != 401, operation.path


UNAUTHENTICATED_TOKENS: dict[str, Callable[[Tokens, Group], str]] = {
    "missing": lambda _tokens, _group: "",
    "no JWT": lambda _tokens, _group: "token",
    "no object": lambda _tokens, _group: "e30.W10.AAAA",
    "expired": lambda tokens, group: tokens.sign(group, exp=tokens.claims(group)["iat"] - 60),
    "without expiry": lambda tokens, group: tokens.sign(group, exp=None),
    "never expiring": lambda tokens, group: tokens.sign(group, exp=10**400),
    "not yet valid": lambda tokens, group: tokens.sign(group, nbf=tokens.claims(group)["iat"] + 60),
    "wrongly signed": lambda tokens, group: tokens.sign(group, key=WRONG_KEY),
    "signed by another issuer": lambda tokens, group: tokens.sign(group, key=WRONG_KEY, key_id=OTHER_KEY_ID),
    "changed": lambda tokens, group: swap_claims(tokens.sign(group), tokens.claims(group, username="root")),
    "alg none": lambda tokens, group: tokens.sign_by_hand(group, "none", b""),
    "HS256 with the public key": lambda tokens, group: tokens.sign_by_hand(group, "HS256", make_public_pem(tokens)),
    "wrong audience": lambda tokens, group: tokens.sign(group, aud="another"),
    "without audience": lambda tokens, group: tokens.sign(group, aud=None),
    "unknown key id": lambda tokens, group: tokens.sign(group, key_id="unknown"),
    "too long": lambda tokens, group: tokens.sign(group, padding="x" * 20_000),
}


def swap_claims(token: str, claims: dict[str, Any]) -> str:
    header, _, signature = token.split(".")
    return f"{header}.{encode(json.dumps(claims).encode())}.{signature}"


@pytest.mark.parametrize("kind", UNAUTHENTICATED_TOKENS)
def test_a_token_that_proves_nothing_is_401_on_every_route(tokens: Tokens, kind: str):
    make = UNAUTHENTICATED_TOKENS[kind]
    found = find_other_answers(tokens, lambda group: make(tokens, group), lambda _group: UNAUTHENTICATED)
    assert not found


def test_a_key_signs_for_its_own_issuers(tokens: Tokens):
    """The key of the other issuer is known, but it is good for other issuers only; ours is not."""
    theirs = tokens.sign(Group.PUBLIC, key=WRONG_KEY, key_id=OTHER_KEY_ID, iss="http://other.test")
    verify = tokens.world.ports.verifier.verify
    caller = tokens.world.run.run_until(verify(theirs))
    assert isinstance(caller, Caller)
    assert (caller.issuer, caller.user) == ("http://other.test", "alice")
    for refused, issuer in (
        (tokens.sign(Group.ADMIN, key=WRONG_KEY, key_id=OTHER_KEY_ID), build_issuer_url(ISSUER_URL, Realm.ADMIN)),
        (tokens.sign(Group.PUBLIC, iss="http://other.test"), "http://other.test"),
        (tokens.sign(Group.PUBLIC, iss="x" * 1000), "x" * 100),
    ):
        assert tokens.world.run.run_until(verify(refused)) == TokenRefused(
            problem=f"the key of the token does not sign for its issuer {issuer!r} here"
        )


@pytest.mark.parametrize("issuer", [*(build_issuer_url(ISSUER_URL, realm) for realm in Realm), "http://other.test", ""])
def test_a_token_of_another_issuer_opens_nothing(tokens: Tokens, issuer: str):
    def expect(group: Group) -> tuple[int, str] | None:
        if issuer == build_issuer_url(ISSUER_URL, REALMS[group]):
            return None
        return UNAUTHENTICATED if group is Group.PUBLIC else ABSENT

    is_own = issuer.startswith(ISSUER_URL)
    signed: dict[str, Any] = {} if is_own else {"key": WRONG_KEY, "key_id": OTHER_KEY_ID}
    assert not find_other_answers(tokens, lambda group: tokens.sign(group, iss=issuer, **signed), expect)


@pytest.mark.parametrize("claim", ["username", "org_id"])
@pytest.mark.parametrize("value", [None, "", 7, ["x"], "nul\x00", "x" * 300])
def test_a_user_without_a_name_or_an_organisation_is_401(tokens: Tokens, claim: str, value: Any):
    def expect(group: Group) -> tuple[int, str] | None:
        return UNAUTHENTICATED if group is Group.PUBLIC else None

    assert not find_other_answers(tokens, lambda group: tokens.sign(group, **{claim: value}), expect)


@pytest.mark.parametrize("client_id", ["agent-b", "agent-c", "", None, 7])
def test_f18_the_agent_of_another_cluster_finds_nothing(tokens: Tokens, client_id: object):
    agents = [operation for operation in tokens.guarded if operation.group is Group.AGENT]
    assert len(agents) == 4
    for operation in agents:
        for cluster_id in ("cid-a", "cid-blank", "unknown"):
            answer = tokens.call(operation, tokens.sign(Group.AGENT, clientId=client_id), cluster_id=cluster_id)
            assert (answer.status, answer.code) == ABSENT


@pytest.mark.parametrize("roles", [None, {}, {"roles": []}, {"roles": ["reader"]}, {"roles": "admin"}, "admin", [1]])
def test_an_administrator_without_a_role_finds_nothing(tokens: Tokens, roles: object):
    def expect(group: Group) -> tuple[int, str] | None:
        return ABSENT if group is Group.ADMIN else None

    assert not find_other_answers(tokens, lambda group: tokens.sign(group, realm_access=roles), expect)


def test_a_role_opens_the_methods_that_it_is_for(tokens: Tokens):
    token = tokens.world.admin_token("kas-fleet-manager-admin-read")
    for operation in tokens.guarded:
        if operation.group is Group.ADMIN:
            answer = tokens.call(operation, token)
            assert (answer.status == 200) is (operation.method == "GET"), operation.path


def test_another_organisation_sees_no_kafka(tokens: Tokens):
    found = []
    for operation in tokens.guarded:
        if operation.group is Group.PUBLIC and operation.path.startswith("/kafkas/{id}"):
            answer = tokens.call(operation, tokens.sign(Group.PUBLIC, org_id="org-2", is_org_admin=True))
            found.append((answer.status, answer.code))
    assert found
    assert set(found) == {ABSENT}


def test_lists_of_users_and_organisations_close_the_public_routes():
    identity = UserIdentity(user="alice", organisation="org-1")
    for access, expected in (
        (AccessPolicy(denied_users=frozenset({"alice"})), (403, "4")),
        (AccessPolicy(accepted_organisations=frozenset({"org-2"})), (403, "18")),
    ):
        world = ApiWorld(access=access)
        answer = world.call("GET", "/kafkas", token=world.user_token(identity))
        assert (answer.status, answer.code) == expected
        world.close()


def test_tokens_of_a_rotated_key_are_valid_until_it_is_withdrawn(tmp_path: Path):
    world = ApiWorld(key_file=tmp_path / "keys.json")
    old = world.user_token()
    assert world.call("GET", "/kafkas", token=old).status == 200
    withdrawn = load_private_key(world.issuer.keys.get_signing_key().pem)
    key_id = world.issuer.keys.get_signing_key().id
    assert world.issuer.keys.rotate().id != key_id
    world.run.advance_by(60)  # the verifier reads keys again for an unknown key id, but not at every request
    assert world.call("GET", "/kafkas", token=world.user_token()).status == 200
    assert world.call("GET", "/kafkas", token=old).status == 200

    world.run.advance_by(RETIREMENT_S)
    world.issuer.keys.rotate()
    world.run.advance_by(600)
    claims = jwt.decode(world.user_token(), options={"verify_signature": False})
    late = jwt.encode(claims, withdrawn, "RS256", headers={"kid": key_id})
    answer = world.call("GET", "/kafkas", token=late)
    assert (answer.status, answer.code) == UNAUTHENTICATED
    assert world.call("GET", "/kafkas", token=world.user_token()).status == 200
    world.close()


def test_requests_are_limited_per_token():
    world = ApiWorld(rate=RateLimit(per_second=20, burst=40))
    first, second = world.user_token(), world.user_token()
    assert first != second
    assert [world.call("GET", "/kafkas", token=first).status for _ in range(41)] == [200] * 40 + [429]
    limited = world.call("GET", "/kafkas", token=first)
    assert (limited.code, limited.headers["retry-after"]) == ("429", "1")
    assert world.call("GET", "/kafkas", token=second).status == 200
    world.run.advance_by(1)
    assert [world.call("GET", "/kafkas", token=first).status for _ in range(21)] == [200] * 20 + [429]
    world.close()


def test_a_token_in_two_headers_or_of_another_scheme_is_no_token(tokens: Tokens):
    token = tokens.sign(Group.PUBLIC)
    for value in (f"Basic {token}", token, f"Bearer  {token} {token}", "Bearer"):
        answer = tokens.world.call("GET", "/kafkas", headers={"authorization": value})
        assert (answer.status, answer.code) == UNAUTHENTICATED
        assert answer.headers["www-authenticate"] == "Bearer"
