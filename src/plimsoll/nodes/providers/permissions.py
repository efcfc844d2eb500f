"""The permissions and custom resources that each provider adds to those of the node autoscaler.

The provider of the options in force counts. The external provider asks another server; Cluster API may be in a
management cluster, with an account of its own there. The environment has the API group of Cluster API, if it is another
one. Machine templates of an infrastructure follow from the objects: `clusterapi/template_permissions.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from plimsoll.kube.diagnosis.permissions import Permission, Scope
from plimsoll.kube.diagnosis.requirements import FROM_PLIMSOLL, CustomResource, declare_permissions
from plimsoll.nodes.providers.clusterapi.settings import read_settings
from plimsoll.nodes.providers.values import CLUSTER_API, SIMULATED
from plimsoll.objects.api.cluster_api import CLUSTER_API_GROUP

if TYPE_CHECKING:
    from collections.abc import Mapping

    from plimsoll.nodes.config.policy import Policy

NO_ENVIRONMENT: Final[Mapping[str, str]] = {}
_CLOUD: Final = "cloud.plimsoll.io"
_CLOUD_NAMES: Final = ("cloud",)

_SIMULATED: Final = (
    *declare_permissions(
        _CLOUD,
        ("nodegroups", ("get", "list"), "to list groups"),
        ("nodegroups", ("patch",), "to change the size of a group"),
        ("machines", ("list",), "to list the machines of groups"),
    ),
    Permission(
        group=_CLOUD, resource="clouds", verbs=("get",), names=_CLOUD_NAMES, why="to read machine types and faults"
    ),
    Permission(
        group=_CLOUD,
        resource="clouds",
        subresource="status",
        verbs=("patch",),
        names=_CLOUD_NAMES,
        why="to record which faults were injected",
    ),
)
_SIMULATED_CREATION: Final = (
    *declare_permissions(_CLOUD, ("nodegroups", ("create", "delete"), "to create groups, and to delete empty ones")),
)
_SIMULATED_RESOURCES: Final = tuple(
    CustomResource(plural=plural, group=_CLOUD, versions=("v1alpha1",), source=FROM_PLIMSOLL)
    for plural in ("clouds", "nodegroups", "machines")
)

_SCALED: Final = ("machinedeployments", "machinesets", "machinepools")
_CLUSTER_API: Final = (
    *declare_permissions(
        CLUSTER_API_GROUP,
        *((plural, ("list",), "to list groups and their machines") for plural in (*_SCALED, "machines")),
        *((f"{plural}/scale", ("get", "patch"), "to change the size of a group") for plural in _SCALED),
        ("machines", ("patch",), "to choose the machine that is deleted when its group gets smaller"),
    ),
)
_CLUSTER_API_CREATION: Final = (
    *declare_permissions(
        CLUSTER_API_GROUP,
        (
            "machinedeployments",
            ("get", "create", "delete"),
            "to create groups from templates, and to delete empty ones",
        ),
    ),
)
_CLUSTER_API_RESOURCES: Final = tuple(
    CustomResource(
        plural=plural,
        group=CLUSTER_API_GROUP,
        versions=("v1beta2", "v1beta1"),
        source="Cluster API",
        is_optional=plural == "machinepools",
    )
    for plural in (*_SCALED, "machines")
)


def find_provider_permissions(
    policy: Policy, environment: Mapping[str, str] = NO_ENVIRONMENT
) -> tuple[Permission, ...]:
    """What the provider of these options needs in the autoscaled cluster."""
    if policy.operation.provider == SIMULATED:
        return (*_SIMULATED, *(_SIMULATED_CREATION if policy.nap.enabled else ()))
    return find_management_permissions(policy, environment) if is_self_managed(policy) else ()


def find_management_permissions(policy: Policy, environment: Mapping[str, str]) -> tuple[Permission, ...]:
    """What Cluster API's provider needs in the management cluster, without the templates of an infrastructure."""
    settings = read_settings(environment, policy.groups.discovery)
    needed = (*_CLUSTER_API, *(_CLUSTER_API_CREATION if policy.nap.enabled else ()))
    needed = tuple(replace(permission, group=settings.group) for permission in needed)
    if not settings.namespace:
        return needed
    return tuple(replace(permission, scope=Scope.ONE, namespace=settings.namespace) for permission in needed)


def find_provider_resources(
    policy: Policy, environment: Mapping[str, str] = NO_ENVIRONMENT
) -> tuple[CustomResource, ...]:
    """The custom resources that the provider of these options uses in the autoscaled cluster."""
    if policy.operation.provider == SIMULATED:
        return _SIMULATED_RESOURCES
    return find_management_resources(environment) if is_self_managed(policy) else ()


def find_management_resources(environment: Mapping[str, str]) -> tuple[CustomResource, ...]:
    settings = read_settings(environment)
    return tuple(
        replace(resource, group=settings.group, versions=(settings.version,) if settings.version else resource.versions)
        for resource in _CLUSTER_API_RESOURCES
    )


def is_self_managed(policy: Policy) -> bool:
    """Whether Cluster API is in the autoscaled cluster."""
    operation = policy.operation
    return operation.provider == CLUSTER_API and not operation.cloud_config and not operation.cloud_config_only
