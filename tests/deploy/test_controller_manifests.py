"""What deploy/tidb and deploy/kafka install agrees with the program: rights, flags, addresses."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING

import pytest

from plimsoll.cli.commands.requirements import REQUIREMENTS
from plimsoll.cli.kafka.run import kafka
from plimsoll.cli.tidb.run import tidb
from plimsoll.kube.diagnosis import Scope
from tests.deploy.manifests import container, documents, rights, rights_of

if TYPE_CHECKING:
    from collections.abc import Callable

COMMANDS = {"kafka": kafka, "tidb": tidb}
CONTROLLERS = pytest.mark.parametrize("subsystem", COMMANDS)


def needed(subsystem: str, *scopes: Scope) -> set[str]:
    return rights_of(permission for permission in REQUIREMENTS[subsystem].permissions if permission.scope in scopes)


@CONTROLLERS
def test_rights_are_those_that_doctor_asks_for(subsystem: str):
    assert rights(subsystem, "ClusterRole") == needed(subsystem, Scope.EVERYWHERE, Scope.WATCHED)
    assert rights(subsystem, "Role") == needed(subsystem, Scope.OWN_NAMESPACE)


@CONTROLLERS
def test_secrets_are_granted_by_name_and_only_where_it_is_applied(subsystem: str):
    role, binding = documents(f"{subsystem}/secrets-of-a-cluster.yaml")
    (permission,) = [
        permission for permission in REQUIREMENTS[subsystem].permissions if permission.scope is Scope.WITH_OBJECTS
    ]
    (rule,) = role["rules"]
    assert (rule["resources"], tuple(rule["verbs"])) == ([permission.resource], permission.verbs)
    assert rule["resourceNames"]
    assert binding["roleRef"]["name"] == role["metadata"]["name"]
    (kustomization,) = documents(f"{subsystem}/kustomization.yaml")
    assert "secrets-of-a-cluster.yaml" not in kustomization["resources"]


@pytest.mark.parametrize(("subsystem", "command"), COMMANDS.items())
def test_flags_of_the_deployment_are_known(subsystem: str, command: Callable[..., None]):
    known = {
        word
        for annotation in inspect.get_annotations(command, eval_str=True).values()
        for option in getattr(annotation, "__metadata__", ())
        for word in (option.default, *option.param_decls)
    }
    given = {argument.partition("=")[0] for argument in container(subsystem)["args"] if argument.startswith("--")}
    assert given
    assert given <= known


@pytest.mark.parametrize(("subsystem", "command"), COMMANDS.items())
def test_probes_and_metrics_use_the_address_that_is_listened_on(subsystem: str, command: Callable[..., None]):
    found = container(subsystem)
    (port,) = found["ports"]
    assert inspect.signature(command).parameters["address"].default == f":{port['containerPort']}"
    for probe in ("livenessProbe", "readinessProbe"):
        assert found[probe]["httpGet"] == {"path": "/healthz", "port": port["name"]}


@pytest.mark.parametrize("subsystem", [*COMMANDS, "nodes"])
def test_pods_keep_to_the_restricted_profile(subsystem: str):
    (deployment,) = documents(f"{subsystem}/deployment.yaml")
    pod = deployment["spec"]["template"]["spec"]["securityContext"]
    assert (pod["runAsNonRoot"], pod["seccompProfile"]) == (True, {"type": "RuntimeDefault"})
    own = container(subsystem)["securityContext"]
    assert own["capabilities"] == {"drop": ["ALL"]}
    assert (own["allowPrivilegeEscalation"], own["readOnlyRootFilesystem"]) == (False, True)
