from __future__ import annotations

from typing import TYPE_CHECKING

from plimsoll.kube.informer import Added, Deleted, Informer, Updated
from plimsoll.objects.configuration import ConfigMap
from tests.kube.worlds import KubeWorld

if TYPE_CHECKING:
    from plimsoll.kube.informer import Change


def test_smoke():
    with KubeWorld() as world:
        world.namespace("here")
        heard: list[Change[ConfigMap]] = []
        informer = Informer(world.client, ConfigMap, clock=world.clock, entropy=world.entropy)
        informer.add_handler(heard.append, name="all")
        world.made("/api/v1/namespaces/here/configmaps", {"metadata": {"name": "a"}})
        world.run.spawn(informer.run())
        world.do(informer.synced())
        world.run.settle()
        world.ask("PATCH", "/api/v1/namespaces/here/configmaps/a", {"data": {"x": "1"}}, content="application/merge-patch+json")
        world.run.settle()
        assert informer.cache.get("a", "here").data == {"x": "1"}
        world.ask("DELETE", "/api/v1/namespaces/here/configmaps/a")
        world.run.settle()
        assert [type(c) for c in heard] == [Added, Updated, Deleted]
        world.run.advance_by(3000)
        print(informer.status)
