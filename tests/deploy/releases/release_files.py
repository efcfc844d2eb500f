"""Files of a release, which later programs must open: made once, before the tag of the release.

`python -m tests.deploy.releases.release_files` writes tests/fixtures/releases/VERSION. A folder of a release that
exists is never written again: it is what that release wrote. Recordings of all releases are in
tests/fixtures/recordings.

The cluster in them is in the middle of its work: a node is tainted for its removal, a ProvisioningRequest has booked
room, the journal has an action without an outcome, and a fleet has a cluster with a Kafka.
"""

from __future__ import annotations

import asyncio
import shutil
import sys
from pathlib import Path
from typing import Any, Final

import plimsoll
from plimsoll.journal.journal_file import JOURNAL_FILE, JournalFile
from plimsoll.kube.client import Client
from plimsoll.kube.definition_installer import DefinitionInstaller
from plimsoll.kube.requests.options import ClientSettings
from plimsoll.local.apiserver.in_process_server import open_in_directory
from plimsoll.objects.api.core import ConfigMap, Namespace
from plimsoll.objects.api.nodes import Node
from plimsoll.objects.api.provisioning_requests import ProvisioningRequest
from plimsoll.objects.custom_kinds import OUR_KINDS
from plimsoll.objects.validation import list_shipped_definitions
from plimsoll.runtime.clocks import RealClock
from plimsoll.runtime.entropy import SeededEntropy
from tests.cli.runner import plimsoll as run_plimsoll
from tests.journal.builders import left, plan

REPOSITORY: Final = Path(__file__).parents[3]
RELEASES: Final = REPOSITORY / "tests" / "fixtures" / "releases"
FLEET_FILE: Final = "fleet.sqlite3"
TAINT: Final = {"key": "ToBeDeletedByClusterAutoscaler", "value": "1767225600", "effect": "NoSchedule"}
NODE: Final[dict[str, Any]] = {"metadata": {"name": "leaving"}, "spec": {"taints": [TAINT], "unschedulable": True}}
PENDING: Final[dict[str, Any]] = {"metadata": {"name": "orders-7"}, "data": {"state": "half done"}}
BOOKED: Final = {
    "type": "Provisioned",
    "status": "True",
    "reason": "Provisioned",
    "message": "capacity is booked",
    "lastTransitionTime": "2026-01-01T00:00:00Z",
}
REQUEST: Final[dict[str, Any]] = {
    "metadata": {"name": "training", "namespace": "team-a"},
    "spec": {
        "provisioningClassName": "best-effort-atomic-scale-up.autoscaling.x-k8s.io",
        "podSets": [{"podTemplateRef": {"name": "training"}, "count": 4}],
    },
}
JOURNAL_ENTRIES: Final = 3


def make_client(transport: Any) -> Client:
    return Client(
        transport, clock=RealClock(), entropy=SeededEntropy(1), settings=ClientSettings(qps=0), kinds=OUR_KINDS
    )


async def write_objects(folder: Path) -> None:
    """A store with all definitions and with objects in the middle of their way."""
    server = open_in_directory(folder, clock=RealClock(), entropy=SeededEntropy(1), ca_pem=b"")
    try:
        client = make_client(server.transport)
        installer = DefinitionInstaller(client, version=plimsoll.__version__, clock=RealClock())
        await installer.install([shipped.body for shipped in list_shipped_definitions()])
        await client.create(Namespace, {"metadata": {"name": "team-a"}})
        await client.create(Node, NODE)
        await client.create(ConfigMap, PENDING, namespace="team-a")
        await client.create(ProvisioningRequest, REQUEST, namespace="team-a")
        status = {"status": {"conditions": [BOOKED]}}
        await client.merge_patch(ProvisioningRequest, "training", status, namespace="team-a", subresource="status")
    finally:
        await server.aclose()


def write_journal(folder: Path) -> None:
    journal = JournalFile(folder / JOURNAL_FILE)
    for snapshot in range(1, JOURNAL_ENTRIES + 1):
        journal.append(plan(snapshot, not_done=(left("a"),)))
    journal.close()


def write_fleet(folder: Path) -> None:
    url = f"sqlite:///{folder / FLEET_FILE}"
    example = REPOSITORY / "examples" / "fleet" / "first-cluster.yaml"
    ended = run_plimsoll("fleet", "import", "-f", str(example), "--database-url", url)
    assert ended.returncode == 0, ended.stderr


def write_release(folder: Path) -> None:
    folder.mkdir(parents=True)
    asyncio.run(write_objects(folder / "data"))
    write_journal(folder / "data")
    write_fleet(folder)
    for left_over in ("pki", "admin.token", "signing.key", "objects.lock"):  # no key belongs into a repository
        path = folder / "data" / left_over
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)


if __name__ == "__main__":
    place = RELEASES / plimsoll.__version__
    if place.exists():
        sys.exit(f"{place} exists: files of a release are never written again")
    write_release(place)
