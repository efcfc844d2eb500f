from __future__ import annotations

import pytest

from plimsoll.objects.api.events import Event, EventsV1Event
from plimsoll.objects.api.meta import WireObject
from plimsoll.objects.api.pods import Pod
from plimsoll.objects.api.resource import Resource
from plimsoll.objects.api.workloads import Deployment
from plimsoll.objects.registry import KINDS
from tests.objects.api.recordings import discovery


@pytest.mark.parametrize("resource", list(KINDS), ids=lambda kind: kind.full_name)
def test_the_table_says_what_a_real_server_says(resource: Resource):
    served = discovery()[resource.api_version, resource.plural]
    assert {
        "kind": resource.kind,
        "singularName": resource.singular,
        "namespaced": resource.namespaced,
        "shortNames": list(resource.short_names),
        "categories": list(resource.categories),
    } == {
        "kind": served["kind"],
        "singularName": served["singularName"],
        "namespaced": served["namespaced"],
        "shortNames": served.get("shortNames", []),
        "categories": served.get("categories", []),
    }


@pytest.mark.parametrize(
    ("name", "struct"),
    [
        ("po", Pod),
        ("Pod", Pod),
        ("pods", Pod),
        ("deploy", Deployment),
        ("deployments.apps", Deployment),
        ("deploy.v1.apps", Deployment),
        ("events", Event),
        ("events.events.k8s.io", EventsV1Event),
    ],
)
def test_a_kind_is_found_by_the_names_kubectl_takes(name: str, struct: type[WireObject]):
    found = KINDS.find_by_name(name)
    assert found
    assert found.struct is struct


@pytest.mark.parametrize("name", ["", ".", "podz", "pods.apps", "deployments.v2.apps"])
def test_an_unknown_name_finds_nothing(name: str):
    assert KINDS.find_by_name(name) is None


def test_lookups_by_kind_plural_and_struct_agree():
    for kind in KINDS:
        assert KINDS.find_by_kind(kind.api_version, kind.kind) is kind
        assert KINDS.find_by_plural(kind.api_version, kind.plural) is kind
        assert KINDS.find_by_struct(kind.struct) is kind


def test_the_same_kind_in_another_version_is_not_found():
    assert KINDS.find_by_kind("apps/v1beta1", "Deployment") is None
    assert KINDS.find_by_kind("v1", "Deployment") is None


@pytest.mark.parametrize(
    ("kind", "namespace", "name", "path"),
    [
        ("pods", "", "", "/api/v1/pods"),
        ("pods", "a", "", "/api/v1/namespaces/a/pods"),
        ("deployments", "a", "b", "/apis/apps/v1/namespaces/a/deployments/b"),
        ("nodes", "", "n", "/api/v1/nodes/n"),
        ("nodes", "ignored", "n", "/api/v1/nodes/n"),
    ],
)
def test_a_path_is_where_the_server_has_the_object(kind: str, namespace: str, name: str, path: str):
    resource = KINDS.find_by_name(kind)
    assert resource
    assert resource.build_path(namespace, name) == path


class Kafka(WireObject):
    pass


def test_custom_kinds_join_without_changing_the_table():
    kafka = Resource(
        group="kafka.strimzi.io",
        version="v1beta2",
        kind="Kafka",
        plural="kafkas",
        singular="kafka",
        namespaced=True,
        struct=Kafka,
        short_names=("k", "po"),
    )
    extended = KINDS.extend([kafka])
    assert extended.find_by_name("k") is kafka
    assert extended.find_by_name("po") is not kafka, "a short name that is taken stays with its first owner"
    assert KINDS.find_by_name("k") is None
    assert len(extended) == len(KINDS) + 1
    assert kafka.list_kind == "KafkaList"
