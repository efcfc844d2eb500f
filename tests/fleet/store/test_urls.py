"""Addresses of databases: what they mean, and that no text shows a password."""

from __future__ import annotations

from pathlib import Path

import pytest

from plimsoll.core.errors import InvalidInput
from plimsoll.fleet.errors import DatabaseUnreachable
from plimsoll.fleet.store.database import open_database
from plimsoll.fleet.store.urls import parse_url
from plimsoll.runtime.clocks import RealClock


@pytest.mark.parametrize(
    ("url", "file"),
    [
        ("sqlite://", None),
        ("sqlite:///:memory:", None),
        ("sqlite:///var/fleet.sqlite3", Path("var/fleet.sqlite3")),
        ("sqlite:////var/fleet.sqlite3", Path("/var/fleet.sqlite3")),
        (" sqlite:///a.sqlite3\n", Path("a.sqlite3")),
    ],
)
def test_sqlite(url: str, file: Path | None):
    address = parse_url(url)
    assert (address.file, address.is_postgresql, address.is_memory) == (file, False, file is None)


@pytest.mark.parametrize("scheme", ["postgresql", "postgres", "postgresql+psycopg"])
def test_postgresql(scheme: str):
    address = parse_url(f"{scheme}://ann:s3cret@db.example:5433/fleet?sslmode=require")
    assert address.is_postgresql
    assert not address.is_memory
    assert str(address) == repr(address) == "postgresql://ann@db.example:5433/fleet"


@pytest.mark.parametrize(
    "url",
    [
        "",
        "fleet.sqlite3",
        "mysql://ann:s3cret@db/fleet",
        "postgresql://ann:s3cret@db",
        "postgresql://ann:s3cret@db:port/fleet",
        "sqlite://s3cret/fleet",
        "sqlite:///fleet?password=s3cret",
        "s3cret",
    ],
)
def test_other_addresses_are_refused_without_repeating_them(url: str):
    with pytest.raises(InvalidInput, match="database-url") as raised:
        parse_url(url)
    assert "s3cret" not in str(raised.value)
    assert raised.value.__cause__ is None


def test_the_text_of_a_driver_loses_the_password():
    for url in ("postgresql://ann:s3cret@db/fleet", "postgresql://ann@db/fleet?password=s3cret"):
        assert parse_url(url).hide_password("s3cret? no: s3cret") == "***? no: ***"


def test_a_server_that_is_not_there_is_unreachable():
    with pytest.raises(DatabaseUnreachable) as raised:
        open_database("postgresql://ann:s3cret@127.0.0.1:9/fleet", clock=RealClock())
    assert "s3cret" not in str(raised.value)
    assert "127.0.0.1" in str(raised.value)
    assert not raised.value.may_have_committed
    assert raised.value.exit_code == 4


def test_a_file_that_cannot_be_opened_says_so(tmp_path: Path):
    (tmp_path / "fleet.sqlite3").mkdir()
    with pytest.raises(DatabaseUnreachable, match=r"fleet\.sqlite3"):
        open_database(f"sqlite:///{tmp_path}/fleet.sqlite3", clock=RealClock())


def test_a_file_that_is_no_database_says_so(tmp_path: Path):
    file = tmp_path / "fleet.sqlite3"
    file.write_text("this is text, and no database of any kind\n" * 100)
    with pytest.raises(InvalidInput, match=r"fleet\.sqlite3"):
        open_database(f"sqlite:///{file}", clock=RealClock())


def test_a_new_file_is_readable_by_its_owner_only(tmp_path: Path):
    file = tmp_path / "new" / "fleet.sqlite3"
    open_database(f"sqlite:///{file}", clock=RealClock()).close()
    assert file.stat().st_mode & 0o777 == 0o600
