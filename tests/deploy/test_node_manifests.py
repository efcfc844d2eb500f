"""What deploy/ installs agrees with the program: definitions, rights, flags, addresses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from plimsoll.cli.commands.requirements import REQUIREMENTS
from plimsoll.cli.nodes.run import read_flags
from plimsoll.kube.diagnosis import Namespaces, Scope
from plimsoll.local.apiserver.authorization.rules import Rule
from plimsoll.nodes.config.options import find_flags_without_effect, read_options
from plimsoll.nodes.providers.permissions import find_provider_permissions
from tests.deploy.flag_pages import page
from tests.deploy.manifests import DEPLOY, container, documents, rights, rights_of

REPOSITORY = Path(__file__).parents[2]
DEFINITIONS = sorted((REPOSITORY / "src/plimsoll/objects/crds").glob("*.yaml"))


def needed(*, everywhere: bool) -> set[str]:
    """Of the node autoscaler, which serves ProvisioningRequests too."""
    both = (*REQUIREMENTS["nodes"].permissions, *REQUIREMENTS["requests"].permissions)
    permissions = [permission for permission in both if (permission.scope is Scope.EVERYWHERE) is everywhere]
    return rights_of(permissions)


@pytest.mark.parametrize("definition", DEFINITIONS, ids=lambda path: path.name)
def test_definitions_are_those_that_the_program_carries(definition: Path):
    [deployed] = (DEPLOY / "crds").rglob(definition.name)
    assert deployed.read_bytes() == definition.read_bytes()


def test_every_definition_is_installed_but_those_that_another_operator_brings():
    """TiDB Operator and Strimzi bring their own, which ours must not replace."""
    installed = {path.name for path in (DEPLOY / "crds").glob("*.yaml")}
    brought = {path.name for path in (DEPLOY / "crds").glob("without-*/*.yaml")}
    assert installed | brought == {path.name for path in DEFINITIONS}
    assert brought == {
        "tidbclusters.yaml",
        "kafkas.yaml",
        "kafkanodepools.yaml",
        "kafkarebalances.yaml",
        "strimzipodsets.yaml",
    }


@pytest.mark.parametrize("kustomization", sorted(DEPLOY.rglob("kustomization.yaml")), ids=lambda path: path.parent.name)
def test_deleting_an_overlay_deletes_no_definition(kustomization: Path):
    assert "CustomResourceDefinition" not in {body["kind"] for body in built(kustomization.parent)}


def built(overlay: Path) -> list[dict[str, Any]]:
    """All objects of an overlay and of those it is made from, as `kubectl delete -k` finds them."""
    (kustomization,) = yaml.safe_load_all((overlay / "kustomization.yaml").read_text())
    found: list[dict[str, Any]] = []
    for name in kustomization["resources"]:
        path = (overlay / name).resolve()
        found += built(path) if path.is_dir() else list(yaml.safe_load_all(path.read_text()))
    return found


def test_rights_in_the_whole_cluster_are_those_that_doctor_asks_for():
    assert rights("nodes", "ClusterRole") == needed(everywhere=True)


def test_rights_in_its_namespace_are_those_that_doctor_asks_for():
    assert rights("nodes", "Role") == needed(everywhere=False)
    namespaces = {
        namespace
        for permission in REQUIREMENTS["nodes"].permissions
        for namespace in permission.list_namespaces(Namespaces())
    }
    (listed,) = documents("nodes/kustomization.yaml")
    assert namespaces == {"", listed["namespace"]}


@pytest.mark.parametrize("provider", ["simulated", "clusterapi"])
def test_rights_of_a_provider_are_those_that_doctor_asks_for(provider: str):
    role = documents(f"nodes-{provider}/permissions.yaml")[0]
    granted = {single.text for rule in role["rules"] for single in Rule.from_json(rule).split_permissions()}
    policy = read_options({"cloud-provider": provider, "node-autoprovisioning": True})
    needed_by_provider = rights_of(find_provider_permissions(policy))
    # Templates of the infrastructure: which of them are read follows from the objects.
    assert {text for text in granted if "infrastructure" not in text} == needed_by_provider


@pytest.mark.parametrize("overlay", ["nodes-simulated", "nodes-externalgrpc", "nodes-clusterapi"])
def test_flags_of_the_deployment_are_known_and_have_an_effect(overlay: str):
    (kustomization,) = documents(f"{overlay}/kustomization.yaml")
    added = [
        patch["value"] for patch in yaml.safe_load(kustomization["patches"][0]["patch"]) if "/args/" in patch["path"]
    ]
    words = [
        argument
        for argument in [*container("nodes")["args"], *added]
        if argument.startswith("--") and not argument.startswith("--data")
    ]
    given = dict(read_flags(words))
    assert read_options(given).operation.provider == overlay.removeprefix("nodes-")
    assert find_flags_without_effect(given) == ()


def test_probes_and_metrics_use_the_address_that_is_listened_on():
    found = container("nodes")
    (port,) = found["ports"]
    assert read_options({}).operation.address == f":{port['containerPort']}"
    for probe in ("livenessProbe", "readinessProbe"):
        assert found[probe]["httpGet"] == {"path": "/health-check", "port": port["name"]}


def test_the_page_of_flags_lists_the_flags_as_they_are():
    written = (REPOSITORY / "docs/reference/node-flags.md").read_text()
    assert written == page(), "python -m tests.deploy.flag_pages > docs/reference/node-flags.md"
