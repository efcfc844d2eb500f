"""Providers of clusters that work by Kubernetes APIs alone: Cluster API, and clusters by contexts of a kubeconfig."""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from msgspec.structs import replace

from plimsoll.core.errors import InvalidInput
from plimsoll.fleet.providers.cluster_api.provider import ClusterApiProvider
from plimsoll.fleet.providers.cluster_api.settings import (
    DEFAULT_WORKER_CLASS,
    VERSION,
    ClusterApiProviderSettings,
    parse_class,
)
from plimsoll.fleet.providers.data_planes.clients import HttpDataPlaneClients
from plimsoll.fleet.providers.data_planes.manifests import AddonManifests, read_addon_manifests
from plimsoll.fleet.providers.standalone.contexts import KubeconfigContexts
from plimsoll.fleet.providers.standalone.provider import StandaloneProvider
from plimsoll.kube.configuration import find_access

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping
    from pathlib import Path

    from plimsoll.core.clock import Clock
    from plimsoll.core.entropy import Entropy
    from plimsoll.fleet.model.policy import FleetPolicy
    from plimsoll.fleet.providers.port import ClusterProvider


@dataclass(frozen=True, slots=True, kw_only=True)
class KubernetesProviderOptions:
    """What a user chose. A provider without its kubeconfig is not configured."""

    management_kubeconfig: str = ""
    kubeconfig: str = ""
    """With the contexts of standalone clusters."""
    cluster_class: str = ""
    cluster_version: str = ""
    worker_class: str = DEFAULT_WORKER_CLASS
    addon_manifests: Path | None = None
    domain: str = "kafka.bf2.dev"

    def check(self) -> None:
        """Raises `InvalidInput`, naming the option."""
        if self.cluster_class:
            parse_class(self.cluster_class)
        if self.cluster_version and not VERSION.fullmatch(self.cluster_version):
            raise InvalidInput(f"{self.cluster_version!r} is not a version like v1.34.0", path="--cluster-version")


def use_cluster_class(policy: FleetPolicy, cluster_class: str) -> FleetPolicy:
    """The policy with this class in all regions that name none: their clusters are made by Cluster API."""
    if not cluster_class:
        return policy
    providers = [
        replace(
            provider,
            regions=tuple(
                region if region.cluster_class else replace(region, cluster_class=cluster_class)
                for region in provider.regions
            ),
        )
        for provider in policy.providers
    ]
    return replace(policy, providers=tuple(providers))


@asynccontextmanager
async def open_kubernetes_providers(
    options: KubernetesProviderOptions, *, environment: Mapping[str, str], clock: Clock, entropy: Entropy
) -> AsyncIterator[tuple[ClusterProvider, ...]]:
    """Those that are configured, for as long as the block lasts. Raises `InvalidInput`."""
    options.check()
    clients = HttpDataPlaneClients(clock=clock, entropy=entropy)
    addons = AddonManifests() if options.addon_manifests is None else read_addon_manifests(options.addon_manifests)
    providers: list[ClusterProvider] = []
    if options.kubeconfig:
        contexts = KubeconfigContexts(options.kubeconfig, environment=environment, clock=clock)
        providers.append(StandaloneProvider(contexts, clients, addons))
    if not options.management_kubeconfig:
        yield tuple(providers)
        return
    access = find_access(kubeconfig=options.management_kubeconfig, environment=environment, clock=clock)
    settings = ClusterApiProviderSettings(
        cluster_class=options.cluster_class,
        kubernetes_version=options.cluster_version,
        worker_class=options.worker_class,
        domain=options.domain,
        addons=addons,
    )
    async with clients.open(access) as management:
        yield (*providers, ClusterApiProvider(management, clients, settings, clock=clock))
