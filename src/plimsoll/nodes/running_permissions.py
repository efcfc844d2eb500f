"""The permissions that a running node autoscaler needs: those of its options, which its status ConfigMap shows.

A dry run changes nothing. Without leader election there is no lease. The lease and the ConfigMaps may have other names,
and be in another namespace. The provider adds its own. Without a status, the permissions of the defaults are needed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from plimsoll.core.errors import InvalidInput
from plimsoll.kube.diagnosis.requirements import LEASES, READ, Requirements
from plimsoll.kube.errors import ApiCallFailed
from plimsoll.nodes.config.options import read_options
from plimsoll.nodes.config.policy import AUTOSCALER_LEASE
from plimsoll.nodes.model.pod_traits import KUBE_SYSTEM
from plimsoll.nodes.providers.clusterapi.settings import read_settings
from plimsoll.nodes.providers.clusterapi.template_permissions import find_template_permissions
from plimsoll.nodes.providers.permissions import (
    NO_ENVIRONMENT,
    find_management_permissions,
    find_management_resources,
    find_provider_permissions,
    find_provider_resources,
    is_self_managed,
)
from plimsoll.nodes.providers.values import CLUSTER_API
from plimsoll.nodes.reporting.status.configmap import read_options_annotation
from plimsoll.objects.api.core import ConfigMap

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from plimsoll.kube.client import Client
    from plimsoll.kube.diagnosis.permissions import Permission
    from plimsoll.kube.diagnosis.requirements import RunningContext
    from plimsoll.nodes.config.policy import Operation, Policy

STATUS_MAP: Final = "cluster-autoscaler-status"
_REVIEWS: Final = ("authentication.k8s.io", "authorization.k8s.io")
"""Needed in a dry run too: creating a review changes nothing."""


async def adapt_node_requirements(client: Client, needed: Requirements, context: RunningContext) -> Requirements:
    policy = await read_running_policy(client, context.own_namespace)
    if policy is None:
        return needed
    adapted = add_provider(adapt_to_policy(needed, policy), policy, context.environment)
    if not is_self_managed(policy):
        return adapted
    settings = read_settings(context.environment, policy.groups.discovery)
    templates = await find_template_permissions(client, settings)
    return replace(adapted, permissions=(*adapted.permissions, *templates))


async def find_management_requirements(
    management: Client, policy: Policy | None, environment: Mapping[str, str]
) -> Requirements:
    """What Cluster API's provider needs in a management cluster of its own. Without options, those of the defaults."""
    if policy is None or policy.operation.provider != CLUSTER_API:
        policy = read_options({"cloud-provider": CLUSTER_API})
    settings = read_settings(environment, policy.groups.discovery)
    needed = (
        *find_management_permissions(policy, environment),
        *await find_template_permissions(management, settings),
    )
    if policy.operation.dry_run:
        needed = _select_all_reads(needed)
    resources = find_management_resources(environment)
    return Requirements(controller=CLUSTER_API, permissions=needed, custom_resources=resources)


def has_management_cluster(policy: Policy) -> bool:
    """Whether Cluster API is in another cluster than the autoscaled one."""
    return policy.operation.provider == CLUSTER_API and not is_self_managed(policy)


async def adapt_request_requirements(client: Client, needed: Requirements, context: RunningContext) -> Requirements:
    """Nothing is needed for ProvisioningRequests that are not enabled, unless the user asks about them."""
    policy = await read_running_policy(client, context.own_namespace)
    if policy is None:
        return needed
    if not policy.requests.enabled and not context.is_selected:
        return replace(needed, permissions=(), custom_resources=())
    return adapt_to_policy(needed, policy)


def adapt_to_policy(needed: Requirements, policy: Policy) -> Requirements:
    """The requirements under these options."""
    adapted = [_adapt(permission, policy.operation) for permission in needed.permissions]
    return replace(needed, permissions=tuple(permission for permission in adapted if permission is not None))


def add_provider(needed: Requirements, policy: Policy, environment: Mapping[str, str] = NO_ENVIRONMENT) -> Requirements:
    """The requirements with those of the provider that the options name."""
    added = find_provider_permissions(policy, environment)
    if policy.operation.dry_run:
        added = _select_all_reads(added)
    return replace(
        needed,
        permissions=(*needed.permissions, *added),
        custom_resources=(*needed.custom_resources, *find_provider_resources(policy, environment)),
    )


def _adapt(permission: Permission, operation: Operation) -> Permission | None:
    """The permission under these options; None: it is not needed."""
    if permission.group == LEASES:
        return _adapt_lease(permission, operation)
    if operation.dry_run and permission.group not in _REVIEWS:
        reads = _select_reads(permission)
        if reads is None:
            return None
        permission = reads
    if permission.namespace == KUBE_SYSTEM:
        permission = replace(permission, namespace=operation.namespace)
    if permission.names == (STATUS_MAP,):
        return replace(permission, names=(operation.status_name,)) if operation.write_status else None
    return permission


def _select_all_reads(permissions: Iterable[Permission]) -> tuple[Permission, ...]:
    return tuple(reads for permission in permissions if (reads := _select_reads(permission)) is not None)


def _select_reads(permission: Permission) -> Permission | None:
    """The part of the permission that changes nothing; None: there is no such part."""
    verbs = tuple(verb for verb in permission.verbs if verb in READ)
    return replace(permission, verbs=verbs) if verbs else None


def _adapt_lease(permission: Permission, operation: Operation) -> Permission | None:
    if permission.names and AUTOSCALER_LEASE not in permission.names:
        return None if operation.ignore_other_autoscalers else permission
    if not operation.leader_elect or operation.dry_run:
        return None
    namespace = operation.lease_namespace or operation.namespace
    names = (operation.lease_name,) if permission.names else ()
    return replace(permission, namespace=namespace, names=names)


async def read_running_policy(client: Client, own_namespace: str) -> Policy | None:
    """The options in force, as the running autoscaler shows them; None: it does not, or they cannot be read."""
    for namespace in dict.fromkeys((own_namespace, KUBE_SYSTEM)):
        try:
            found = await client.get(ConfigMap, STATUS_MAP, namespace=namespace)
        except ApiCallFailed:
            continue
        options = read_options_annotation(found.metadata.annotations)
        if options is not None:
            try:
                return read_options(options)
            except InvalidInput:
                return None
    return None
