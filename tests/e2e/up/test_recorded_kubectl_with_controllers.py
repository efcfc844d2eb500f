"""The recorded kubectl commands whose output is the work of controllers and scheduler, run against `plimsoll up`.

All commands of the recording's story are run in their order; the others are compared in tests/e2e/kubectl.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest

from tests.e2e.apiserver.processes import ApiServer
from tests.e2e.kubectl import recorded_commands as recordings
from tests.e2e.kubectl.kubectl_runs import Kubectl
from tests.e2e.kubectl.server_processes import LEAST_KUBECTL, kubectl_version
from tests.e2e.up.recorded_kubelets import kubelets, make_node
from tests.e2e.up.up_processes import named, running

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.e2e.kubectl.kubectl_runs import KubectlResult
    from tests.e2e.kubectl.recorded_commands import RecordedCommand
    from tests.e2e.up.up_processes import UpProcess

CLIENT = kubectl_version()

if CLIENT is None or CLIENT < LEAST_KUBECTL:
    pytest.skip(f"NOT TESTED: kubectl >= 1.29 is not on PATH (found {CLIENT})", allow_module_level=True)

NODES = ("k1", "k2")
LAST = "097"
# The one that is not run watches what nothing else touches.
STORY = [
    recorded_command
    for recorded_command in recordings.recorded_commands()
    if recorded_command.id[:3] <= LAST and recorded_command.id != "051-get-watch"
]
COMPARED = [recorded_command for recorded_command in STORY if recorded_command.id in recordings.NEEDS_CONTROLLERS]
# Unrecorded requests before a command. The scheduler of the recording happened to put the second pod of `app` on k2.
BEFORE = {
    "030-apply-deployment-changed": "kubectl cordon k1",
    "031-apply-unknown-field": "kubectl uncordon k1",
    "071-drain": "kubectl -n kc delete pdb web",
}
# What stands in these is in the order of generated names, or of goroutines.
IN_ANY_ORDER = {
    "007-get-pods",
    "008-get-pods-wide",
    "012-get-pods-sort-custom-columns",
    "054-get-events",
    "070-drain-blocked-by-pdb",
    "071-drain",
}
# How often a drain asks again within its time, and which pods lie together on a node, differs from run to run.
EACH_LINE_ONCE = {"070-drain-blocked-by-pdb", "071-drain"}


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, KubectlResult]]:
    directory = tmp_path_factory.mktemp("recorded")
    with running(directory / "data", "--nodes", "0") as up:
        kubeconfig = up.data / "kubeconfig"
        server = ApiServer(up.process, named(up.screen, r"ready at (\S+)"), kubeconfig, up.screen)
        story = RecordedSession(up, server, Kubectl(kubeconfig, directory))
        with kubelets(server, *NODES):
            yield {recorded_command.id: story.run(recorded_command) for recorded_command in STORY}


class RecordedSession:
    """The recorder's day, with a cluster that is at rest before every command."""

    def __init__(self, up: UpProcess, server: ApiServer, kubectl: Kubectl) -> None:
        self._up = up
        self._server = server
        self._kubectl = kubectl
        for node in NODES:
            make_node(server, node)
        up.kubectl("create", "namespace", "kc")
        up.kubectl("-n", "kc", "wait", "--for=create", "serviceaccount/default", "--timeout=60s")

    def run(self, one: RecordedCommand) -> KubectlResult:
        self._up.until(self._is_settled, f"the cluster is at rest before {one.id}")
        if one.id in BEFORE:
            assert self._kubectl(BEFORE[one.id]).exit_code == 0
        if one.exit_code == "terminated":
            return self._kubectl.watch(one.command, [], lines=len(one.stdout.splitlines()))
        command = one.command
        if one.id == "019-describe-pod":
            pods = self._up.objects("pods", "-n", "kc", "--field-selector=spec.nodeName=k1")
            command = re.sub(r"pod \S+$", f"pod {pods[0]['metadata']['name']}", command)
        return self._kubectl(command, files=one.files, stdin=one.stdin)

    def _is_settled(self) -> bool:
        """Whether controllers and kubelets have done what there was to do."""
        return all(is_at_rest(item) for path, is_at_rest in AT_REST.items() for item in self._listed(path))

    def _listed(self, path: str) -> list[dict[str, Any]]:
        code, answer = self._server.ask("GET", path)
        assert code == 200, answer
        items: list[dict[str, Any]] = answer["items"]
        return items


def is_running(pod: dict[str, Any]) -> bool:
    return "deletionTimestamp" not in pod["metadata"] and pod["status"]["phase"] == "Running"


def is_counted(budget: dict[str, Any]) -> bool:
    status = budget.get("status", {})
    is_observed = status.get("observedGeneration") == budget["metadata"]["generation"]
    return is_observed and bool(status["currentHealthy"] == status["expectedPods"])


def is_rolled_out(deployment: dict[str, Any]) -> bool:
    status = deployment["status"]
    counts = (status.get(name) for name in ("replicas", "updatedReplicas", "readyReplicas", "availableReplicas"))
    is_observed = status.get("observedGeneration") == deployment["metadata"]["generation"]
    return is_observed and all(count == deployment["spec"]["replicas"] for count in counts)


AT_REST = {
    "/apis/apps/v1/namespaces/kc/deployments": is_rolled_out,
    "/apis/policy/v1/namespaces/kc/poddisruptionbudgets": is_counted,
    "/api/v1/namespaces/kc/pods": is_running,
}


@pytest.mark.parametrize(
    "one", [pytest.param(recorded_command, id=recorded_command.id) for recorded_command in COMPARED]
)
def test_a_recorded_command_prints_what_a_real_cluster_answered(one: RecordedCommand, ran: dict[str, KubectlResult]):
    came = ran[one.id]
    assert CLIENT is not None
    assert came.exit_code == one.exit_code, came.stderr
    assert comparable(one.id, came.stdout) == comparable(one.id, recordings.as_printed_by(one.stdout, CLIENT))
    assert comparable(one.id, came.stderr) == comparable(one.id, recordings.as_printed_by(one.stderr, CLIENT))


# Besides what all recordings of kubectl differ in: what is made from the hash of a template, and other suffixes.
_GENERATED = (
    (re.compile(r"\b(web|app)-[bcdf0-9]{6,10}-[bcdfghjklmnpqrstvwxz0-9]{5}\b"), r"\1-<hash>-<suffix>"),
    (re.compile(r"\b(web|app)-[bcdf0-9]{6,10}\b"), r"\1-<hash>"),
    (re.compile(r'("pod-template-hash": "|pod-template-hash=)\w+'), r"\1<hash>"),
    (re.compile(r"kube-api-access-\w{5}\b"), "kube-api-access-<suffix>"),
    # An older kubectl does not know how to show it.
    (re.compile(r"ConfigMapOptional:  <nil>"), "Optional:  false"),
    (re.compile(r"(Successfully assigned \S+) to k[12]$", re.MULTILINE), r"\1 to <node>"),
    # One pod that a drain waited for, or several.
    (re.compile(r"\[(error when evicting [^\],]+)(?:, \1)*\]"), r"\1"),
    (re.compile(r"\w{3}, \d\d \w{3} 20\d\d \d\d:\d\d:\d\d [+-]\d{4}"), "<time>"),
)


def comparable(id_: str, text: str) -> Any:
    text = recordings.masked(text)
    for pattern, replacement in _GENERATED:
        text = pattern.sub(replacement, text)
    if text.startswith("{"):
        return in_order_of_nodes(json.loads(text))
    lines = text.splitlines()
    if id_ in EACH_LINE_ONCE:
        lines = list(dict.fromkeys(re.sub(r"\b8s|<age>", "<timeout>", line) for line in lines))
    return sorted(lines) if id_ in IN_ANY_ORDER else lines


def in_order_of_nodes(pods: Any) -> Any:
    return {**pods, "items": sorted(pods["items"], key=lambda pod: pod["spec"]["nodeName"])}
