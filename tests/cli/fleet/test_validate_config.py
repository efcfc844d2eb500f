"""`plimsoll fleet validate-config`."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.cli.runner import REPOSITORY, plimsoll

EXAMPLES = REPOSITORY / "examples" / "fleet" / "config"
AUTO = "--dataplane-cluster-scaling-type=auto"


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return Path(shutil.copytree(EXAMPLES, tmp_path / "config"))


def test_valid_files_are_ok_one_per_line():
    ended = plimsoll("fleet", "validate-config", "--config-dir", EXAMPLES, AUTO)
    assert ended.returncode == 0
    assert [Path(line.removesuffix(": ok")).name for line in ended.stdout.splitlines()] == [
        "provider-configuration.yaml",
        "kafka-instance-types-configuration.yaml",
        "dynamic-scaling-configuration.yaml",
        "node-prewarming-configuration.yaml",
        "admin-authz-configuration.yaml",
    ]


def test_the_default_scaling_type_reads_the_manual_clusters():
    ended = plimsoll("fleet", "validate-config", "--config-dir", EXAMPLES)
    assert ended.returncode == 0
    assert "dataplane-cluster-configuration.yaml: ok" in ended.stdout


def test_mistakes_of_all_files_have_a_line_and_valid_files_are_ok(directory: Path):
    (directory / "provider-configuration.yaml").write_text("supported_providers: []")
    (directory / "node-prewarming-configuration.yaml").write_text("premium: {num_reserved_instances: -1}")
    ended = plimsoll("fleet", "validate-config", "--config-dir", directory, AUTO)
    assert ended.returncode == 1
    lines = [line.removeprefix(f"{directory}/") for line in ended.stdout.splitlines()]
    assert [line.rpartition(": ")[0] for line in lines] == [
        "provider-configuration.yaml: supported_providers",
        "kafka-instance-types-configuration.yaml",
        "dynamic-scaling-configuration.yaml",
        "node-prewarming-configuration.yaml: premium.num_reserved_instances",
        "node-prewarming-configuration.yaml: premium",
        "admin-authz-configuration.yaml",
    ]


def test_a_missing_file_of_reserves_is_a_warning_and_any_other_is_unreadable_input(directory: Path):
    (directory / "node-prewarming-configuration.yaml").unlink()
    ended = plimsoll("fleet", "validate-config", "--config-dir", directory, AUTO)
    assert ended.returncode == 0
    assert "node-prewarming-configuration.yaml" in ended.stderr
    assert "node-prewarming-configuration.yaml" not in ended.stdout
    (directory / "provider-configuration.yaml").unlink()
    assert plimsoll("fleet", "validate-config", "--config-dir", directory, AUTO).returncode == 2


def test_a_file_may_be_given_by_its_flag(directory: Path, tmp_path: Path):
    other = tmp_path / "mine.yaml"
    shutil.move(directory / "provider-configuration.yaml", other)
    ended = plimsoll("fleet", "validate-config", "--config-dir", directory, AUTO, "--providers-config-file", other)
    assert ended.returncode == 0
    assert f"{other}: ok" in ended.stdout


def test_json_has_mistakes_and_warnings_by_file(directory: Path):
    (directory / "node-prewarming-configuration.yaml").write_text("standard: {num_reserved_instances: many}")
    ended = plimsoll("fleet", "validate-config", "--config-dir", directory, AUTO, "-o", "json")
    assert ended.returncode == 1
    found = json.loads(ended.stdout)
    assert found["valid"] is False
    (bad,) = [file for file in found["files"] if not file["valid"]]
    assert [mistake["path"] for mistake in bad["mistakes"]] == ["standard.num_reserved_instances"]


def test_name_lists_the_files_with_mistakes(directory: Path):
    (directory / "provider-configuration.yaml").write_text("{}")
    ended = plimsoll("fleet", "validate-config", "--config-dir", directory, AUTO, "-o", "name")
    assert (ended.returncode, ended.stdout) == (1, f"{directory}/provider-configuration.yaml\n")
