"""The recorded kubectl commands, run by the kubectl on PATH against our server: the output is the recorded one."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.e2e.kubectl import recorded_commands as recordings
from tests.e2e.kubectl.kubectl_runs import Kubectl
from tests.e2e.kubectl.server_processes import LEAST_KUBECTL, has_apiserver_command, kubectl_version, running_server

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.e2e.kubectl.kubectl_runs import KubectlResult
    from tests.e2e.kubectl.recorded_commands import RecordedCommand

CLIENT = kubectl_version()

if CLIENT is None or CLIENT < LEAST_KUBECTL:
    pytest.skip(f"NOT TESTED: kubectl >= 1.29 is not on PATH (found {CLIENT})", allow_module_level=True)
if not has_apiserver_command():
    pytest.skip("NOT TESTED: there is no `plimsoll apiserver`", allow_module_level=True)

_RUN = [
    recorded_command
    for recorded_command in recordings.recorded_commands()
    if recorded_command.id not in recordings.NEEDS_CONTROLLERS
]

_NODE = """
apiVersion: v1
kind: Node
metadata: {{name: {name}, labels: {{kubernetes.io/hostname: {name}}}}}
"""
_READY = (
    '{"status":{"conditions":[{"type":"Ready","status":"True","reason":"Kubelet","message":"m",'
    '"lastHeartbeatTime":"2026-01-01T00:00:00Z","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}'
)


# Changes that the recorder made while a watching command ran.
_WHILE_WATCHING = {
    "051-get-watch": [
        "kubectl -n kc create -f w.yaml",
        """kubectl -n kc patch cm w --type=merge -p '{"data":{"a":"b"}}'""",
        "kubectl -n kc delete cm w --wait=false",
    ]
}
_LABELLED = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: w, labels: {w: '1'}}\n"

# Unrecorded requests before a command; what controllers would have done is not among them.
_BEFORE = {"072-uncordon-after-drain": ["kubectl cordon k2"]}


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, KubectlResult]]:
    """All commands, in their order, against one server: later ones depend on earlier ones."""
    directory = tmp_path_factory.mktemp("kubectl")
    with running_server(directory / "data") as server:
        kubectl = Kubectl(server.kubeconfig, directory)
        _set_up(kubectl)
        yield {recorded_command.id: _run(kubectl, recorded_command) for recorded_command in _RUN}


def _set_up(kubectl: Kubectl) -> None:
    assert kubectl("kubectl create namespace kc").exit_code == 0
    assert kubectl("kubectl -n kc wait --for=create serviceaccount/default --timeout=60s").exit_code == 0
    for name in ("k1", "k2"):
        assert kubectl("kubectl create -f -", stdin=_NODE.format(name=name)).exit_code == 0
        kubectl(f"kubectl patch node {name} --subresource=status --type=merge -p '{_READY}'")
        kubectl(f"kubectl taint nodes {name} node.kubernetes.io/not-ready-")


def _run(kubectl: Kubectl, one: RecordedCommand) -> KubectlResult:
    for command in _BEFORE.get(one.id, ()):
        assert kubectl(command).exit_code == 0
    if one.exit_code == "terminated":
        return _watched(kubectl, one)
    return kubectl(one.command, files=one.files, stdin=one.stdin)


def _watched(kubectl: Kubectl, one: RecordedCommand) -> KubectlResult:
    create, *rest = _WHILE_WATCHING[one.id]
    assert kubectl(create.replace("w.yaml", "-"), stdin=_LABELLED).exit_code == 0
    return kubectl.watch(one.command, rest, lines=len(one.stdout.splitlines()))


@pytest.mark.parametrize("one", [pytest.param(recorded_command, id=recorded_command.id) for recorded_command in _RUN])
def test_a_recorded_command_prints_what_a_real_server_answered(one: RecordedCommand, ran: dict[str, KubectlResult]):
    came = ran[one.id]
    assert CLIENT is not None
    expected = recordings.masked(recordings.as_printed_by(one.stdout, CLIENT))
    stated = recordings.masked(came.stdout)
    if one.id in recordings.SERVED_LINES_ONLY:
        expected = "\n".join(line for line in expected.splitlines() if line in stated.splitlines())
    if one.id in recordings.JSON_OUTPUT:
        expected, stated = map(_normal_object, (expected, stated))
    is_equal = (came.exit_code, stated) == (one.exit_code, expected)
    if one.id in recordings.KNOWN_DIFFERENCES:
        assert not is_equal, f"{one.id} is listed as a difference and is none any more"
        return
    assert came.exit_code == one.exit_code, came.stderr
    assert stated == expected, came.stderr
    assert recordings.masked(came.stderr) == recordings.masked(recordings.as_printed_by(one.stderr, CLIENT))


def _normal_object(text: str) -> str:
    """An object with its managers by name: commands that run within a second are not in the order of their times."""
    value = json.loads(text)
    value["metadata"]["managedFields"].sort(key=lambda entry: entry["manager"])
    return json.dumps(value, sort_keys=True)


def test_every_command_left_out_is_a_recorded_one():
    ids = {recorded_command.id for recorded_command in recordings.recorded_commands()}
    assert recordings.NEEDS_CONTROLLERS.keys() <= ids
    assert recordings.KNOWN_DIFFERENCES.keys() <= ids - recordings.NEEDS_CONTROLLERS.keys()
