"""`plimsoll fleet doctor`: problems of clusters, from a database that workers have filled."""

from __future__ import annotations

import asyncio
import json
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from plimsoll.fleet.model.provided import Orphan
from plimsoll.fleet.model.statuses import ClusterStatus
from plimsoll.fleet.planning.terraforming import write_problems
from plimsoll.fleet.store.database import open_database
from plimsoll.fleet.store.secrets import SecretKeys
from plimsoll.runtime.clocks import RealClock
from tests.cli.runner import plimsoll
from tests.fleet.fleet_rows import make_cluster

if TYPE_CHECKING:
    from pathlib import Path

    from plimsoll.fleet.model.clusters import Cluster
    from tests.cli.runner import CommandResult
    from tests.golden.reviewed_sentences import ReviewedSentences

ORPHAN = Orphan(provider="ocm", cluster_id="xyz", name="mk-lost", state="ready", region="us-east-1")


def run_doctor(folder: Path, clusters: list[Cluster], orphans: list[Orphan], *options: str) -> CommandResult:
    url = f"sqlite:///{folder / 'fleet.sqlite3'}"
    database = open_database(url, clock=RealClock(), keys=SecretKeys({"test": b"k" * 32}))

    async def fill() -> None:
        for cluster in clusters:
            assert await database.store.insert_cluster(cluster)
        await database.store.keep_orphans(orphans)

    asyncio.run(fill())
    database.close()
    return plimsoll("fleet", "doctor", "--database-url", url, *options)


def test_a_fleet_without_problems_is_well(tmp_path: Path):
    ended = run_doctor(tmp_path, [make_cluster("a", client_secret="hush")], [])
    assert (ended.returncode, ended.stdout) == (0, "no problems\n")


def test_every_kind_of_problem_is_listed(tmp_path: Path, reviewed: ReviewedSentences):
    now = RealClock().now()
    drifted = make_cluster("c")
    clusters = [
        make_cluster("a", status=ClusterStatus.FAILED, status_details="no quota"),
        make_cluster("b", last_report_at=now - timedelta(hours=1)),
        make_cluster("c", cluster_spec=write_problems(drifted, ("pool kafka-standard is missing at the provider",))),
        make_cluster("d", last_report_at=now),
        make_cluster("e", status=ClusterStatus.DEPROVISIONING, status_details="OCM answers 503"),
    ]
    ended = run_doctor(tmp_path, clusters, [ORPHAN], "-o", "json")
    assert ended.returncode == 1
    problems = json.loads(ended.stdout)["problems"]
    subjects = [problem["subject"] for problem in problems]
    assert subjects == ["cluster/a", "cluster/b", "cluster/c", "cluster/e", "orphan/mk-lost"]
    reviewed(*(problem["problem"] for problem in problems))


@pytest.mark.parametrize(
    ("options", "code"),
    [
        (("--database-url", "sqlite:////nowhere/fleet.sqlite3"), 2),
        (("--database-url", "sqlite:///x", "--fleet", "http://127.0.0.1:1"), 2),
        (("--agent-silence", "long"), 2),
        (("--fleet", "http://127.0.0.1:1"), 4),
    ],
)
def test_what_cannot_be_read_is_no_clean_bill(options: tuple[str, ...], code: int):
    ended = plimsoll("fleet", "doctor", *options)
    assert ended.returncode == code, ended.stderr
    assert "no problems" not in ended.stdout
