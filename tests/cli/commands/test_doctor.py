"""How `plimsoll doctor` is called and what it prints; what it finds is tested in tests/kube/diagnosis."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from plimsoll.kube.diagnosis import Examination, Finding, Level, NoExamination
from tests.cli.runner import plimsoll

if TYPE_CHECKING:
    from pathlib import Path

HEAVY = ["aiohttp", "asyncio", "cryptography", "msgspec", "rich", "ssl", "structlog", "yaml"]
HEAVY += ["plimsoll.kube", "plimsoll.objects", "plimsoll.local"]

FINE = Finding(check="api", level=Level.OK, message="https://x answers in 3 ms", details={"server": "https://x"})
ODD = Finding(check="clock", level=Level.WARN, message="our clock is 8 s\nbehind the server's", fix="chrony")
BAD = Finding(
    check="permissions.nodes",
    level=Level.FAIL,
    message="1 of 53 permissions it needs are missing",
    fix="grant\n  - rule",
)


SetFindings = Callable[..., dict[str, Any]]


@pytest.fixture
def set_findings(monkeypatch: pytest.MonkeyPatch) -> SetFindings:
    """A doctor that finds what the test sets, and what it was asked."""
    asked: dict[str, Any] = {}

    def finds(*findings: Finding, error: Exception | None = None) -> dict[str, Any]:
        async def examined(connection: Any, controllers: tuple[str, ...], **more: Any) -> Examination:
            asked.update(connection=connection, controllers=controllers, **more)
            if error is not None:
                raise error
            return Examination(server="https://x", controllers=controllers or ("nodes",), findings=findings)

        monkeypatch.setattr("plimsoll.cli.commands.doctor._examine", examined)
        return asked

    return finds


def test_help_has_examples_and_costs_nothing_heavy():
    script = f"""
import sys
from plimsoll.cli.main import main
try:
    main(["doctor", "--help"])
except SystemExit:
    print([name for name in {HEAVY!r} if name in sys.modules], file=sys.stderr)
"""
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert "Examples:\n    plimsoll doctor\n" in ended.stdout
    assert ended.stderr.strip() == "[]"


def test_a_plain_table_without_a_terminal(set_findings: SetFindings):
    set_findings(FINE, ODD)
    ended = plimsoll("doctor")
    assert ended.returncode == 0
    assert ended.stdout.splitlines() == [
        "CHECK  RESULT   WHAT",
        "api    ok       https://x answers in 3 ms",
        "clock  warn     our clock is 8 s behind the server's",
        "",
        "clock: warn",
        "  chrony",
        "",
        "all checks passed, 1 warning",
    ]
    assert ended.stderr == ""


def test_something_missing_is_exit_code_1_with_what_mends_it(set_findings: SetFindings):
    set_findings(FINE, BAD)
    ended = plimsoll("doctor")
    assert ended.returncode == 1
    assert ended.stdout.splitlines()[-5:] == [
        "permissions.nodes: 1 of 53 permissions it needs are missing",
        "  grant",
        "    - rule",
        "",
        "1 of 2 checks failed",
    ]


@pytest.mark.parametrize("output", ["json", "yaml"])
def test_findings_as_data(set_findings: SetFindings, output: str):
    set_findings(FINE, BAD)
    ended = plimsoll("doctor", "-o", output)
    reported = yaml.safe_load(ended.stdout)
    assert ended.returncode == 1
    assert (reported["healthy"], reported["level"], reported["server"], reported["controllers"]) == (
        False,
        "fail",
        "https://x",
        ["nodes"],
    )
    assert reported["findings"][0] == {
        "check": "api",
        "level": "ok",
        "message": "https://x answers in 3 ms",
        "fix": "",
        "details": {"server": "https://x"},
    }


def test_names_are_the_checks_that_failed(set_findings: SetFindings):
    set_findings(FINE, ODD, BAD)
    assert plimsoll("doctor", "-o", "name").stdout == "permissions.nodes\n"


def test_a_server_that_cannot_be_reached_is_exit_code_4_with_a_hint(set_findings: SetFindings):
    set_findings(error=NoExamination("cannot reach https://x: connection refused", hint="check host and port"))
    plain = plimsoll("doctor")
    assert (plain.returncode, plain.stdout) == (4, "")
    assert plain.stderr == "error: cannot reach https://x: connection refused\ncheck host and port\n"
    reported = json.loads(plimsoll("doctor", "-o", "json").stderr)
    assert reported == {
        "error": {
            "message": "cannot reach https://x: connection refused",
            "hint": "check host and port",
            "exitCode": 4,
        }
    }


def test_options_are_those_of_kubectl(set_findings: SetFindings):
    asked = set_findings(FINE)
    plimsoll("doctor", "--kubeconfig", "f", "--context", "c", "-n", "ns", "-s", "https://x", "--timeout", "3")
    connection = asked["connection"]
    assert (connection.kubeconfig, connection.context, connection.namespace, connection.server) == (
        "f",
        "c",
        "ns",
        "https://x",
    )
    assert asked["timeout_s"] == 3


@pytest.mark.parametrize(
    ("given", "again"),
    [
        ([], "plimsoll doctor -o json"),
        (
            ["--kubeconfig", "my config", "--context", "c", "-s", "https://x", "--namespace=ns", "--timeout", "2.5"],
            "plimsoll doctor --kubeconfig 'my config' --context c -n ns --server https://x --timeout 2.5 -o json",
        ),
        (
            ["--controller", "all", "--controller", "nodes", "-o", "yaml"],
            "plimsoll doctor --controller all --controller nodes -o json",
        ),
    ],
)
def test_what_is_advised_to_run_is_the_same_command_with_the_same_options(
    set_findings: SetFindings, given: list[str], again: str
):
    asked = set_findings(FINE)
    plimsoll("doctor", *given)
    assert asked["invocation"] == again


@pytest.mark.parametrize(
    ("given", "controllers"),
    [
        ([], ()),
        (["kafka"], ("kafka",)),
        (["tidb", "nodes", "tidb"], ("nodes", "tidb")),
        (["all"], ("nodes", "requests", "kafka", "tidb", "fleet", "fleet-agent", "kubelet")),
        (["all", "nodes"], ("nodes", "requests", "kafka", "tidb", "fleet", "fleet-agent", "kubelet")),
    ],
)
def test_controllers_may_be_named_several_times(
    set_findings: SetFindings, given: list[str], controllers: tuple[str, ...]
):
    asked = set_findings(FINE)
    plimsoll("doctor", *(word for name in given for word in ("--controller", name)))
    assert asked["controllers"] == controllers


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--controller", "nonsense"], "'nonsense' is not one of"),
        (["--timeout", "0"], "greater than or equal to 0.1"),
        (["--timeout", "soon"], "valid number"),
        (["-n", "Not A Name"], "--namespace"),
        (["--server", "ftp://x"], "--server"),
        (["--kubeconfig", "/nowhere/config"], "/nowhere/config"),
    ],
)
def test_wrong_usage_and_configuration_are_exit_code_2(arguments: list[str], complaint: str):
    ended = plimsoll("doctor", *arguments)
    assert ended.returncode == 2
    assert ended.stdout == ""
    assert complaint in ended.stderr


def test_a_mistake_in_a_kubeconfig_is_reported_with_its_place(tmp_path: Path):
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}],
        "clusters": [{"name": "k", "cluster": {"server": "https://127.0.0.1:1"}}],
        "users": [{"name": "u", "user": {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": 7}}}],
    }
    file = tmp_path / "config"
    file.write_text(yaml.safe_dump(config))
    ended = plimsoll("doctor", "--kubeconfig", file, "-o", "json")
    reported = json.loads(ended.stderr)["error"]
    assert ended.returncode == reported["exitCode"] == 2
    assert str(file) in reported["message"]
    assert "users[0].user.exec.command" in reported["message"]
