"""What deploy/kafka installs agrees with the program: rights, flags, addresses; and the rights are enough."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import pytest
import yaml

from plimsoll.cli.commands.requirements import REQUIREMENTS
from plimsoll.cli.kafka.run import kafka
from plimsoll.kafka.rivals import refuse_rivals
from plimsoll.kube.diagnosis import Scope
from plimsoll.local.apiserver.authorization.rules import Rule
from tests.app.kafka.kafka_world import KafkaWorld
from tests.kafka.controllers.operator_bench import MB

DEPLOY = Path(__file__).parents[2] / "deploy" / "kafka"


def documents(file: str) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all((DEPLOY / file).read_text()))


def rights(kind: str) -> set[str]:
    (role,) = [document for document in documents("permissions.yaml") if document["kind"] == kind]
    return {single.text for rule in role["rules"] for single in Rule.from_json(rule).split_permissions()}


def needed(*scopes: Scope) -> set[str]:
    permissions = [permission for permission in REQUIREMENTS["kafka"].permissions if permission.scope in scopes]
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
        permission for permission in REQUIREMENTS["kafka"].permissions if permission.scope is Scope.WITH_OBJECTS
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
        for get_annotation in inspect.get_annotations(kafka, eval_str=True).values()
        for option in getattr(get_annotation, "__metadata__", ())
        for word in (option.default, *option.param_decls)
    }
    assert {argument.partition("=")[0] for argument in container["args"] if argument.startswith("--")} <= known


def test_probes_and_metrics_use_the_address_that_is_listened_on(container: dict[str, Any]):
    (port,) = container["ports"]
    assert inspect.signature(kafka).parameters["address"].default == f":{port['containerPort']}"
    for probe in ("livenessProbe", "readinessProbe"):
        assert container[probe]["httpGet"] == {"path": "/healthz", "port": port["name"]}


def test_pods_keep_to_the_restricted_profile(container: dict[str, Any]):
    (deployment,) = documents("deployment.yaml")
    pod = deployment["spec"]["template"]["spec"]["securityContext"]
    assert (pod["runAsNonRoot"], pod["seccompProfile"]) == (True, {"type": "RuntimeDefault"})
    own = container["securityContext"]
    assert own["capabilities"] == {"drop": ["ALL"]}
    assert (own["allowPrivilegeEscalation"], own["readOnlyRootFilesystem"]) == (False, True)


def test_the_rights_are_enough_for_a_broker_that_comes_and_goes():
    with KafkaWorld() as world:
        for document in [*documents("service-account.yaml"), *documents("permissions.yaml")]:
            place = "" if document["kind"].startswith("Cluster") else "/namespaces/kube-system"
            api = "/api/v1" if document["kind"] == "ServiceAccount" else "/apis/rbac.authorization.k8s.io/v1"
            world.made(f"{api}{place}/{document['kind'].lower()}s", document)
        path = "/api/v1/namespaces/kube-system/serviceaccounts/plimsoll-kafka/token"
        token = world.made(path, {"spec": {"expirationSeconds": 36_000}})["status"]["token"]
        operator = world.start_process("operator", token=token)
        world.make_kafka()
        world.make_pool()
        world.advance_until(lambda: "clusterId" in world.status_of_kafka, within_s=120)
        world.brokers.create_topic("orders", [[n % 3, (n + 1) % 3] for n in range(30)], size_bytes=MB)
        world.scale(4)
        world.advance_until(lambda: world.state == "Rebalancing", within_s=60)
        world.advance_until(lambda: world.lists == ([], []) and not world.rebalances, within_s=300)
        world.scale(3)
        world.advance_until(lambda: len(world.pods) == 3 and not world.rebalances, within_s=300)
        world.run.run_until(refuse_rivals(operator.process.client, ""))
        assert world.count_replicas(3) == 0
        refused = [call for call, status in operator.process.transport.answered if status == 403]
        assert refused == []
