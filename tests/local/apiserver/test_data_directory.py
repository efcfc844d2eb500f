from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from structlog.testing import capture_logs

from plimsoll.local.apiserver.data_directory import SCHEMA_VERSION, DataDirectory
from plimsoll.local.apiserver.storage import SchemaTooNew, StoreCorrupt, StoreInUse, StoreUnusable
from plimsoll.local.apiserver.storage.drivers.store_file import lock_directory
from plimsoll.runtime.entropy import SystemEntropy

if TYPE_CHECKING:
    from tests.golden.reviewed_sentences import ReviewedSentences

ENTROPY = SystemEntropy()


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


def test_a_new_directory_is_for_its_owner_only(tmp_path: Path):
    directory = DataDirectory(tmp_path / "deep" / "data")
    directory.load_admin_token(ENTROPY)
    directory.load_signing_key(ENTROPY)
    directory.write_kubeconfig(b"x")
    assert mode(directory.root) == 0o700
    assert {mode(file) for file in directory.root.iterdir() if file.is_file()} == {0o600}


@pytest.mark.parametrize("open_mode", [0o755, 0o750, 0o775, 0o777])
def test_a_directory_that_is_open_to_others_is_closed(tmp_path: Path, open_mode: int):
    root = tmp_path / "data"
    root.mkdir()
    root.chmod(open_mode)
    with capture_logs() as logs:
        DataDirectory(root)
    assert mode(root) == 0o700
    assert logs == [
        {
            "event": "data_directory.closed_to_others",
            "log_level": "warning",
            "path": str(root),
            "mode": f"{open_mode:04o}",
            "now": "0700",
        }
    ]


def test_a_store_that_is_open_to_others_is_closed(tmp_path: Path):
    tmp_path.chmod(0o700)
    (tmp_path / "pki").mkdir(mode=0o755)
    for name in ("objects.sqlite3", "objects.sqlite3-wal"):
        (tmp_path / name).touch()
        (tmp_path / name).chmod(0o644)
    with capture_logs() as logs:
        DataDirectory(tmp_path)
    assert mode(tmp_path / "pki") == 0o700
    assert {mode(tmp_path / name) for name in ("objects.sqlite3", "objects.sqlite3-wal")} == {0o600}
    assert [log["path"].removeprefix(f"{tmp_path}/") for log in logs] == [
        "pki",
        "objects.sqlite3",
        "objects.sqlite3-wal",
    ]


def test_keys_that_anyone_could_have_put_there_are_not_used(tmp_path: Path, reviewed: ReviewedSentences):
    DataDirectory(tmp_path).load_admin_token(ENTROPY)
    tmp_path.chmod(0o777)
    with pytest.raises(StoreUnusable) as raised:
        DataDirectory(tmp_path)
    reviewed(str(raised.value))


def test_an_empty_store_is_an_error_once_a_server_has_run(tmp_path: Path, reviewed: ReviewedSentences):
    directory = DataDirectory(tmp_path)
    (tmp_path / "objects.sqlite3").touch()
    directory.check_store()
    directory.write_kubeconfig(b"x")
    with pytest.raises(StoreCorrupt) as raised:
        directory.check_store()
    reviewed(str(raised.value))
    directory.forget_objects()
    directory.check_store()


def test_modes_do_not_depend_on_the_umask(tmp_path: Path):
    before = os.umask(0)
    try:
        directory = DataDirectory(tmp_path / "data")
        directory.load_admin_token(ENTROPY)
    finally:
        os.umask(before)
    assert (mode(directory.root), mode(directory.root / "admin.token")) == (0o700, 0o600)


def test_token_and_key_are_made_once(tmp_path: Path):
    first, second = DataDirectory(tmp_path), DataDirectory(tmp_path)
    assert first.load_admin_token(ENTROPY) == second.load_admin_token(ENTROPY)
    assert first.load_signing_key(ENTROPY) == second.load_signing_key(ENTROPY)
    assert first.load_admin_token(ENTROPY).encode() != first.load_signing_key(ENTROPY)
    assert len(first.load_signing_key(ENTROPY)) >= 32


@pytest.mark.parametrize("content", [b"", b"short", b"\xff" * 40, b"two\nlines" * 8])
def test_a_token_file_that_holds_none_is_named_with_what_to_do(
    tmp_path: Path, content: bytes, reviewed: ReviewedSentences
):
    directory = DataDirectory(tmp_path)
    (tmp_path / "admin.token").write_bytes(content)
    with pytest.raises(StoreCorrupt) as raised:
        directory.load_admin_token(ENTROPY)
    reviewed(str(raised.value))


def test_a_newer_layout_is_refused(tmp_path: Path):
    DataDirectory(tmp_path)
    DataDirectory(tmp_path)
    (tmp_path / "schema-version").write_text(f"{SCHEMA_VERSION + 1}\n")
    with pytest.raises(SchemaTooNew, match=rf"schema version {SCHEMA_VERSION + 1}, this Plimsoll reads"):
        DataDirectory(tmp_path)


def test_a_version_that_is_none_is_refused(tmp_path: Path, reviewed: ReviewedSentences):
    (tmp_path / "schema-version").write_text("new\n")
    with pytest.raises(StoreCorrupt) as raised:
        DataDirectory(tmp_path)
    reviewed(str(raised.value))


def test_a_file_in_its_place_is_reported_readably(tmp_path: Path, reviewed: ReviewedSentences):
    (tmp_path / "data").write_text("")
    with pytest.raises(StoreUnusable) as reported:
        DataDirectory(tmp_path / "data")
    reviewed(str(reported.value))
    assert reported.value.exit_code == 2


def test_a_place_that_cannot_be_written_is_reported_readably(reviewed: ReviewedSentences):
    with pytest.raises(StoreUnusable) as raised:
        DataDirectory(Path("/proc/plimsoll"))
    reviewed(str(raised.value))


def test_a_write_replaces_a_file_whole_and_follows_no_link(tmp_path: Path):
    directory = DataDirectory(tmp_path / "data")
    victim = tmp_path / "victim"
    victim.write_text("precious")
    (directory.root / ".kubeconfig.new").symlink_to(victim)
    (directory.root / "kubeconfig").symlink_to(victim)
    file = directory.write_kubeconfig(b"content")
    assert victim.read_text() == "precious"
    assert file.read_bytes() == b"content"
    assert not file.is_symlink()


def test_forgetting_objects_leaves_credentials(tmp_path: Path):
    directory = DataDirectory(tmp_path)
    token = directory.load_admin_token(ENTROPY)
    for suffix in ("", "-wal", "-shm"):
        (tmp_path / f"objects.sqlite3{suffix}").write_text("old")
    directory.forget_objects()
    directory.forget_objects()
    assert not list(tmp_path.glob("objects.sqlite3*"))
    assert directory.load_admin_token(ENTROPY) == token


def test_objects_in_use_are_not_forgotten(tmp_path: Path):
    directory = DataDirectory(tmp_path)
    (tmp_path / "objects.sqlite3").write_text("in use")
    lock = lock_directory(tmp_path)
    with pytest.raises(StoreInUse):
        directory.forget_objects()
    lock.release()
    assert (tmp_path / "objects.sqlite3").exists()
