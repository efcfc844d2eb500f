"""The commands of the pages that a newcomer follows, run as printed, and compared with what the pages show."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from tests.e2e.up.documented_commands import DocumentedCommand, read_commands
from tests.e2e.up.newcomers import Newcomer, read_page
from tests.e2e.up.up_processes import needs_kubectl, running

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

needs_kubectl()


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
    # The group of the first machines lies in three zones, and doctor says what that means.
    assert judged.out.endswith("all checks passed, 1 warning\n"), judged.out
    assert re.search(r"^zones\.nodes +warn ", judged.out, re.MULTILINE), judged.out


@pytest.mark.parametrize(
    "newcomer", [("--no-autoscaler", "--no-tidb-autoscaler", "--no-kafka-operator")], indirect=True
)
def test_install_and_uninstall(newcomer: Newcomer):
    install = read_page("docs/node-autoscaler.md").split("read what will be installed")
    assert newcomer.follow(f"```sh\n{install[1].split('```')[0]}```") == 3
    for overlay in ("tidb", "kafka"):
        newcomer.compare(DocumentedCommand(f"kubectl apply -k deploy/{overlay}", []))
    # The pods of deploy/ are simulated: these stand for the processes in them.
    for controller in ("nodes --cloud-provider=simulated", "tidb", "kafka"):
        with newcomer.started(f"plimsoll run {controller} --address 127.0.0.1:0") as started:
            started.read_until(lambda line: "lease.acquired" in line)
    for taint in ("ToBeDeletedByClusterAutoscaler", "DeletionCandidateOfClusterAutoscaler"):
        assert newcomer.run(f"kubectl taint nodes workers-0 {taint}=1:PreferNoSchedule").code == 0
    # What the chart installs is removed by its own test, with helm.
    uninstall = re.sub(r"## A Helm release\n.*?(?=## )", "", read_page("docs/uninstall.md"), flags=re.DOTALL)
    uninstall = uninstall.replace("deploy/nodes-clusterapi", "deploy/nodes-simulated")
    assert newcomer.follow(uninstall) >= 12
    assert newcomer.run("kubectl get node workers-0 -o jsonpath='{.spec.taints}'").out == ""
    kinds = "deployments,services,configmaps,leases,roles,rolebindings,serviceaccounts"
    left = newcomer.run(f"kubectl get {kinds} -n kube-system -o name").out.splitlines()
    left += newcomer.run("kubectl get clusterroles,clusterrolebindings -o name").out.splitlines()
    assert [name for name in left if "plimsoll" in name or "cluster-autoscaler" in name] == []
    assert "workers" in newcomer.run("kubectl get nodegroups").out
