"""The commands of the pages about providers, the virtual kubelet and the simulated cloud, and `--watch`, on one up."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from plimsoll.local.cluster_api.definitions import KINDS, build_definition
from tests.e2e.ports import lasting_port
from tests.e2e.up.documented_commands import read_commands
from tests.e2e.up.newcomers import Newcomer, read_page
from tests.e2e.up.up_processes import needs_kubectl, running

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.e2e.up.up_processes import UpProcess

needs_kubectl()

PROVIDERS = read_page("docs/providers.md")
ONCE = "--dry-run --once"
POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "web", "namespace": "default"},
    "spec": {
        "nodeSelector": {"node.kubernetes.io/instance-type": "m5.2xlarge"},
        "tolerations": [{"key": "dedicated", "operator": "Exists"}],
        "containers": [{"name": "web", "image": "web", "resources": {"requests": {"cpu": "1"}}}],
    },
}
"""A pod for the machines of the page, which the cloud of `up` does not sell."""


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[UpProcess]:
    with running(tmp_path_factory.mktemp("up") / "data") as started:
        yield started


@pytest.fixture(scope="module")
def newcomer(up: UpProcess, tmp_path_factory: pytest.TempPathFactory) -> Newcomer:
    return Newcomer(tmp_path_factory.mktemp("newcomer") / "folder", up.data)


def find_command(page: str, start: str) -> str:
    """The command of a page that starts so, without what it says about it."""
    [found] = [documented.command for documented in read_commands(page) if documented.command.startswith(start)]
    return re.sub(r"\s+#.*", "", found)


def find_manifests(page: str, kind: str) -> list[dict[str, Any]]:
    """The manifests of the one block of a page that has this kind."""
    [block] = [block for block in re.findall(r"```yaml\n(.*?)```", page, re.DOTALL) if f"kind: {kind}\n" in block]
    return [*yaml.safe_load_all(block)]


def test_the_simulated_provider_beside_another_autoscaler(newcomer: Newcomer):
    """`up` has an autoscaler, so this one waits and says whose turn it is."""
    with newcomer.started(find_command(PROVIDERS, "plimsoll run nodes --cloud-provider=simulated")) as autoscaler:
        assert autoscaler.read_until(lambda line: "autoscaling nodes of https://127.0.0.1:" in line)
        assert autoscaler.read_until(lambda line: "lease" in line)


def test_the_simulated_cloud_is_served_over_the_protocol(newcomer: Newcomer):
    address = f"127.0.0.1:{lasting_port()}"
    serve = find_command(PROVIDERS, "plimsoll run provider --kubeconfig ./cluster/kubeconfig")
    with newcomer.started(f"{serve} --address {address}") as provider:
        assert provider.read_until(lambda line: f"serving the provider simulated on {address}" in line)
        newcomer.write("provider.yaml", f"address: {address}\ngrpc_timeout: 5s\n")
        run = f"plimsoll run nodes --cloud-provider=externalgrpc --cloud-config=provider.yaml {ONCE} -o json"
        answer = newcomer.run(run)
        assert answer.code == 0, answer
        assert '"workers-0": "NodeGroupMinSizeReached"' in answer.out, "the group is known, and its minimum"


def test_cluster_api_in_the_cluster_that_is_autoscaled(newcomer: Newcomer, up: UpProcess):
    up.kubectl("apply", "-f", "-", stdin=yaml.safe_dump_all([build_definition(kind) for kind in KINDS]))
    for kind in KINDS:
        up.kubectl("wait", "--for=condition=Established", f"crd/{kind.lower()}s.cluster.x-k8s.io")
    up.kubectl("create", "namespace", "prod")
    [deployment] = find_manifests(PROVIDERS, "MachineDeployment")
    deployment["spec"] = {"clusterName": "web", "replicas": 0, "selector": {}, "template": {}}
    up.kubectl("apply", "-f", "-", stdin=yaml.safe_dump(deployment))
    run = find_command(PROVIDERS, "plimsoll run nodes --cloud-provider=clusterapi --node-group-auto-discovery=")
    up.kubectl("apply", "-f", "-", stdin=yaml.safe_dump(POD))
    up.kubectl("wait", "pod/web", "--for=condition=PodScheduled=False", "--timeout=60s")
    answer = newcomer.run(f"{run} {ONCE} -o json")
    up.kubectl("delete", "pod", "web")
    assert answer.code == 0, answer
    assert '"MachineDeployment/prod/web"' in answer.out, answer


def test_the_node_of_the_page_about_the_virtual_kubelet_becomes_ready(newcomer: Newcomer, up: UpProcess):
    [script] = re.findall(r"```\n(plimsoll run kubelet .*?)```", read_page("docs/virtual-kubelet.md"), re.DOTALL)
    answer = newcomer.run(
        f"{script}kubectl wait --for=condition=Ready node/played-1 --timeout=60s\ncode=$?\nkill $!\nexit $code"
    )
    assert answer.code == 0, answer
    assert "played-1" in answer.out
    assert "Traceback" not in answer.err


def test_a_watch_prints_the_status_again_when_a_group_changes(newcomer: Newcomer, up: UpProcess):
    with newcomer.started("plimsoll nodes status --watch") as watch:
        row = re.compile(r"^workers +(?P<cells>.*)$")
        first = row.match(watch.read_until(lambda line: bool(row.match(line))))
        assert first is not None
        assert first["cells"].split()[:1] == ["3"], first[0]
        up.kubectl("scale", "nodegroup/workers", "--replicas=4")
        changed = watch.read_until(lambda line: bool(row.match(line)) and "4" in line.split())
        assert "Running" not in changed, "it is the row of the group"


def test_the_page_about_the_simulated_cloud(newcomer: Newcomer, up: UpProcess):
    """Last, because the cloud of the page replaces that of the others."""
    page = read_page("docs/simulated-cloud.md")
    up.kubectl("apply", "-f", "-", stdin=yaml.safe_dump_all(find_manifests(page, "NodeGroup")))
    [scale] = re.findall(r"`(kubectl scale ng [^`]*)`", page)
    [show] = re.findall(r"`(kubectl get plimsoll)`", page)
    up.until(lambda: {"web-0", "web-1"} <= {node["metadata"]["name"] for node in up.objects("nodes")}, "two nodes")
    assert newcomer.run(scale).code == 0
    names = {f"web-{number}" for number in range(4)}
    up.until(lambda: names <= {node["metadata"]["name"] for node in up.objects("nodes")}, "four nodes")
    shown = newcomer.run(show)
    assert shown.code == 0, shown
    for name in ("cloud.cloud.plimsoll.io/cloud", "nodegroup.cloud.plimsoll.io/web", "machine.cloud.plimsoll.io/web-3"):
        assert name in shown.out
