"""The commands of the pages that a newcomer follows, run as printed, and compared with what the pages show."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from tests.e2e.timeouts import PATIENCE_S
from tests.e2e.up.documented_commands import DocumentedCommand, read_commands
from tests.e2e.up.up_processes import REPOSITORY, CommandResult, needs_kubectl, running

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

needs_kubectl()

FAILS = ("kubectl drain workers-0 --timeout=10s", "kubectl taint nodes --all ")
"""The page says that these fail."""
READS = ("kubectl get", "kubectl describe", "plimsoll why", "plimsoll nodes status")
"""What they print changes until the cluster is as the page says."""
POD = re.compile(r"\b(web|big)-[0-9a-f]{8,10}-[a-z0-9]{5}\b")


class Newcomer:
    """Types commands into a shell in a folder that looks like the repository."""

    def __init__(self, folder: Path, data: Path) -> None:
        self._folder = folder
        self._pods: list[str] = []
        """The pods that the last list showed, instead of those of the page."""
        binaries = folder / "bin"
        binaries.mkdir(parents=True)
        (binaries / "plimsoll").write_text(f'#!/bin/sh\nexec {sys.executable} -m plimsoll "$@"\n')
        (binaries / "plimsoll").chmod(0o755)
        (folder / ".plimsoll").symlink_to(data)
        for name in ("examples", "deploy"):
            (folder / name).symlink_to(REPOSITORY / name)
        self._environment = {
            **os.environ,
            "PATH": f"{binaries}:{os.environ['PATH']}",
            "PYTHONPATH": str(REPOSITORY / "src"),
            "KUBECONFIG": str(data / "kubeconfig"),
            "HOME": str(folder),
        }

    def follow(self, page: str, *, heading: str = "") -> int:
        """Type every command of the page; how many there were."""
        commands = [documented for documented in read_commands(page, heading=heading) if is_typed(documented.command)]
        for documented in commands:
            self.compare(documented)
        return len(commands)

    def compare(self, documented: DocumentedCommand) -> None:
        command = self._name_pods(documented.command.replace(".venv/bin/", ""))
        # The cluster is at work: how many machines boot at the moment of a list is not what the page is about.
        counts = "get nodegroups" not in command
        until_s = time.monotonic() + PATIENCE_S
        while True:
            answer = self.run(command)
            missing = documented.find_missing(answer.out + answer.err, counts=counts)
            if not missing or not command.startswith(READS) or time.monotonic() > until_s:
                break
            time.sleep(0.3)
        assert not missing, f"{command}: not printed: {missing}; printed: {answer.out}{answer.err}"
        assert (answer.code != 0) == command.startswith(FAILS), f"{command}: {answer}"

    def run(self, command: str) -> CommandResult:
        ended = subprocess.run(
            ["bash", "-c", command],
            cwd=self._folder,
            env=self._environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=2 * PATIENCE_S,
        )
        if command.startswith("kubectl get pods"):
            self._pods = [match[0] for match in POD.finditer(ended.stdout)]
        return CommandResult(ended.returncode, ended.stdout, ended.stderr)

    def _name_pods(self, command: str) -> str:
        return POD.sub(lambda _match: self._pods[0], command)


def is_typed(command: str) -> bool:
    return not command.startswith(("make ", "export ", "…")) and "--address" not in command


def read_page(name: str) -> str:
    return (REPOSITORY / name).read_text()


@pytest.fixture(params=[()])
def newcomer(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Newcomer]:
    with running(tmp_path / "data", *request.param) as up:
        yield Newcomer(tmp_path / "folder", up.data)


def test_first_steps(newcomer: Newcomer):
    assert newcomer.follow(read_page("examples/first-steps.md")) >= 20


def test_the_readme_and_requests_and_a_dry_run(newcomer: Newcomer):
    readme = read_page("README.md").split("In another terminal")[1].split("Manifests can be")[0]
    assert newcomer.follow(readme) == 2
    assert newcomer.follow(read_page("docs/provisioning-requests.md"), heading="## Try it") == 6
    assert newcomer.follow(read_page("docs/node-autoscaler.md"), heading="## Look first: a dry run") == 2
    assert "other_autoscaler" not in newcomer.run("plimsoll run nodes --dry-run --once").err
    recording = read_page("docs/journal.md").split("## Recordings")[1]
    for documented in read_commands(recording):
        answer = newcomer.run(documented.command)
        assert answer.code == 0, answer
    assert "the same plan, byte for byte, as recorded at" in answer.out
    judged = newcomer.run("plimsoll doctor --controller nodes --controller requests")
    assert judged.code == 0, judged
    assert "all checks passed\n" in judged.out


@pytest.mark.parametrize("newcomer", [("--no-autoscaler",)], indirect=True)
def test_install_and_uninstall(newcomer: Newcomer):
    install = read_page("docs/node-autoscaler.md").split("read what will be installed")
    assert newcomer.follow(f"```sh\n{install[1].split('```')[0]}```") == 3
    newcomer.compare(DocumentedCommand("kubectl apply -k deploy/tidb", []))
    for taint in ("ToBeDeletedByClusterAutoscaler", "DeletionCandidateOfClusterAutoscaler"):
        assert newcomer.run(f"kubectl taint nodes workers-0 {taint}=1:PreferNoSchedule").code == 0
    uninstall = read_page("docs/uninstall.md").replace("deploy/nodes-clusterapi", "deploy/nodes-simulated")
    assert newcomer.follow(uninstall) >= 12
    assert newcomer.run("kubectl get node workers-0 -o jsonpath='{.spec.taints}'").out == ""
    kinds = "deployments,services,configmaps,leases,roles,rolebindings,serviceaccounts"
    left = newcomer.run(f"kubectl get {kinds} -n kube-system -o name").out.splitlines()
    left += newcomer.run("kubectl get clusterroles,clusterrolebindings -o name").out.splitlines()
    assert [name for name in left if "plimsoll" in name or "cluster-autoscaler" in name] == []
    assert "workers" in newcomer.run("kubectl get nodegroups").out
