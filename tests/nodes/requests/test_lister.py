"""What informers show of ProvisioningRequests, and of a server that does not know them."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from plimsoll.kube.informer.factory import SharedInformerFactory
from plimsoll.nodes.config.options import read_options
from plimsoll.nodes.requests.lister import RequestLister
from plimsoll.nodes.requests.reader import read_requests
from plimsoll.objects.custom_kinds import OUR_KINDS
from plimsoll.objects.validation import list_shipped_definitions
from plimsoll.runtime.entropy import SeededEntropy
from tests.kube.embedded_api import EmbeddedApi

if TYPE_CHECKING:
    from collections.abc import Iterator

Json = dict[str, Any]

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
REQUESTS = "/apis/autoscaling.x-k8s.io/{}/namespaces/ml/provisioningrequests"
CHECK = "check-capacity.autoscaling.x-k8s.io"


@contextmanager
def cluster(*, defines: str = "autoscaling.x-k8s.io") -> Iterator[EmbeddedApi]:
    """With the namespace ml; of our own definitions those whose name ends so."""
    with EmbeddedApi(kinds=OUR_KINDS) as world:
        world.namespace("ml")
        define(world, ending=defines)
        yield world


def define(world: EmbeddedApi, *, ending: str) -> None:
    for manifest in list_shipped_definitions():
        if ending and manifest.body["metadata"]["name"].endswith(ending):
            world.made(DEFINITIONS, manifest.body)
    world.run.advance_by(10)


def watched(world: EmbeddedApi) -> RequestLister:
    informers = SharedInformerFactory(world.client, clock=world.clock, entropy=SeededEntropy(1))
    made = RequestLister(informers, clock=world.clock)
    for service in informers.list_services():
        world.run.spawn(service.run())
    world.do(made.wait_until_synced())
    return made


def request(*, template: str = "t") -> Json:
    sets = [{"count": 3, "podTemplateRef": {"name": template}}]
    return {"metadata": {"name": "r"}, "spec": {"provisioningClassName": CHECK, "podSets": sets}}


def template(name: str = "t", **resources: Any) -> Json:
    containers = [{"name": "c", "image": "x", "resources": resources}]
    return {"metadata": {"name": name}, "template": {"spec": {"containers": containers}}}


def made(world: EmbeddedApi, *, version: str = "v1") -> None:
    world.made("/api/v1/namespaces/ml/podtemplates", template())
    world.made("/api/v1/namespaces/ml/podtemplates", template("nobodys"))
    body = {"apiVersion": f"autoscaling.x-k8s.io/{version}", "kind": "ProvisioningRequest", **request()}
    world.made(REQUESTS.format(version), body)


@pytest.mark.parametrize("version", ["v1", "v1beta1"])
def test_requests_of_either_version_and_the_templates_they_refer_to(version: str):
    with cluster() as world:
        made(world, version=version)
        listed = watched(world).read()
    assert [provisioning_request.spec.provisioning_class_name for provisioning_request in listed.requests] == [CHECK]
    assert [*listed.templates] == ["ml/t"]
    assert listed.templates["ml/t"]["template"]["spec"]["containers"][0]["name"] == "c"


def test_limit_ranges_and_classes_are_read_beside_them():
    with cluster() as world:
        made(world)
        limits = [{"type": "Container", "defaultRequest": {"cpu": "2"}}]
        world.made("/api/v1/namespaces/ml/limitranges", {"metadata": {"name": "l"}, "spec": {"limits": limits}})
        classes = "/apis/autoscaling.x-k8s.io/v1alpha1/provisioningclasses"
        head = {"apiVersion": "autoscaling.x-k8s.io/v1alpha1", "kind": "ProvisioningClass"}
        world.made(classes, {**head, "metadata": {"name": CHECK}, "Parameters": {"noRetry": "true"}})
        listed = watched(world).read()
    (one,) = read_requests(listed, read_options({}), world.clock.now()).queue
    assert one.pods[0].pod.spec.containers[0].resources.requests == {"cpu": "2"}
    assert not one.parameters.retries


def test_what_has_not_changed_is_the_very_same_the_next_time():
    with cluster() as world:
        made(world)
        requests = watched(world)
        first, again = requests.read(), requests.read()
    assert again.templates["ml/t"] is first.templates["ml/t"]


def test_a_server_that_does_not_know_requests_has_none_and_stops_nothing():
    with cluster(defines="") as world:
        requests = watched(world)
        world.run.advance_by(3600)
        assert requests.read().requests == ()
        assert requests.find_stale() is None


def test_requests_are_seen_once_the_server_knows_them():
    with cluster(defines="") as world:
        requests = watched(world)
        define(world, ending="autoscaling.x-k8s.io")
        made(world)
        world.run.advance_by(120)
        assert len(requests.read().requests) == 1


def test_requests_are_gone_with_their_definition():
    with cluster() as world:
        made(world)
        requests = watched(world)
        world.server.ask("DELETE", f"{DEFINITIONS}/provisioningrequests.autoscaling.x-k8s.io")
        world.run.advance_by(120)
        assert requests.read().requests == ()
        assert requests.find_stale() is None


def test_classes_need_not_be_defined():
    with cluster(defines="provisioningrequests.autoscaling.x-k8s.io") as world:
        made(world)
        requests = watched(world)
        assert (len(requests.read().requests), requests.find_stale()) == (1, None)
