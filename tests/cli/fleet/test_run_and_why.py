"""`plimsoll run fleet --once`, and what `why`, `journal`, `pause` and `resume` make of its database."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.cli.fleet.evaluate_documents import make_cluster_row, make_document
from tests.cli.runner import REPOSITORY, plimsoll

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.runner import CommandResult
    from tests.golden.reviewed_sentences import ReviewedSentences

CONFIGURATION = ("--config-dir", REPOSITORY / "examples/fleet/config", "--dataplane-cluster-scaling-type", "auto")
CAPACITY = "capacity/aws.us-east-1.standard"


def run_once(data: Path, *options: str) -> CommandResult:
    return plimsoll("run", "fleet", *CONFIGURATION, "--data", data, "--once", *options)


def build_url(data: Path) -> str:
    return f"sqlite:///{data / 'fleet.sqlite3'}"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """The directory of a fleet manager that ran once."""
    ended = run_once(tmp_path)
    assert ended.returncode == 0, ended.stderr
    return tmp_path


def test_one_pass_of_each_worker_is_printed(tmp_path: Path):
    ended = run_once(tmp_path, "-o", "json")
    assert ended.returncode == 0, ended.stderr
    results = json.loads(ended.stdout)
    assert [result["worker"] for result in results] == [
        "general_kafka_worker",
        "accepted_kafka",
        "preparing_kafka",
        "provisioning_kafka",
        "ready_kafka",
        "deleting_kafka",
        "dynamic_scale_up",
        "dynamic_scale_down",
    ]
    assert all(not result["errors"] for result in results)


def test_why_answers_from_the_database(data: Path):
    ended = plimsoll("why", CAPACITY, "--database-url", build_url(data), "-o", "json")
    assert ended.returncode == 0, ended.stderr
    (decision,) = json.loads(ended.stdout)
    assert decision["notDone"][0]["reason"]["code"] == "BiggestDoesNotFit"
    listed = plimsoll("journal", "--database-url", build_url(data), "--about", CAPACITY, "-o", "name")
    assert listed.stdout == f"entry/{decision['number']}\n"
    entry = plimsoll("why", f"entry/{decision['number']}", "--database-url", build_url(data))
    assert CAPACITY in entry.stdout


def test_why_answers_from_the_database_in_the_directory_of_data(data: Path):
    ended = plimsoll("why", CAPACITY, "--data", data, "-o", "json")
    assert ended.returncode == 0, ended.stderr
    assert json.loads(ended.stdout)[0]["notDone"][0]["reason"]["code"] == "BiggestDoesNotFit"
    unknown = plimsoll("why", "cluster/none", "--data", data)
    assert (unknown.returncode, "journal of the fleet" in unknown.stderr) == (3, True)
    # A kafka may be one of a cluster: without an entry in the fleet the journal of --data is read.
    kafka = plimsoll("why", "kafka/none", "--data", data)
    assert (kafka.returncode, "journal of the fleet" in kafka.stderr) == (3, False)
    elsewhere = plimsoll("why", CAPACITY, "--data", data, "--context", "prod")
    assert elsewhere.returncode == 2


def test_a_dry_run_takes_no_lease_and_writes_its_journal(tmp_path: Path):
    assert run_once(tmp_path, "--dry-run").returncode == 0
    assert plimsoll("why", CAPACITY, "--database-url", build_url(tmp_path)).returncode == 0


def test_a_process_encrypts_secrets_with_the_newest_key(tmp_path: Path):
    document = make_document(clusters=[make_cluster_row("a", client_id="agent", client_secret="s3cret")], kafkas=[])
    (tmp_path / "rows").write_text(json.dumps(document))
    old, new = "old:" + "A" * 43 + "=", "new:" + "B" * 42 + "A="
    files = {name: tmp_path / name for name in ("first", "both", "last")}
    for file, keys in zip(files.values(), (old, f"{new}\n{old}", new), strict=True):
        file.write_text(f"{keys}\n")

    def run(name: str, *options: str) -> CommandResult:
        database = ("--database-url", build_url(tmp_path), "--secrets-key-file", files[name])
        return run_once(tmp_path, *map(str, database), *options)

    imported = plimsoll(
        "fleet", "import", "-f", tmp_path / "rows", "--database-url", build_url(tmp_path), "--secrets-key-file",
        files["first"],
    )  # fmt: skip
    assert imported.returncode == 0, imported.stderr
    assert [run("last").returncode, run("both", "--dry-run").returncode, run("last").returncode] == [2, 0, 2]
    assert run("both").returncode == 0
    assert run("last").returncode == 0


def test_what_is_not_known_has_an_exit_code_and_a_hint(data: Path, tmp_path: Path, reviewed: ReviewedSentences):
    unknown = plimsoll("why", "kafka/none", "--database-url", build_url(data))
    missing = plimsoll("why", "kafka/none", "--database-url", f"sqlite:///{tmp_path}/other/fleet.sqlite3")
    without = plimsoll("why", CAPACITY)
    both = plimsoll("why", CAPACITY, "--database-url", "sqlite:///x", "--fleet", "http://127.0.0.1:1")
    assert [ended.returncode for ended in (unknown, missing, without, both)] == [3, 3, 2, 2]
    reviewed(unknown.stderr, missing.stderr, without.stderr, both.stderr)


def test_a_kafka_with_a_namespace_is_not_the_fleets(data: Path):
    ended = plimsoll("why", "kafka/prod/orders", "--database-url", build_url(data), "--data", data)
    assert ended.returncode == 3
    assert "fleet" not in ended.stderr.splitlines()[0].replace(str(data), "")


def test_an_api_that_is_not_there_is_unreachable(data: Path):
    ended = plimsoll("why", CAPACITY, "--fleet", "http://127.0.0.1:9")
    assert ended.returncode == 4
    assert data.exists()


def test_a_pause_holds_the_workers(data: Path, reviewed: ReviewedSentences):
    paused = plimsoll("pause", "--database-url", build_url(data), "--reason", "upgrade, Ada")
    resumed = plimsoll("resume", "--database-url", build_url(data))
    assert (paused.returncode, resumed.returncode) == (0, 0)
    reviewed(paused.stdout, resumed.stdout)


@pytest.mark.parametrize(
    "options",
    [
        ("--reconciler-repeat-interval", "soon"),
        ("--leader-lease-expiration-time", "20s"),
        ("--database-url", "mysql://x/y"),
        ("--database-url", "sqlite:///x", "--database-url-file", "y"),
        ("--database-url-file", "/nowhere/url"),
        ("--secrets-key-file", "/nowhere/keys"),
        ("--ocm-base-url", "ftp://ocm"),
        ("--ocm-base-url", "http://127.0.0.1:1", "--database-url", "sqlite:///elsewhere.sqlite3"),
        ("--ocm-base-url", "http://127.0.0.1:1", "--ocm-client-id-file", "/nowhere/id"),
        ("--ocm-base-url", "http://127.0.0.1:1", "--aws-credentials-file", "/nowhere/aws"),
        ("--management-kubeconfig", "/nowhere/kubeconfig"),
        ("--management-kubeconfig", "/nowhere/kubeconfig", "--cluster-version", "1.34"),
        ("--addon-manifests", "/nowhere/manifests"),
        ("--kas-fleetshard-poll-interval", "often"),
        ("--max-cluster-removals-per-hour", "-1"),
    ],
)
def test_wrong_options_are_refused_before_anything_is_made(tmp_path: Path, options: tuple[str, ...]):
    ended = run_once(tmp_path / "data", *options)
    assert ended.returncode == 2, ended.stderr
    assert not (tmp_path / "data" / "fleet.sqlite3").exists()
