"""What deploy/tidb installs agrees with the program: rights, flags, addresses; and the rights are enough to scale."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import pytest
import yaml

from plimsoll.cli.commands.requirements import REQUIREMENTS
from plimsoll.cli.tidb.run import tidb
from plimsoll.kube.diagnosis import Scope
from plimsoll.local.apiserver.authorization.rules import Rule
from plimsoll.local.apiserver.transport.kube_transport import EmbeddedTransport
from tests.tidb.autoscaled_clusters import AUTO, AutoscaledCluster, EmbeddedServer, group

DEPLOY = Path(__file__).parents[2] / "deploy" / "tidb"


def documents(file: str) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all((DEPLOY / file).read_text()))


def rights(kind: str) -> set[str]:
    (role,) = [document for document in documents("permissions.yaml") if document["kind"] == kind]
    return {single.text for rule in role["rules"] for single in Rule.from_json(rule).split_permissions()}


def needed(*scopes: Scope) -> set[str]:
    permissions = [permission for permission in REQUIREMENTS["tidb"].permissions if permission.scope in scopes]
    return {
        single.text
        for permission in permissions
        for single in Rule.from_json(permission.build_rule()).split_permissions()
    }


@pytest.fixture
def container() -> dict[str, Any]:
    (deployment,) = documents("deployment.yaml")
    (found,) = deployment["spec"]["template"]["spec"]["containers"]
    return found


def test_rights_are_those_that_doctor_asks_for():
    assert rights("ClusterRole") == needed(Scope.EVERYWHERE, Scope.WATCHED)
    assert rights("Role") == needed(Scope.OWN_NAMESPACE)


def test_secrets_are_granted_by_name_and_only_where_it_is_applied():
    role, binding = documents("secrets-of-a-cluster.yaml")
    (permission,) = [
        permission for permission in REQUIREMENTS["tidb"].permissions if permission.scope is Scope.WITH_OBJECTS
    ]
    (rule,) = role["rules"]
    assert (rule["resources"], tuple(rule["verbs"])) == ([permission.resource], permission.verbs)
    assert rule["resourceNames"]
    assert binding["roleRef"]["name"] == role["metadata"]["name"]
    (kustomization,) = documents("kustomization.yaml")
    assert "secrets-of-a-cluster.yaml" not in kustomization["resources"]


def test_flags_of_the_deployment_are_known(container: dict[str, Any]):
    known = {
        word
        for get_annotation in inspect.get_annotations(tidb, eval_str=True).values()
        for option in getattr(get_annotation, "__metadata__", ())
        for word in (option.default, *option.param_decls)
    }
    assert {argument.partition("=")[0] for argument in container["args"] if argument.startswith("--")} <= known


def test_probes_and_metrics_use_the_address_that_is_listened_on(container: dict[str, Any]):
    (port,) = container["ports"]
    assert inspect.signature(tidb).parameters["address"].default == f":{port['containerPort']}"
    for probe in ("livenessProbe", "readinessProbe"):
        assert container[probe]["httpGet"] == {"path": "/healthz", "port": port["name"]}


def test_pods_keep_to_the_restricted_profile(container: dict[str, Any]):
    (deployment,) = documents("deployment.yaml")
    pod = deployment["spec"]["template"]["spec"]["securityContext"]
    assert (pod["runAsNonRoot"], pod["seccompProfile"]) == (True, {"type": "RuntimeDefault"})
    own = container["securityContext"]
    assert own["capabilities"] == {"drop": ["ALL"]}
    assert (own["allowPrivilegeEscalation"], own["readOnlyRootFilesystem"]) == (False, True)


def test_the_rights_are_enough_for_a_group_that_comes_and_goes():
    with AutoscaledCluster(EmbeddedServer, drains_actively=True) as world:
        assert isinstance(world.server, EmbeddedServer)
        server = world.server.world
        for document in [*documents("service-account.yaml"), *documents("permissions.yaml")]:
            place = "" if document["kind"].startswith("Cluster") else "/namespaces/kube-system"
            api = "/api/v1" if document["kind"] == "ServiceAccount" else "/apis/rbac.authorization.k8s.io/v1"
            server.made(f"{api}{place}/{document['kind'].lower()}s", document)
        path = "/api/v1/namespaces/kube-system/serviceaccounts/plimsoll-tidb/token"
        token = server.made(path, {"spec": {"expirationSeconds": 36_000}})["status"]["token"]
        world.autoscaler().cluster()

        def once(at_s: float) -> None:
            world.once(at_s, transport=EmbeddedTransport(server.application, token=token))

        world.planner.says(group(1))
        once(0)
        assert world.clusters == [AUTO, "db"]
        world.planner.says()
        for number in range(4):
            once(700 + 30 * number)
        assert world.clusters == ["db"]
