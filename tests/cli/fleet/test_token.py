"""`plimsoll fleet token`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import jwt
import pytest

from plimsoll.fleet.auth.issuer_keys import KEYS_FILE, IssuerKeys
from plimsoll.fleet.auth.key_sets import parse_key_set
from plimsoll.runtime.clocks import RealClock
from plimsoll.runtime.entropy import SystemEntropy
from tests.cli.runner import plimsoll

if TYPE_CHECKING:
    from pathlib import Path

    from tests.golden.reviewed_sentences import ReviewedSentences


def test_a_token_is_signed_by_the_keys_of_the_service(tmp_path: Path):
    ended = plimsoll("fleet", "token", "--user", "alice", "--org", "1", "--org-admin", "--data", tmp_path)
    assert ended.returncode == 0, ended.stderr
    written = ended.stdout.strip()
    keys = parse_key_set(IssuerKeys(tmp_path / KEYS_FILE, clock=RealClock(), entropy=SystemEntropy()).build_key_set())
    assert keys is not None
    key = keys[jwt.get_unverified_header(written)["kid"]]
    claims = jwt.decode(written, key, ["RS256"], audience="plimsoll-fleet", issuer="http://127.0.0.1:8000/auth/public")
    assert (claims["username"], claims["org_id"], claims["is_org_admin"]) == ("alice", "1", True)
    assert claims["exp"] - claims["iat"] == 3600


def test_a_token_of_an_administrator_has_roles(tmp_path: Path):
    options = ("--admin", "--role", "reader", "--url", "https://fleet.example.com/", "--lifetime", "5m", "-o", "json")
    ended = plimsoll("fleet", "token", "--user", "root", "--data", tmp_path, *options)
    document = json.loads(ended.stdout)
    claims = jwt.decode(document["token"], options={"verify_signature": False})
    assert claims["realm_access"] == {"roles": ["reader"]}
    assert claims["iss"] == "https://fleet.example.com/auth/admin"
    assert (document["expiresInSeconds"], claims["exp"] - claims["iat"]) == (300, 300)


@pytest.mark.parametrize(
    "options",
    [(), ("--org", "1", "--role", "x"), ("--org", "1", "--lifetime", "x"), ("--org", "1", "--lifetime", "48h")],
)
def test_wrong_options_are_refused(tmp_path: Path, options: tuple[str, ...], reviewed: ReviewedSentences):
    ended = plimsoll("fleet", "token", "--user", "alice", "--data", tmp_path, *options)
    assert ended.returncode == 2
    reviewed(ended.stderr)
