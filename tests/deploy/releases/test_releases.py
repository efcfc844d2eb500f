"""The program opens the files of every release, with what was in them, and leaves files of newer programs alone."""

from __future__ import annotations

import asyncio
import hashlib
import json
import shutil
import sqlite3
from typing import TYPE_CHECKING

import pytest

import plimsoll
from plimsoll.journal.entries import Query
from plimsoll.journal.errors import JournalTooNew
from plimsoll.journal.journal_file import JOURNAL_FILE, JournalFile
from plimsoll.local.apiserver.in_process_server import open_in_directory
from plimsoll.local.apiserver.storage import SchemaTooNew
from plimsoll.objects.api.apiextensions import CustomResourceDefinition
from plimsoll.objects.api.core import ConfigMap
from plimsoll.objects.api.nodes import Node
from plimsoll.objects.api.provisioning_requests import ProvisioningRequest
from plimsoll.objects.schema.definition.checks import validate_definition
from plimsoll.objects.validation import list_shipped_definitions
from plimsoll.runtime.clocks import RealClock
from plimsoll.runtime.entropy import SeededEntropy
from tests.cli.runner import plimsoll as run_plimsoll
from tests.deploy.releases.release_files import (
    BOOKED,
    FLEET_FILE,
    JOURNAL_ENTRIES,
    PENDING,
    RELEASES,
    TAINT,
    make_client,
)

if TYPE_CHECKING:
    from pathlib import Path

NEWER = 9_999


@pytest.fixture(params=sorted(path.name for path in RELEASES.iterdir()))
def release(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A copy: opening migrates."""
    copy = tmp_path / "release"
    shutil.copytree(RELEASES / request.param, copy)
    copy.joinpath("data").chmod(0o700)
    for file in copy.rglob("*.sqlite3"):
        file.chmod(0o600)
    return copy


def make_newer(file: Path) -> str:
    """Raise the schema version of a file; returns the digest of the file."""
    with sqlite3.connect(file) as connection:
        connection.execute(f"PRAGMA user_version={NEWER}")
    connection.close()
    return hashlib.sha256(file.read_bytes()).hexdigest()


def test_this_release_has_its_files():
    assert (RELEASES / plimsoll.__version__).is_dir(), "python -m tests.deploy.releases.release_files"


async def check_objects(folder: Path) -> None:
    server = open_in_directory(folder, clock=RealClock(), entropy=SeededEntropy(2), ca_pem=b"")
    try:
        client = make_client(server.transport)
        node = await client.get(Node, "leaving")
        assert (TAINT["key"], TAINT["value"]) in [(taint.key, taint.value) for taint in node.spec.taints]
        assert node.spec.unschedulable
        assert (await client.get(ConfigMap, "orders-7", namespace="team-a")).data == PENDING["data"]
        booked = await client.get(ProvisioningRequest, "training", namespace="team-a")
        assert [condition.type for condition in booked.status.conditions] == [BOOKED["type"]]
        patch = {"metadata": {"annotations": {"seen-by": plimsoll.__version__}}}
        await client.merge_patch(ProvisioningRequest, "training", patch, namespace="team-a")
        again = await client.get(ProvisioningRequest, "training", namespace="team-a")
        assert again.status == booked.status
    finally:
        await server.aclose()


def test_objects_are_as_they_were_and_can_be_changed(release: Path):
    asyncio.run(check_objects(release / "data"))
    asyncio.run(check_objects(release / "data"))


async def list_definitions(folder: Path) -> dict[str, bytes]:
    server = open_in_directory(folder, clock=RealClock(), entropy=SeededEntropy(2), ca_pem=b"")
    try:
        client = make_client(server.transport)
        found = await client.list(CustomResourceDefinition)
        names = [item.metadata.name for item in found.items]
        return {name: await client.get_raw(CustomResourceDefinition, name) for name in names}
    finally:
        await server.aclose()


def test_definitions_of_this_program_are_legal_updates_of_those_of_the_release(release: Path):
    stored = {name: json.loads(raw) for name, raw in asyncio.run(list_definitions(release / "data")).items()}
    shipped = {item.body["metadata"]["name"]: item.body for item in list_shipped_definitions()}
    assert set(stored) <= set(shipped), "a definition of a release is never dropped"
    for name, old in stored.items():
        metadata = {**old["metadata"], **shipped[name]["metadata"]}
        new = {**shipped[name], "metadata": metadata, "status": old.get("status", {})}
        assert not validate_definition(new, old), name
        served = {version["name"] for version in shipped[name]["spec"]["versions"]}
        assert set(old["status"]["storedVersions"]) <= served


def test_the_journal_goes_on(release: Path):
    journal = JournalFile(release / "data" / JOURNAL_FILE)
    numbers = [entry.number for entry in journal.list_entries(Query())]
    journal.close()
    assert numbers == list(range(JOURNAL_ENTRIES, 0, -1))


def test_the_database_of_a_fleet_is_migrated_with_its_rows(release: Path):
    url = f"sqlite:///{release / FLEET_FILE}"
    exported = run_plimsoll("fleet", "export", "--database-url", url, "--config-dir", "examples/fleet/config")
    assert exported.returncode == 0, exported.stderr
    assert "cluster_id: first" in exported.stdout or "id: first" in exported.stdout


def test_a_newer_journal_is_refused_and_stays_as_it_is(release: Path):
    file = release / "data" / JOURNAL_FILE
    before = make_newer(file)
    with pytest.raises(JournalTooNew, match="use the newer Plimsoll, or another data directory"):
        JournalFile(file)
    assert hashlib.sha256(file.read_bytes()).hexdigest() == before


def test_a_newer_store_is_refused_and_stays_as_it_is(release: Path):
    file = release / "data" / "objects.sqlite3"
    before = make_newer(file)
    with pytest.raises(SchemaTooNew, match="use the newer Plimsoll, or another data directory"):
        open_in_directory(release / "data", clock=RealClock(), entropy=SeededEntropy(1), ca_pem=b"")
    assert hashlib.sha256(file.read_bytes()).hexdigest() == before


def test_a_newer_database_of_a_fleet_is_refused_and_stays_as_it_is(release: Path):
    file = release / FLEET_FILE
    with sqlite3.connect(file) as connection:
        connection.execute("UPDATE alembic_version SET version_num='9999'")
    connection.close()
    before = hashlib.sha256(file.read_bytes()).hexdigest()
    refused = run_plimsoll("fleet", "export", "--database-url", f"sqlite:///{file}")
    assert refused.returncode == 2
    assert "use the newer Plimsoll, or restore a backup" in refused.stderr
    assert hashlib.sha256(file.read_bytes()).hexdigest() == before
