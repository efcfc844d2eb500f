from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import given, settings
from hypothesis import strategies as st

from plimsoll.cli.commands.requirements import REQUIREMENTS
from plimsoll.kube.diagnosis import Finding, Namespaces
from plimsoll.kube.diagnosis.permissions import build_role_manifests
from tests.kube.diagnosis.examinations import GUEST, DiagnosedCluster, InterceptingTransport, found, questions
from tests.kube.embedded_api import status_reply

if TYPE_CHECKING:
    from plimsoll.kube.transport import Request, Response
    from tests.golden.reviewed_sentences import ReviewedSentences

ACCOUNT = "system:serviceaccount:kube-system:plimsoll"


def reported_missing(finding: Finding) -> set[tuple[str, ...]]:
    def target(one: dict[str, str]) -> str:
        resource = f"{one['resource']}.{one['group']}" if one["group"] else one["resource"]
        return f"{resource}/{one['subresource']}" if one["subresource"] else resource

    return {
        (detail["verb"], target(detail), detail["namespace"], detail["name"]) for detail in finding.details["missing"]
    }


def is_granted(asked: tuple[str, ...], granted: set[tuple[str, ...]]) -> bool:
    """Whether a verb is granted for that object, or for more: for all names, or in all namespaces."""
    verb, target, namespace, name = asked
    return any((verb, target, place, named) in granted for place in ("", namespace) for named in ("", name))


def test_an_administrator_has_everything():
    with DiagnosedCluster() as cluster:
        examination = cluster.examined()
    assert examination.is_healthy
    assert {found(examination, f"permissions.{name}").level for name in REQUIREMENTS} == {"ok"}


def test_a_stranger_lacks_everything_and_each_is_reported_with_its_reason():
    with DiagnosedCluster() as cluster:
        examination = cluster.examined("nodes", token=GUEST)
    finding = found(examination, "permissions.nodes")
    assert not examination.is_healthy
    assert finding.level == "fail"
    assert reported_missing(finding) == questions(REQUIREMENTS["nodes"].permissions, Namespaces())
    assert "to drain nodes before they are deleted" in finding.fix
    assert '{apiGroups: [""], resources: ["pods/eviction"], verbs: ["create"]}' in finding.fix


@given(data=st.data(), controller=st.sampled_from([*REQUIREMENTS]))
@settings(max_examples=6, deadline=None)
def test_exactly_what_no_role_grants_is_missing_and_the_manifests_mend_it(data: st.DataObject, controller: str):
    permissions = REQUIREMENTS[controller].permissions
    namespaces = Namespaces(own="default", watched=data.draw(st.sampled_from(["", "default"])))
    granted = data.draw(st.lists(st.sampled_from(permissions), unique_by=id))
    with DiagnosedCluster() as cluster:
        token = cluster.service_account(namespace=namespaces.own)
        user = f"system:serviceaccount:{namespaces.own}:plimsoll"
        cluster.apply(*build_role_manifests(granted, role="some", user=user, namespaces=namespaces))
        finding = found(cluster.examined(controller, token=token, namespaces=namespaces), f"permissions.{controller}")
        answered = questions(granted, namespaces)
        expected = {asked for asked in questions(permissions, namespaces) if not is_granted(asked, answered)}
        assert reported_missing(finding) == expected if expected else finding.level == "ok"
        cluster.apply(*finding.details.get("manifests", ()))
        assert found(cluster.examined(controller, token=token, namespaces=namespaces), finding.check).level == "ok"


def test_with_a_namespace_only_that_one_is_asked_about():
    namespaces = Namespaces(own="kafka", watched="kafka")
    with DiagnosedCluster() as cluster:
        cluster.namespace("kafka")
        token = cluster.service_account(namespace="kafka")
        user = "system:serviceaccount:kafka:plimsoll"
        manifests = build_role_manifests(
            REQUIREMENTS["kafka"].permissions, role="kafka", user=user, namespaces=namespaces
        )
        assert {manifest["kind"] for manifest in manifests} == {"Role", "RoleBinding"}
        cluster.apply(*manifests)
        inside = cluster.examined("kafka", token=token, namespaces=namespaces)
        everywhere = cluster.examined("kafka", token=token)
    assert found(inside, "permissions.kafka").level == "ok"
    assert found(everywhere, "permissions.kafka").level == "fail"


def test_a_controller_of_all_namespaces_needs_secrets_only_in_namespaces_with_its_objects():
    with DiagnosedCluster() as cluster:
        cluster.define("kafkas", "kafka.strimzi.io", "v1")
        for namespace in ("kafka", "more", "other"):
            cluster.namespace(namespace)
        for namespace in ("kafka", "more"):
            kafka = {"apiVersion": "kafka.strimzi.io/v1", "kind": "Kafkas", "metadata": {"name": "k"}}
            cluster.made(f"/apis/kafka.strimzi.io/v1/namespaces/{namespace}/kafkas", kafka)
        token = cluster.service_account()
        seeing = [permission for permission in REQUIREMENTS["kafka"].permissions if permission.resource == "kafkas"]
        cluster.apply(*build_role_manifests(seeing, role="seeing", user=ACCOUNT, namespaces=Namespaces()))
        finding = found(cluster.examined("kafka", token=token), "permissions.kafka")
    assert {rule[2] for rule in reported_missing(finding) if rule[1] == "secrets"} == {"kafka", "more"}
    granted = {
        manifest["metadata"].get("namespace", "")
        for manifest in finding.details["manifests"]
        for rule in manifest.get("rules", ())
        if "secrets" in rule["resources"]
    }
    assert granted == {"kafka", "more"}
    assert "get secrets: granted only in namespaces that hold kafkas.kafka.strimzi.io (kafka, more)" in finding.fix


def test_only_controllers_that_create_namespaces_need_secrets_everywhere():
    broad = {
        name
        for name, needs in REQUIREMENTS.items()
        for permission in needs.permissions
        if permission.resource == "secrets" and "" in permission.list_namespaces(Namespaces())
    }
    assert broad == {"fleet", "fleet-agent"}


def test_the_roles_are_written_by_the_same_command_as_the_user_and_applied_by_an_administrator():
    again = "plimsoll doctor --kubeconfig 'my config' -n kafka -o json"
    with DiagnosedCluster() as cluster:
        namespaces = Namespaces(own="kafka", watched="kafka")
        finding = found(
            cluster.examined("kafka", token=GUEST, namespaces=namespaces, invocation=again), "permissions.kafka"
        )
    lines = finding.fix.splitlines()
    selected = """.findings[] | select(.check == "permissions.kafka") | .details.manifests[]"""
    assert lines[-4:] == [
        "run this as guest, the subject of the bindings:",
        f"  {again} | jq '{selected}' > plimsoll-kafka.json",
        "then apply them as an administrator of the same cluster:",
        "  kubectl apply -f plimsoll-kafka.json",
    ]
    assert {detail["metadata"].get("namespace") for detail in finding.details["manifests"]} == {"kafka"}


def test_a_server_that_does_not_answer_reviews_is_no_permission(reviewed: ReviewedSentences):
    class NoReviews(InterceptingTransport):
        async def send(self, call: Request) -> Response:
            if call.path.endswith("selfsubjectaccessreviews"):
                return status_reply(403, "reviews are forbidden", reason="Forbidden")
            return await self.inner.send(call)

    with DiagnosedCluster() as cluster:
        finding = found(cluster.examined("nodes", through=NoReviews), "permissions.nodes")
    assert finding.level == "fail"
    reviewed(finding.message)


def test_each_question_is_asked_once_and_only_a_few_at_a_time():
    asked: list[bytes] = []
    under_way = [0, 0]

    class Counting(InterceptingTransport):
        async def send(self, call: Request) -> Response:
            under_way[0] += 1
            under_way[1] = max(under_way)
            if call.path.endswith("selfsubjectaccessreviews"):
                asked.append(call.body)
            await cluster.clock.sleep(0.01)
            try:
                return await self.inner.send(call)
            finally:
                under_way[0] -= 1

    with DiagnosedCluster() as cluster:
        cluster.examined(through=Counting)
    assert len(asked) == len(set(asked)) > 100
    assert 1 < under_way[1] <= 8
