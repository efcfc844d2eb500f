"""A name that one command prints is accepted by every other: requests, plan --explain, why, journal, nodes status."""

from __future__ import annotations

import json
import re
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from plimsoll.core.plans import NotDone, Reason, Ref
from plimsoll.journal.journal_file import JOURNAL_FILE, JournalFile
from tests.cli.runner import plimsoll
from tests.journal.builders import plan
from tests.kube.embedded_api import EmbeddedApi

if TYPE_CHECKING:
    from collections.abc import Iterator

REQUESTS = "/apis/autoscaling.x-k8s.io/v1/namespaces/ml/provisioningrequests"
EXAMPLE = Path("examples/plans/request.yaml")
NO_FIT = Reason(code="NoFit", message="fits no machine type")


@pytest.fixture
def requests(monkeypatch: pytest.MonkeyPatch) -> Iterator[EmbeddedApi]:
    """A cluster with the request of `EXAMPLE`."""
    with EmbeddedApi() as world:
        definition = files("plimsoll.objects").joinpath("crds", "provisioningrequests.yaml").read_text()
        world.ask("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", yaml.safe_load(definition))
        world.ask("POST", "/api/v1/namespaces", {"metadata": {"name": "ml"}})
        spec = {"provisioningClassName": "c", "podSets": [{"podTemplateRef": {"name": "t"}, "count": 1}]}
        body = {"apiVersion": "autoscaling.x-k8s.io/v1", "kind": "ProvisioningRequest", "spec": spec}
        world.ask("POST", REQUESTS, {**body, "metadata": {"name": "nightly"}})

        def with_client(_connection: Any, work: Any, **_more: Any) -> Any:
            return world.do(work(world.client))

        monkeypatch.setattr("plimsoll.cli.nodes.requests.run_with_client", with_client)
        yield world


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A journal that names the pods, the workload and the request of the other fixtures."""
    pods = tuple(Ref(kind="pod", namespace="shop", name=f"web-5f7-{letter}") for letter in "ab")
    workloads = tuple(
        Ref(kind=kind, namespace="shop", name=name) for kind, name in (("deployment", "web"), ("replicaset", "web-5f7"))
    )
    request = (Ref(kind="request", namespace="ml", name="nightly"),)
    left = NotDone(what="stays unschedulable", about=pods, reason=NO_FIT, concerns=workloads)
    refused = NotDone(what="is refused", about=request, reason=NO_FIT)
    journal = JournalFile(tmp_path / "data" / JOURNAL_FILE)
    journal.append(plan(1, actions=(), not_done=(left, refused)))
    journal.close()
    return tmp_path / "data"


@pytest.fixture
def dump(tmp_path: Path) -> Path:
    """`kubectl get pods -A -o json` of a Deployment whose pods are too large."""
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-5f7", "uid": "u", "controller": True}
    container = {"name": "a", "image": "a", "resources": {"requests": {"cpu": "500"}}}
    pods = [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": f"web-5f7-{letter}",
                "namespace": "shop",
                "labels": {"pod-template-hash": "5f7"},
                "ownerReferences": [owner],
            },
            "spec": {"containers": [container]},
        }
        for letter in "ab"
    ]
    file = tmp_path / "cluster.json"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": pods}))
    return file


def is_known(*words: str | Path) -> str:
    ended = plimsoll(*words)
    assert ended.returncode == 0, f"{words}: {ended.stderr}"
    return ended.stdout


def test_requests_as_the_list_prints_them(requests: EmbeddedApi, data: Path):
    [name] = is_known("requests", "list", "-A", "-o", "name").split()
    [row] = is_known("requests", "list", "-A").splitlines()[1:2]
    in_table = "/".join(row.split()[:2])
    shown = re.findall(r"^request +(\S+)", is_known("requests", "describe", name), re.MULTILINE)
    validated = is_known("validate", "-f", "examples/provisioning-request.yaml").split()[2].split("/")[0]
    for written in (name, in_table, *shown, f"{validated}/ml/nightly", "provreq.autoscaling.x-k8s.io/ml/nightly"):
        assert "ml/nightly" in is_known("requests", "describe", written)
        asked = f"request/{written}" if written == in_table else written
        assert "fits no machine type" in is_known("why", asked, "--data", data)
        assert is_known("plan", "-f", EXAMPLE, "--explain", written).startswith("ml/nightly/0: 1 pod")


def test_requests_as_a_plan_prints_them(requests: EmbeddedApi, data: Path):
    [printed] = re.findall(r"^request (\S+):", is_known("plan", "-f", EXAMPLE), re.MULTILINE)
    assert "ml/nightly" in is_known("requests", "describe", printed)
    assert "fits no machine type" in is_known("why", f"request/{printed}", "--data", data)


def test_pods_and_workloads_as_a_plan_prints_them(data: Path, dump: Path):
    planned = is_known("plan", "-f", dump, "--catalogue", "gce-n1")
    [workload] = re.findall(r"pods left: (\S+)", planned)
    assert workload == "deployment/shop/web"
    explained = is_known("plan", "-f", dump, "--catalogue", "gce-n1", "--explain", workload)
    pod = explained.partition(":")[0]
    assert pod == "shop/web-5f7-a"
    for written in (workload, pod):
        assert "fits no machine type" in is_known("why", written, "--data", data)
        assert is_known("journal", "--about", written, "--data", data)


@pytest.mark.parametrize("written", ["pod/shop/web-5f7-a", "shop/web-5f7-a", "deployment/shop/web", "rs/shop/web-5f7"])
def test_pods_and_workloads_as_why_prints_them(data: Path, dump: Path, written: str):
    printed = is_known("why", written, "--data", data).splitlines()[0]
    explained = is_known("plan", "-f", dump, "--catalogue", "gce-n1", "--explain", printed)
    assert explained.startswith("shop/web-5f7-a: 1 pod, 1 left")


def test_a_name_of_a_kind_that_has_no_pods_is_named(dump: Path):
    ended = plimsoll("plan", "-f", dump, "--catalogue", "gce-n1", "--explain", "node/workers-0")
    assert ended.returncode == 2
    assert "--explain: no pending pod belongs to node/workers-0; 2 others wait, such as shop/web-5f7-a" in ended.stderr


def test_node_groups_as_a_plan_prints_them(tmp_path: Path):
    [name] = is_known("plan", "-f", EXAMPLE, "-o", "name").split()
    grown = NotDone(what="is not grown", about=(Ref(kind="nodegroup", name="batch"),), reason=NO_FIT)
    journal = JournalFile(tmp_path / JOURNAL_FILE)
    journal.append(plan(1, actions=(), not_done=(grown,)))
    journal.close()
    assert "fits no machine type" in is_known("why", name, "--data", tmp_path)
