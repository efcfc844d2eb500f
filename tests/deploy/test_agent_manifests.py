"""What deploy/agent installs agrees with the program, and its rights are enough and none is unused."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING

from plimsoll.cli.commands.requirements import REQUIREMENTS
from plimsoll.cli.fleet.agent import agent
from plimsoll.fleet.agent.planning.operator_versions import list_operator_versions
from plimsoll.fleet.agent.settings import LEASE, SECRET
from plimsoll.fleet.agent.wire.operator_deployments import SELECTORS, read_operator_deployments
from plimsoll.fleet.providers.data_planes.manifests import AGENT_NAMESPACE, AGENT_SECRET
from plimsoll.kube.diagnosis import Scope
from tests.deploy.manifests import container, documents, install_account, rights, rights_of
from tests.fleet.agent.agent_world import AgentWorld
from tests.fleet.agent.control_planes import build_item, build_reserved_item

if TYPE_CHECKING:
    from collections.abc import Sequence

    from plimsoll.kube.transport import Request, Response, Transport

PERMISSIONS = REQUIREMENTS["fleet-agent"].permissions


def list_needed(*scopes: Scope) -> set[str]:
    return rights_of(permission for permission in PERMISSIONS if permission.scope in scopes)


def test_rights_are_those_that_doctor_asks_for():
    assert rights("agent", "ClusterRole") == list_needed(Scope.EVERYWHERE, Scope.WATCHED)
    assert rights("agent", "Role") == list_needed(Scope.OWN_NAMESPACE)


def test_no_secret_of_others_can_be_read():
    readable = [right for right in rights("agent", "ClusterRole") if "secrets" in right]
    assert not [right for right in readable if "get" in right or "list" in right or "watch" in right]


def test_flags_of_the_deployment_are_known():
    known = {
        word
        for annotation in inspect.get_annotations(agent, eval_str=True).values()
        for option in getattr(annotation, "__metadata__", ())
        for word in (option.default, *option.param_decls)
    }
    given = [argument for argument in container("agent")["args"] if argument.startswith("--")]
    assert {argument.partition("=")[0] for argument in given} <= known
    assert f"--secret={SECRET}" in given


def test_the_secret_is_the_one_that_the_fleet_manager_makes():
    assert (SECRET, "kube-system") == (AGENT_SECRET, AGENT_NAMESPACE)


def test_probes_and_metrics_use_the_address_that_is_listened_on():
    found = container("agent")
    (port,) = found["ports"]
    assert inspect.signature(agent).parameters["address"].default == f":{port['containerPort']}"
    for probe in ("livenessProbe", "readinessProbe"):
        assert found[probe]["httpGet"] == {"path": "/healthz", "port": port["name"]}


def test_pods_keep_to_the_restricted_profile():
    (deployment,) = documents("agent/deployment.yaml")
    pod = deployment["spec"]["template"]["spec"]["securityContext"]
    assert (pod["runAsNonRoot"], pod["seccompProfile"]) == (True, {"type": "RuntimeDefault"})
    assert container("agent")["securityContext"]["capabilities"] == {"drop": ["ALL"]}


def test_the_deployment_of_our_kafka_operator_is_found_with_its_versions():
    (deployment,) = documents("kafka/deployment.yaml")
    selectors = [selector.split("=") for selector in SELECTORS]
    assert any(deployment["metadata"]["labels"].get(key) == value for key, value in selectors)
    (version,) = list_operator_versions(read_operator_deployments({"items": [deployment]}))
    assert version.kafka_versions


class _Recorded:
    """What was sent, with the status of each answer."""

    def __init__(self, inner: Transport, answered: list[tuple[str, str, int]]) -> None:
        self._inner = inner
        self._answered = answered

    async def send(self, call: Request) -> Response:
        answer = await self._inner.send(call)
        verb = "watch" if call.is_stream else call.method
        # A namespace that ends takes nothing more, also not an Event of its end.
        if b"it is being terminated" not in answer.body:
            self._answered.append((verb, call.path, answer.status))
        return answer

    async def aclose(self) -> None:
        await self._inner.aclose()


def _is_used(resource: str, verb: str, answered: Sequence[tuple[str, str, int]]) -> bool:
    """Whether a verb of a resource was sent. A list is a GET of the collection."""
    plural, _, subresource = resource.partition("/")
    methods = {"get": "GET", "list": "GET", "watch": "watch", "create": "POST", "patch": "PATCH", "delete": "DELETE"}
    for method, path, status in answered:
        parts = path.rstrip("/").split("/")
        if plural not in parts:
            continue
        rest = parts[len(parts) - parts[::-1].index(plural) :]
        is_collection, is_subresource = not rest, len(rest) > 1
        # Applying an object that does not exist creates it.
        if verb == "create" and method == "PATCH" and status == 201:
            return True
        if methods[verb] != method or is_subresource != bool(subresource):
            continue
        if verb in {"get", "list"} and is_collection != (verb == "list"):
            continue
        return True
    return False


def test_the_rights_are_enough_and_none_is_unused():
    answered: list[tuple[str, str, int]] = []
    with AgentWorld() as world:
        token = install_account(world, "agent")
        endpoint = {"bootstrapServerHost": "k-a.kas.a.example.com", "tls": {"cert": "CERT", "key": "KEY"}}
        world.list_items(build_item("a", endpoint=endpoint), build_reserved_item(1))
        world.start_agent(
            token=token,
            through=lambda port: _Recorded(port, answered) if hasattr(port, "aclose") else port,
        )
        world.pass_polls()
        world.operate().run_reserved()
        world.list_items(build_item("a", units=2, endpoint=endpoint)).pass_polls(2)
        world.list_items(build_item("a", units=2, deleted=True)).pass_polls(3)
        assert world.list_managed() == {}
        assert world.get_last("a")["reason"] == "Deleted"
    assert [(method, path) for method, path, status in answered if status == 403] == []
    # The Lease and the Secret with the parameters are those of the process, which this test does not start.
    unused = {
        (permission.resource, verb)
        for permission in PERMISSIONS
        for verb in permission.verbs
        if LEASE not in permission.names and permission.resource != "leases" and SECRET not in permission.names
        if not _is_used(permission.build_rule()["resources"][0], verb, answered)
    }
    assert unused <= {("priorityclasses", "get")}
