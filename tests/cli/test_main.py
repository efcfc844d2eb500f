from __future__ import annotations

import json
import re
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
import yaml

import plimsoll as package
from plimsoll.cli.main import ORDER
from plimsoll.nodes.config.options import FLAGS
from tests.cli.runner import REPOSITORY, plimsoll

if TYPE_CHECKING:
    from pathlib import Path

COMMANDS = ["up", "apiserver", "doctor", "validate", "version", "completion"]
# What --help must not pay for. typer itself is allowed, rich only on a terminal.
HEAVY = ["asyncio", "cel", "msgspec", "re2", "rich", "structlog", "yaml", "plimsoll.objects", "plimsoll.scheduling"]
HEAVY += ["cryptography", "ssl", "uvicorn", "plimsoll.local"]


def test_help_names_every_command_in_the_order_of_need():
    reported = plimsoll("--help")
    assert reported.returncode == 0
    listed = [line.split()[0] for line in reported.stdout.partition("Commands:")[2].splitlines() if line.strip()]
    assert listed == list(ORDER)


@pytest.mark.parametrize("command", ORDER)
def test_every_command_has_help_with_examples(command: str):
    reported = plimsoll(command, "--help")
    assert reported.returncode == 0
    assert "Examples:" in reported.stdout
    assert f"plimsoll {command}" in reported.stdout


@pytest.mark.parametrize("arguments", [["--help"], *([command, "--help"] for command in COMMANDS)])
def test_help_imports_nothing_heavy(arguments: list[str]):
    script = f"""
import sys
from plimsoll.cli.main import main
try:
    main({arguments!r})
except SystemExit:
    print([name for name in {HEAVY!r} if name in sys.modules], file=sys.stderr)
"""
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert ended.stderr.strip() == "[]"


def test_version_in_every_form():
    assert re.match(rf"plimsoll {package.__version__} \(commit \S+, Python 3\.", plimsoll("version").stdout)
    assert json.loads(plimsoll("version", "-o", "json").stdout)["plimsoll"] == package.__version__
    assert yaml.safe_load(plimsoll("version", "-o", "yaml").stdout)["plimsoll"] == package.__version__
    assert plimsoll("version", "-o", "name").stdout == f"{package.__version__}\n"


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["nonsense"], "No such command"),
        (["version", "--nonsense"], "No such option"),
        (["version", "-o", "xml"], "'xml' is not one of"),
        (["validate", "--old", "x"], "Missing option"),
        (["completion", "cmd"], "'cmd' is not one of"),
    ],
)
def test_wrong_usage_is_reported_on_stderr_with_exit_code_2(arguments: list[str], complaint: str):
    ended = plimsoll(*arguments)
    assert ended.returncode == 2
    assert ended.stdout == ""
    assert ended.stderr.startswith("error: ")
    assert complaint in ended.stderr


def test_errors_are_one_json_object_when_json_is_asked_for():
    ended = plimsoll("validate", "-o", "json", "-f", "/nowhere/x.yaml")
    assert ended.returncode == 2
    assert json.loads(ended.stderr) == {
        "error": {
            "message": "/nowhere/x.yaml: cannot be read: No such file or directory",
            "path": "/nowhere/x.yaml",
            "exitCode": 2,
        }
    }


@pytest.mark.parametrize(
    ("redirection", "complaint"),
    [(">/dev/full", "cannot write the output"), ("<&-", "stdin is closed"), (">&-", "")],
)
def test_odd_surroundings_give_no_traceback(redirection: str, complaint: str):
    command = f"{sys.executable} -m plimsoll validate -f - {redirection}"
    ended = subprocess.run(["bash", "-c", command], input="kind: A", capture_output=True, text=True, check=False)
    assert "Traceback" not in ended.stderr
    assert complaint in ended.stderr


def test_a_mistake_of_ours_does_not_look_like_an_answer(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("plimsoll.objects.codec.manifests.read_manifests", lambda *_, **__: 1 / 0)
    ended = plimsoll("validate", "-f", "-", stdin="kind: A")
    assert ended.returncode == 70
    assert "ZeroDivisionError" in ended.stderr
    assert "internal error" in ended.stderr


def test_version_as_an_option():
    assert plimsoll("--version").stdout.startswith("plimsoll ")


def test_no_arguments_show_the_help():
    assert "Commands" in plimsoll().stdout


@pytest.mark.parametrize(("shell", "mark"), [("bash", "complete "), ("zsh", "compdef"), ("fish", "complete --command")])
def test_completion_prints_a_script_for_the_shell(shell: str, mark: str):
    reported = plimsoll("completion", shell)
    assert reported.returncode == 0
    assert mark in reported.stdout
    assert "_PLIMSOLL_COMPLETE" in reported.stdout


def test_bash_completes_commands_with_the_script(tmp_path: Path):
    """The script is sourced by a real bash, and its own function asked what follows `plimsoll v`."""
    binary = tmp_path / "plimsoll"
    binary.write_text(f'#!/bin/sh\nexec {sys.executable} -m plimsoll "$@"\n')
    binary.chmod(0o755)
    script = f"""
PATH={tmp_path}:$PATH
source <(plimsoll completion bash)
COMP_WORDS=(plimsoll v); COMP_CWORD=1
$(complete -p plimsoll | sed 's/.*-F \\([^ ]*\\) .*/\\1/') plimsoll
echo "${{COMPREPLY[@]}}"
"""
    ended = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=False, cwd=REPOSITORY)
    assert ended.stdout.split() == ["validate", "version"], ended.stderr


def test_the_help_of_run_nodes_describes_every_flag():
    helped = " ".join(plimsoll("run", "nodes", "--help").stdout.split())
    assert [flag.name for flag in FLAGS.values() if f"--{flag.name}" not in helped] == []
    assert FLAGS["scan-interval"].description in helped


def test_a_reader_that_has_enough_is_not_an_error():
    command = f"{sys.executable} -m plimsoll completion bash | true; exit ${{PIPESTATUS[0]}}"
    ended = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")
