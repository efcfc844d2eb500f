"""One informer a kind, for everybody."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from plimsoll.core.errors import InvalidInput
from plimsoll.kube.informer.factory import SharedInformerFactory
from plimsoll.kube.requests.options import Selection
from plimsoll.objects.api.core import ConfigMap
from plimsoll.objects.api.pods import Pod
from plimsoll.runtime.entropy import SeededEntropy
from tests.kube.embedded_api import EmbeddedApi
from tests.local.apiserver.builders import config_map

if TYPE_CHECKING:
    from tests.golden.reviewed_sentences import ReviewedSentences


def informers_of(world: EmbeddedApi) -> SharedInformerFactory:
    return SharedInformerFactory(world.client, clock=world.run.clock, entropy=SeededEntropy(1))


def test_equal_selectors_share_an_informer():
    with EmbeddedApi() as world:
        informers = informers_of(world)
        assert informers.get_informer(Pod) is informers.get_informer(Pod)
        assert informers.get_informer(Pod) is not informers.get_informer(Pod, Selection(namespace="here"))


def test_slim_objects_and_objects_with_bytes_are_kept_apart():
    with EmbeddedApi() as world:
        informers = informers_of(world)
        assert informers.get_informer(Pod) is not informers.get_raw_informer(Pod)


def test_each_informer_is_one_service_of_its_own_name():
    with EmbeddedApi() as world:
        informers = informers_of(world)
        informers.get_informer(Pod)
        informers.get_informer(Pod, Selection(namespace="here"))
        informers.get_raw_informer(Pod)
        names = [service.name for service in informers.list_services()]
        assert len(set(names)) == 3


def test_an_informer_requested_after_the_start_is_refused(reviewed: ReviewedSentences):
    with EmbeddedApi() as world:
        informers = informers_of(world)
        pods = informers.get_informer(Pod)
        informers.list_services()
        assert informers.get_informer(Pod) is pods
        with pytest.raises(InvalidInput) as raised:
            informers.get_informer(ConfigMap)
        reviewed(str(raised.value))


def test_synced_waits_for_every_one():
    with EmbeddedApi() as world:
        name = world.namespace("here")
        world.made(f"/api/v1/namespaces/{name}/configmaps", config_map("a"))
        informers = informers_of(world)
        maps = informers.get_informer(ConfigMap, Selection(namespace="here"))
        for service in informers.list_services():
            world.run.spawn(service.run())
        world.run.run_until(informers.wait_until_synced())
        assert maps.cache.get("a", "here") is not None
