"""Informers that follow the ConfigMaps of a world, for tests of what a running autoscaler makes of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from plimsoll.kube.informer.factory import SharedInformerFactory
from plimsoll.nodes.config.source import ConfigMapConfig

if TYPE_CHECKING:
    from tests.kube.embedded_api import EmbeddedApi


def followed(world: EmbeddedApi, flags: dict[str, Any]) -> ConfigMapConfig:
    """Options of flags and of the cluster's ConfigMaps, kept up to date while time passes."""
    informers = SharedInformerFactory(world.client, clock=world.clock, entropy=world.entropy)
    options = ConfigMapConfig(flags, informers)
    for service in informers.list_services():
        world.run.spawn(service.run())
    world.do(options.wait_until_synced())
    return options
