"""`plimsoll fleet clusters`: rows of the database, without machines where no cluster runs here."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.runner import plimsoll

REPOSITORY = Path(__file__).parents[3]


def fill(data: Path) -> str:
    url = f"sqlite:///{data}/fleet.sqlite3"
    ended = plimsoll(
        "fleet", "import", "-f", str(REPOSITORY / "examples/fleet/first-cluster.yaml"), "--database-url", url
    )
    assert ended.returncode == 0, ended.stderr
    return url


def test_a_cluster_is_listed_with_its_state_and_its_capacity(tmp_path: Path):
    fill(tmp_path)
    ended = plimsoll("fleet", "clusters", "--data", str(tmp_path), "-o", "json")
    assert ended.returncode == 0, ended.stderr
    (cluster,) = json.loads(ended.stdout)
    assert (cluster["id"], cluster["region"], cluster["status"]) == ("first", "us-east-1", "ready")
    assert set(cluster["units"]["standard"]) == {"used", "maximum"}
    assert cluster["nodes"] is None
    assert cluster["costPerHour"] is None


def test_the_table_shows_what_is_not_known_as_a_dash(tmp_path: Path):
    url = fill(tmp_path)
    head, line = plimsoll("fleet", "clusters", "--database-url", url).stdout.splitlines()
    assert head.split()[:4] == ["ID", "CLUSTER", "REGION", "STATUS"]
    assert line.startswith("first ")
    assert " -" in line
    assert plimsoll("fleet", "clusters", "--database-url", url, "-o", "name").stdout == "cluster/first\n"


def test_a_database_that_is_not_there_is_named(tmp_path: Path):
    ended = plimsoll("fleet", "clusters", "--data", str(tmp_path))
    assert ended.returncode != 0
    assert "fleet.sqlite3" in ended.stderr
