"""Secrets in rows: encrypted with keys that rotate, and in no text."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import text

from plimsoll.core.errors import InvalidInput
from plimsoll.fleet.errors import SecretUnreadable
from plimsoll.fleet.store.secrets import SecretKeys, create_key_file, read_key_file
from tests.fleet.store.databases import CHECK, KEYS, build_kafka, build_ready

if TYPE_CHECKING:
    from pathlib import Path

    from plimsoll.fleet.ports import FleetStore
    from plimsoll.fleet.store.database import FleetDatabase
    from tests.fleet.store.databases import DatabaseUnderTest

CLUSTER = build_ready(client_secret="s3cret-1")
KAFKA = build_kafka(canary_service_account_client_secret="s3cret-2")


async def fill(store: FleetStore) -> None:
    await store.insert_cluster(CLUSTER)
    await store.insert_kafka(KAFKA, CHECK)


def read_stored(opened: FleetDatabase) -> list[str]:
    statement = text(
        "SELECT client_secret FROM clusters UNION ALL SELECT canary_service_account_client_secret FROM kafka_requests"
    )
    return opened.transactions.run_reading(lambda connection: list(connection.execute(statement).scalars()))


def test_rows_hold_no_plain_secret(database: DatabaseUnderTest):
    async def story(opened: FleetDatabase) -> None:
        await fill(opened.store)
        stored = read_stored(opened)
        assert len(stored) == 2
        assert all(value.startswith("new:") and "s3cret" not in value for value in stored)
        assert await opened.store.get_cluster("a") == CLUSTER
        changed = await opened.store.change_cluster("a", {"client_secret": "other"}, statuses=[CLUSTER.status])
        assert changed is not None
        assert changed.client_secret == "other"
        await opened.store.change_cluster("a", {"client_secret": ""}, statuses=[CLUSTER.status])
        assert "" in read_stored(opened)

    database.play(story)


def test_the_text_of_a_row_shows_no_secret():
    assert "s3cret" not in f"{CLUSTER} {KAFKA!r} {[CLUSTER]}"
    assert "client_secret=***" in repr(CLUSTER)
    assert "b'nnn" not in repr(KEYS)


def test_keys_rotate(lasting: DatabaseUnderTest):
    old, both = SecretKeys({"old": b"o" * 32}), SecretKeys({"new": b"n" * 32, "old": b"o" * 32})
    with lasting.open(old) as opened:
        lasting.run(fill(opened.store))
        assert all(value.startswith("old:") for value in read_stored(opened))
    with lasting.open(both) as opened:
        assert lasting.run(opened.store.get_cluster("a")) == CLUSTER
        assert lasting.run(opened.rotate_secrets()) == 2
        assert lasting.run(opened.rotate_secrets()) == 0
        assert all(value.startswith("new:") for value in read_stored(opened))
    with lasting.open(SecretKeys({"new": b"n" * 32})) as opened:
        assert lasting.run(opened.store.get_kafka("k")) == KAFKA


@pytest.mark.parametrize(
    "keys", [SecretKeys({}), SecretKeys({"other": b"n" * 32}), SecretKeys({"new": b"x" * 32, "old": b"o" * 32})]
)
def test_a_database_whose_keys_are_missing_is_not_opened(lasting: DatabaseUnderTest, keys: SecretKeys):
    with lasting.open() as opened:
        lasting.run(fill(opened.store))
    with pytest.raises(SecretUnreadable, match="'new'"), lasting.open(keys):
        pass


def test_key_ids_are_compared_as_they_are_written(lasting: DatabaseUnderTest):
    """`_` is a wildcard of `like`."""
    with lasting.open(SecretKeys({"aXb": b"o" * 32})) as opened:
        lasting.run(fill(opened.store))
    with lasting.open(SecretKeys({"a_b": b"n" * 32, "aXb": b"o" * 32})) as opened:
        assert lasting.run(opened.rotate_secrets()) == 2
        assert all(value.startswith("a_b:") for value in read_stored(opened))


def test_without_a_key_no_secret_is_stored(database: DatabaseUnderTest):
    with database.open(SecretKeys({})) as opened:
        assert database.run(opened.store.insert_cluster(build_ready("b")))
        with pytest.raises(InvalidInput, match="secrets-key-file"):
            database.run(fill(opened.store))


def test_a_secret_of_another_row_or_with_another_key_is_refused():
    sealed = KEYS.encrypt("x", "clusters/a: client_secret")
    with pytest.raises(SecretUnreadable):
        KEYS.decrypt(sealed, "clusters/b: client_secret")
    with pytest.raises(SecretUnreadable):
        SecretKeys({"new": b"x" * 32}).decrypt(sealed, "clusters/a: client_secret")
    with pytest.raises(SecretUnreadable):
        KEYS.decrypt("new:???", "clusters/a: client_secret")
    assert KEYS.encrypt("x", "") != KEYS.encrypt("x", "")


def test_a_key_file_is_made_once_and_read(tmp_path: Path):
    file = tmp_path / "keys" / "secrets"
    create_key_file(file, "2026-01")
    made = file.read_text()
    create_key_file(file, "2026-02")
    assert file.read_text() == made
    assert file.stat().st_mode & 0o777 == 0o600
    keys = read_key_file(file)
    assert keys.newest == "2026-01"
    assert keys.decrypt(keys.encrypt("ä", "c"), "c") == "ä"


KEY = base64.b64encode(b"k" * 32).decode()


@pytest.mark.parametrize(
    "content",
    ["", "# only a comment\n", f"{KEY}\n", "a:short\n", f"a:{KEY[:-4]}\n", f"a b:{KEY}\n", f"a:{KEY}\na:{KEY}\n", "ä"],
)
def test_odd_key_files_are_refused_without_showing_a_key(tmp_path: Path, content: str):
    file = tmp_path / "keys"
    file.write_text(content)
    with pytest.raises(InvalidInput, match="secrets-key-file") as raised:
        read_key_file(file)
    assert KEY[:8] not in str(raised.value)


def test_a_key_file_that_is_not_there(tmp_path: Path):
    with pytest.raises(InvalidInput, match="secrets-key-file"):
        read_key_file(tmp_path / "none")
