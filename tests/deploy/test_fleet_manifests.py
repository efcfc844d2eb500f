"""What deploy/fleet installs agrees with the program, and its account has no rights where it runs."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING

import pytest
import yaml

from plimsoll.app.fleet.process import Addresses
from plimsoll.cli.commands.requirements import REQUIREMENTS
from plimsoll.cli.fleet.run import fleet
from plimsoll.fleet.config.files import FILE_NAMES, FleetFiles, read_configuration
from plimsoll.fleet.model.statuses import ScalingType
from plimsoll.local.apiserver.authorization.rules import Rule
from tests.deploy.manifests import DEPLOY, container, documents, rights_of

if TYPE_CHECKING:
    from pathlib import Path

FOLDER = DEPLOY / "fleet"
MANAGEMENT = "management-cluster.yaml"


def list_installed() -> list[dict[str, object]]:
    (kustomization,) = documents("fleet/kustomization.yaml")
    return [document for file in kustomization["resources"] for document in documents(f"fleet/{file}")]


def test_all_files_are_installed_but_those_of_another_cluster():
    (kustomization,) = documents("fleet/kustomization.yaml")
    files = {file.name for file in FOLDER.glob("*.yaml")}
    assert files == {*kustomization["resources"], "kustomization.yaml", MANAGEMENT}


def test_the_account_has_no_rights_and_no_token_where_it_runs():
    kinds = {document["kind"] for document in list_installed()}
    assert kinds == {"ServiceAccount", "PersistentVolumeClaim", "Deployment", "Service", "NetworkPolicy"}
    (account,) = documents("fleet/service-account.yaml")
    (deployment,) = documents("fleet/deployment.yaml")
    pod = deployment["spec"]["template"]["spec"]
    assert account["automountServiceAccountToken"] is pod["automountServiceAccountToken"] is False
    assert pod["serviceAccountName"] == account["metadata"]["name"]


def test_rights_in_a_management_cluster_are_those_that_doctor_asks_for():
    (role,) = [document for document in documents(f"fleet/{MANAGEMENT}") if document["kind"] == "ClusterRole"]
    granted = {single.text for rule in role["rules"] for single in Rule.from_json(rule).split_permissions()}
    assert granted == rights_of(REQUIREMENTS["fleet"].permissions)


def test_flags_of_the_deployment_are_known():
    known = {
        word
        for annotation in inspect.get_annotations(fleet, eval_str=True).values()
        for option in getattr(annotation, "__metadata__", ())
        for word in (option.default, *option.param_decls)
        if isinstance(word, str)
    }
    given = [argument for argument in container("fleet")["args"] if argument.startswith("--")]
    assert {argument.partition("=")[0] for argument in given} <= known


def test_files_named_by_flags_are_in_volumes_that_are_mounted():
    found = container("fleet")
    mounted = [mount["mountPath"] for mount in found["volumeMounts"]]
    paths = [argument.partition("=")[2] for argument in found["args"] if argument.partition("=")[2].startswith("/")]
    assert paths
    assert [path for path in paths if not any(path.startswith(mount) for mount in mounted)] == []
    (deployment,) = documents("fleet/deployment.yaml")
    assert {volume["name"] for volume in deployment["spec"]["template"]["spec"]["volumes"]} == {
        mount["name"] for mount in found["volumeMounts"]
    }


def test_probes_and_metrics_use_the_addresses_that_are_listened_on():
    found = container("fleet")
    ports = {port["name"]: port["containerPort"] for port in found["ports"]}
    given = dict(
        argument.split("=", 1) for argument in found["args"] if "-listen" in argument or "--listen" in argument
    )
    assert given == {
        "--listen": f":{ports['api']}",
        "--health-listen": f":{ports['health']}",
        "--metrics-listen": f":{ports['metrics']}",
    }
    defaults = Addresses()
    assert [defaults.api, defaults.health, defaults.metrics] == [f"127.0.0.1{address}" for address in given.values()]
    assert found["livenessProbe"]["httpGet"] == {"path": "/livez", "port": "health"}
    assert found["readinessProbe"]["httpGet"] == {"path": "/readyz", "port": "health"}
    (service,) = documents("fleet/service.yaml")
    assert {port["name"]: port["port"] for port in service["spec"]["ports"]} == {
        name: port for name, port in ports.items() if name != "health"
    }


def test_pods_keep_to_the_restricted_profile():
    (deployment,) = documents("fleet/deployment.yaml")
    pod = deployment["spec"]["template"]["spec"]["securityContext"]
    assert (pod["runAsNonRoot"], pod["seccompProfile"]) == (True, {"type": "RuntimeDefault"})
    security = container("fleet")["securityContext"]
    assert security["capabilities"] == {"drop": ["ALL"]}
    assert security["readOnlyRootFilesystem"] is True


def test_the_configuration_is_complete_and_turns_no_scaling_on():
    (kustomization,) = documents("fleet/kustomization.yaml")
    (generator,) = kustomization["configMapGenerator"]
    assert sorted(generator["files"]) == sorted(f"config/{file.name}" for file in (FOLDER / "config").iterdir())
    configuration = read_configuration(FleetFiles(scaling_type=ScalingType.AUTO, directory=str(FOLDER / "config")))
    assert not configuration.policy.scale_up_enabled
    assert not configuration.policy.scale_down_enabled


@pytest.mark.parametrize("file", sorted((FOLDER / "config").iterdir()), ids=lambda file: file.name)
def test_configuration_files_are_the_examples(file: Path):
    """Two copies that differ would be two documentations."""
    assert file.name in FILE_NAMES.values()
    example = DEPLOY.parent / "examples" / "fleet" / "config" / file.name
    assert yaml.safe_load(file.read_text()) == yaml.safe_load(example.read_text())
