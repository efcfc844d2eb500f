"""Informers that follow the ConfigMaps of a world, for tests of what a running autoscaler makes of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from plimsoll.kube.informer.shared import Informers
from plimsoll.nodes.configuring import GivenOptions

if TYPE_CHECKING:
    from tests.kube.worlds import KubeWorld


def followed(world: KubeWorld, flags: dict[str, Any]) -> GivenOptions:
    """Options of flags and of the cluster's ConfigMaps, kept up to date while time passes."""
    informers = Informers(world.client, clock=world.clock, entropy=world.entropy)
    options = GivenOptions(flags, informers)
    for service in informers.services():
        world.run.spawn(service.run())
    world.do(options.synced())
    return options
