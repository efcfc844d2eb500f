"""Builds the provider that the flags name. Only the chosen provider is loaded, because gRPC is heavy."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import structlog

from plimsoll.core.errors import InvalidInput
from plimsoll.kube.configuration import LoaderContext, find_access
from plimsoll.nodes.providers.values import CLUSTER_API, EXTERNAL

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from plimsoll.core.clock import Clock
    from plimsoll.kube.access import Access
    from plimsoll.kube.client import Client
    from plimsoll.nodes.config.policy import Operation, Policy
    from plimsoll.nodes.providers.ports import Provider
    from plimsoll.nodes.providers.simulated.cloud_ports import CloudPort

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderDependencies:
    """What the process provides. Clients are closed by the process."""

    workload: Client
    """The client of the autoscaled cluster."""
    clock: Clock
    simulated_cloud: Callable[[Client], CloudPort]
    connect: Callable[[Access], Client]
    """Connects to the management cluster of Cluster API, if it is another one; under the same guard."""
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)


def make_provider(policy: Policy, dependencies: ProviderDependencies) -> Provider:
    """The provider that the flags name. Raises `InvalidInput` if it cannot be used. Makes no call yet."""
    operation = policy.operation
    if operation.provider != CLUSTER_API and policy.groups.discovery:
        log.warning("provider.discovery_not_used", provider=operation.provider, flag="node-group-auto-discovery")
    if operation.provider == EXTERNAL:
        return _build_external(operation)
    if operation.provider == CLUSTER_API:
        return _build_cluster_api(policy, dependencies)
    if operation.cloud_config:
        log.warning("provider.configuration_not_used", provider=operation.provider, flag="cloud-config")
    return _build_simulated(dependencies)


def find_management_access(operation: Operation, *, environment: Mapping[str, str], clock: Clock) -> Access | None:
    """Access to the management cluster of Cluster API; None for the autoscaled one. Raises `InvalidInput`."""
    if operation.cloud_config:
        return find_access(kubeconfig=operation.cloud_config, environment=environment, clock=clock)
    if not operation.cloud_config_only:
        return None
    pod = LoaderContext(environment=environment, clock=clock).pod
    if pod is None:
        problem = "must be given: this does not run in a cluster, and the kubeconfig is not to be used instead"
        raise InvalidInput(problem, path="cloud-config")
    return pod.build_access(clock=clock)


def _build_simulated(dependencies: ProviderDependencies) -> Provider:
    from plimsoll.nodes.providers.simulated.provider import SimulatedProvider  # noqa: PLC0415 - lazy

    return SimulatedProvider(dependencies.simulated_cloud(dependencies.workload))


def _build_external(operation: Operation) -> Provider:
    if not operation.cloud_config:
        raise InvalidInput("must be given: the file that says where the provider listens", path="cloud-config")
    from plimsoll.nodes.providers.externalgrpc.channels import GrpcCalls  # noqa: PLC0415 - loads gRPC
    from plimsoll.nodes.providers.externalgrpc.client import ExternalGrpcProvider  # noqa: PLC0415 - likewise
    from plimsoll.nodes.providers.externalgrpc.configuration import read_configuration  # noqa: PLC0415 - likewise

    try:
        configuration = read_configuration(Path(operation.cloud_config))
    except InvalidInput as error:
        raise error.with_parent("cloud-config") from error
    return ExternalGrpcProvider(GrpcCalls(configuration))


def _build_cluster_api(policy: Policy, dependencies: ProviderDependencies) -> Provider:
    from plimsoll.nodes.providers.clusterapi import (  # noqa: PLC0415 - only what is chosen is loaded
        ClusterApiProvider,
        read_settings,
    )

    settings = read_settings(dependencies.environment, policy.groups.discovery)
    access = find_management_access(policy.operation, environment=dependencies.environment, clock=dependencies.clock)
    management = dependencies.workload if access is None else dependencies.connect(access)
    return ClusterApiProvider(management, dependencies.workload, settings)
