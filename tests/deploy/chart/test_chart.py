"""The chart: one truth for the manifests in deploy/, every option described, safe pods, and closed pages."""

from __future__ import annotations

import itertools
import json
import subprocess
from typing import TYPE_CHECKING, Any

import pytest
import yaml

import plimsoll
from tests.deploy.chart.network_policies import Peer, is_let_in
from tests.deploy.chart.rendered_manifests import (
    CHART,
    DEPLOY,
    DIGESTS,
    OVERLAYS,
    compute_digests,
    find_helm,
    render_all,
    render_chart,
)
from tests.deploy.manifests import documents

if TYPE_CHECKING:
    from collections.abc import Iterator

SCHEMA = json.loads((CHART / "values.schema.json").read_text())
VALUES = yaml.safe_load((CHART / "values.yaml").read_text())
SWITCHES = ("nodes", "requests", "tidb", "kafka", "agent", "fleet", "console")
LEADING = ("nodes", "tidb", "kafka", "agent")
DEPLOYED = (*LEADING, "fleet", "console")
PORTS = {"nodes": 8085, "tidb": 8087, "kafka": 8088, "agent": 8089, "fleet": 8080, "console": 8080}
UNTYPED_BELOW = {"resources", "podAnnotations", "nodeSelector", "labels"}
"""Options whose keys are the user's or Kubernetes' own."""


def need_helm() -> None:
    if find_helm() is None:
        pytest.skip("helm is not installed: go install helm.sh/helm/v3/cmd/helm@v3.19.2")


def find_deployment(component: str) -> dict[str, Any]:
    (deployment,) = documents(f"{component}/deployment.yaml")
    return deployment


def list_options(values: dict[str, Any], path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for key, value in values.items():
        yield (*path, key)
        if isinstance(value, dict) and key not in UNTYPED_BELOW:
            yield from list_options(value, (*path, key))


def find_schema(option: tuple[str, ...]) -> dict[str, Any]:
    found: dict[str, Any] = SCHEMA
    for key in option:
        found = found["properties"][key]
    return found


def list_described(schema: dict[str, Any], path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for key, inner in schema.get("properties", {}).items():
        yield (*path, key)
        yield from list_described(inner, (*path, key))


# ---- one truth


def test_the_manifests_are_those_of_the_chart_that_was_rendered_last():
    """Without helm: neither the chart nor a rendered file has changed since."""
    assert json.loads(DIGESTS.read_text()) == compute_digests(), "make render"


def test_every_file_is_what_helm_renders_now():
    need_helm()
    for name, text in render_all().items():
        assert (DEPLOY / name).read_text() == text, "make render"


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_a_kustomization_lists_every_rendered_file(overlay: str):
    (kustomization,) = documents(f"{overlay}/kustomization.yaml")
    rendered = {name.split("/")[1] for name in json.loads(DIGESTS.read_text()) if name.startswith(f"{overlay}/")}
    listed = {name for name in kustomization["resources"] if not name.startswith("..")}
    assert listed == rendered


def test_the_chart_has_the_version_of_the_program():
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert chart["version"] == chart["appVersion"] == plimsoll.__version__
    images = {
        container["image"]
        for component in DEPLOYED
        for container in find_deployment(component)["spec"]["template"]["spec"]["containers"]
    }
    assert images == {f"plimsoll:{plimsoll.__version__}"}


# ---- options


@pytest.mark.parametrize("option", list(list_options(VALUES)), ids=".".join)
def test_an_option_is_typed_and_described(option: tuple[str, ...]):
    schema = find_schema(option)
    assert schema["description"].endswith(".")
    assert schema["type"] in {"string", "boolean", "integer", "array", "object"}
    assert schema["type"] != "object" or "additionalProperties" in schema or option[-1] in UNTYPED_BELOW


def test_no_option_is_described_that_has_no_default():
    described = {option for option in list_described(SCHEMA) if option != ("global",)}
    assert described == set(list_options(VALUES))


@pytest.mark.parametrize(
    ("value", "named"),
    [
        ("nodez.enabled=true", "nodez"),
        ("replicas=0", "replicas"),
        ("nodes.enabled=perhaps", "nodes"),
        ("nodes.provider.name=aws", "provider"),
        ("image.digest=latest", "digest"),
    ],
)
def test_a_wrong_value_is_refused_by_name(value: str, named: str):
    need_helm()
    with pytest.raises(subprocess.CalledProcessError) as refused:
        render_chart(value)
    assert named in refused.value.stderr


@pytest.mark.parametrize("pair", list(itertools.combinations(SWITCHES, 2)), ids="-".join)
def test_any_two_components_render_together(pair: tuple[str, str]):
    need_helm()
    values = [f"{name}.enabled=true" for name in pair]
    if "requests" in pair and "nodes" not in pair:
        with pytest.raises(subprocess.CalledProcessError) as refused:
            render_chart(*values)
        assert "requests.enabled needs nodes.enabled" in refused.value.stderr
        return
    rendered = render_chart(*values)
    kinds = [body["kind"] for text in rendered.values() for body in yaml.safe_load_all(text) if body]
    assert kinds.count("Deployment") == len(set(pair) - {"requests"})
    assert {path.split("/")[0] for path in rendered} - {"definitions", "nodes-simulated"} == set(pair) - {"requests"}


def test_rights_for_requests_are_granted_only_where_they_are_served():
    need_helm()
    without = render_chart("nodes.enabled=true")["nodes/permissions.yaml"]
    with_requests = render_chart("nodes.enabled=true", "requests.enabled=true")["nodes/permissions.yaml"]
    assert "provisioningrequests" not in without
    assert "provisioningrequests" in with_requests


# ---- pods


@pytest.mark.parametrize("component", DEPLOYED)
def test_pods_are_restricted(component: str):
    """The profile `restricted` of the Pod Security Standards, and no writable root."""
    pod = find_deployment(component)["spec"]["template"]["spec"]
    assert not {"hostNetwork", "hostPID", "hostIPC"} & set(pod)
    assert pod["securityContext"]["runAsNonRoot"]
    assert (pod["securityContext"]["runAsUser"], pod["securityContext"]["runAsGroup"]) == (65532, 65532)
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert {next(iter(set(volume) - {"name"})) for volume in pod["volumes"]} <= {
        "emptyDir",
        "configMap",
        "secret",
        "persistentVolumeClaim",
    }
    for container in pod["containers"]:
        security = container["securityContext"]
        assert not security["allowPrivilegeEscalation"]
        assert security["readOnlyRootFilesystem"]
        assert security["capabilities"] == {"drop": ["ALL"]}
        assert "hostPort" not in str(container)


@pytest.mark.parametrize("component", LEADING)
def test_a_controller_survives_the_loss_of_a_replica(component: str):
    deployment = find_deployment(component)
    assert deployment["spec"]["replicas"] == 2
    assert deployment["spec"]["strategy"]["rollingUpdate"] == {"maxSurge": 1, "maxUnavailable": 0}
    labels = deployment["spec"]["template"]["metadata"]["labels"]
    spread = deployment["spec"]["template"]["spec"]["topologySpreadConstraints"]
    assert [entry["topologyKey"] for entry in spread] == ["kubernetes.io/hostname", "topology.kubernetes.io/zone"]
    assert all(entry["labelSelector"] == {"matchLabels": labels} for entry in spread)
    (budget,) = documents(f"{component}/disruption-budget.yaml")
    assert budget["spec"] == {"maxUnavailable": 1, "selector": {"matchLabels": labels}}


@pytest.mark.parametrize("component", DEPLOYED)
def test_a_container_is_probed_and_bounded(component: str):
    (container,) = find_deployment(component)["spec"]["template"]["spec"]["containers"]
    assert {"livenessProbe", "readinessProbe"} <= set(container)
    assert set(container["resources"]["requests"]) == {"cpu", "memory"}
    assert "memory" in container["resources"]["limits"]


# ---- who may connect


@pytest.mark.parametrize("component", DEPLOYED)
def test_only_the_listed_pods_reach_the_pages(component: str):
    policies = documents(f"{component}/network-policy.yaml")
    deployment = find_deployment(component)
    target = Peer(namespace="kube-system", labels=deployment["spec"]["template"]["metadata"]["labels"])
    monitoring, stranger = Peer(namespace="monitoring"), Peer(namespace="team-a", labels={"app": "curl"})
    neighbour = Peer(namespace="kube-system", labels={"app": "curl"})
    port = PORTS[component]
    assert is_let_in(policies, monitoring, target, port=port) is (component != "console")
    assert not is_let_in(policies, stranger, target, port=port)
    assert not is_let_in(policies, neighbour, target, port=port)
    assert not is_let_in(policies, monitoring, target, port=9999)
    assert is_let_in(policies, stranger, Peer(namespace="kube-system", labels={"app": "other"}), port=port)


def test_the_api_of_a_fleet_is_reached_only_from_where_the_values_say():
    need_helm()
    rendered = render_chart("fleet.enabled=true", "fleet.apiFrom[0].podSelector.matchLabels.app=gateway")
    assert "namespaceSelector: {}" not in rendered["fleet/network-policy.yaml"]
    policies = list(yaml.safe_load_all(rendered["fleet/network-policy.yaml"]))
    target = Peer(namespace="kube-system", labels={"app": "plimsoll-fleet"})
    assert is_let_in(policies, Peer(namespace="kube-system", labels={"app": "gateway"}), target, port=8000)
    assert not is_let_in(policies, Peer(namespace="kube-system", labels={"app": "other"}), target, port=8000)
    assert not is_let_in(policies, Peer(namespace="monitoring"), target, port=8000)


def test_several_fleet_managers_need_a_volume_that_all_mount():
    need_helm()
    with pytest.raises(subprocess.CalledProcessError) as refused:
        render_chart("fleet.enabled=true", "fleet.replicas=2")
    assert "fleet.data.accessMode must be ReadWriteMany" in refused.value.stderr
    rendered = render_chart("fleet.enabled=true", "fleet.replicas=2", "fleet.data.accessMode=ReadWriteMany")
    (deployment,) = yaml.safe_load_all(rendered["fleet/deployment.yaml"])
    assert (deployment["spec"]["replicas"], "type" in deployment["spec"]["strategy"]) == (2, False)
    assert "fleet/disruption-budget.yaml" in rendered
