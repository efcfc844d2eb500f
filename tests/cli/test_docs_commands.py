"""The commands of pages that need no cluster run as printed, and print what the pages show.

Pages with a cluster: tests/e2e/up/test_documented_commands.py.
"""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest

from tests.cli.runner import plimsoll

REPOSITORY = Path(__file__).parents[2]
PAGE = (REPOSITORY / "docs/planning.md").read_text()
README = (REPOSITORY / "README.md").read_text()
SHOWN = re.findall(r"```console\n\$ (?:\.venv/bin/)?(plimsoll plan [^\n]*)\n(.*?)\n```", PAGE + README, re.DOTALL)


@pytest.mark.parametrize(("command", "shown"), SHOWN, ids=[command for command, _ in SHOWN])
def test_a_command_prints_what_the_page_shows(monkeypatch: pytest.MonkeyPatch, command: str, shown: str):
    monkeypatch.chdir(REPOSITORY)
    ended = plimsoll(*shlex.split(command)[1:])
    assert ended.returncode == 0, ended.stderr
    expected = shown.splitlines()
    printed = ended.stdout.rstrip().splitlines()
    if expected[-1] == "…":
        printed = [*printed[: len(expected) - 1], "…"]
    if expected[0] == "…":
        printed = ["…", *printed[1 - len(expected) :]]
    assert printed == expected


def test_the_outputs_of_both_pages_are_compared():
    assert len(SHOWN) >= 4


def test_the_scenario_of_the_page_runs():
    page = (REPOSITORY / "docs/scenarios.md").read_text()
    [scenario] = re.findall(r"```yaml\n(machineTypes:.*?steps:.*?)```", page, re.DOTALL)
    ended = plimsoll("simulate", "-f", "-", stdin=scenario)
    assert ended.returncode == 0, ended.stderr
    assert "1 of 1 expectations held" in ended.stdout


def test_a_dump_and_the_groups_of_the_page_are_planned_by_the_commands_of_the_page(
    tmp_path: Path,
):
    pod = {"metadata": {"name": "web", "namespace": "default"}, "spec": {"containers": [{"name": "a", "image": "a"}]}}
    dump = {"apiVersion": "v1", "kind": "List", "items": [{"apiVersion": "v1", "kind": "Pod", **pod}]}
    (tmp_path / "cluster.json").write_text(json.dumps(dump))
    [groups] = re.findall(r"```yaml\n(# groups.yaml.*?)```", PAGE, re.DOTALL)
    (tmp_path / "groups.yaml").write_text(groups)
    commands = re.findall(r"(?:\$|groups.yaml:) (plimsoll plan -f cluster.json[^\n]*)", PAGE)
    assert len(commands) == 2
    for command in commands:
        words = [tmp_path / word if (tmp_path / word).is_file() else word for word in shlex.split(command)[1:]]
        ended = plimsoll(*words)
        assert ended.returncode == 0, ended.stderr
        assert "1 of 1 pod are placed" in ended.stdout or "1 of 1 pods are placed" in ended.stdout
