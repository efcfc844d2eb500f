"""Groups and versions in kube-apiserver's order, by which kubectl resolves short names.

Built-in groups have fixed priorities; groups of custom resources follow by name. Versions are ordered by version
priority.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from plimsoll.objects.schema.definition.version_priority import compute_priority

if TYPE_CHECKING:
    from plimsoll.local.apiserver.resources.registry import ResourceRegistry, ServedResource

_BUILTIN_ORDER: Final = (
    "",
    "apiregistration.k8s.io",
    "apps",
    "events.k8s.io",
    "authentication.k8s.io",
    "authorization.k8s.io",
    "autoscaling",
    "batch",
    "certificates.k8s.io",
    "networking.k8s.io",
    "policy",
    "rbac.authorization.k8s.io",
    "storage.k8s.io",
    "admissionregistration.k8s.io",
    "apiextensions.k8s.io",
    "scheduling.k8s.io",
    "coordination.k8s.io",
    "node.k8s.io",
    "discovery.k8s.io",
    "resource.k8s.io",
    "flowcontrol.apiserver.k8s.io",
)
_PLACES: Final = {name: place for place, name in enumerate(_BUILTIN_ORDER)}

Versions = dict[str, tuple["ServedResource", ...]]


def list_served_groups(registry: ResourceRegistry) -> dict[str, Versions]:
    """Every group with its versions, the preferred first, and the resources of each in the order they are listed."""
    found: dict[str, dict[str, list[ServedResource]]] = {}
    for resource in registry:
        found.setdefault(resource.group, {}).setdefault(resource.version, []).append(resource)
    ordered = sorted(found, key=lambda name: (_PLACES.get(name, len(_PLACES)), name))
    return {group: _sort_versions(found[group]) for group in ordered}


def _sort_versions(versions: dict[str, list[ServedResource]]) -> Versions:
    preferred_first = sorted(versions, key=compute_priority, reverse=True)
    return {version: tuple(sorted(versions[version], key=_format_resource)) for version in preferred_first}


def _format_resource(resource: ServedResource) -> str:
    return resource.plural


def format_group_version(group: str, version: str) -> str:
    return f"{group}/{version}" if group else version
