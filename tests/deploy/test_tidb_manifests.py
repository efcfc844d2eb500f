"""The rights that deploy/tidb grants are enough to scale."""

from __future__ import annotations

from plimsoll.local.apiserver.transport.kube_transport import EmbeddedTransport
from tests.deploy.manifests import install_account
from tests.tidb.autoscaled_clusters import AUTO, AutoscaledCluster, EmbeddedServer, group


def test_the_rights_are_enough_for_a_group_that_comes_and_goes():
    with AutoscaledCluster(EmbeddedServer, drains_actively=True) as world:
        assert isinstance(world.server, EmbeddedServer)
        server = world.server.world
        token = install_account(server, "tidb")
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
