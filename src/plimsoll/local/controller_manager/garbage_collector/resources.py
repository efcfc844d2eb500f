"""Every served kind whose objects can be listed and deleted.

The garbage collector and the namespace controller read only metadata, so kinds without a struct are handled like any
other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from plimsoll.kube.discovery import build_metadata_resource, build_metadata_struct, fetch_groups, fetch_resources
from plimsoll.objects.api.resource import Resource

if TYPE_CHECKING:
    from plimsoll.kube.client import Client
    from plimsoll.objects.api.apiextensions import CustomResourceDefinition

EVENTS: Final = frozenset({("", "events"), ("events.k8s.io", "events")})


async def list_served_resources(client: Client, *verbs: str) -> list[Resource]:
    """Kinds that take all `verbs`, each in its group's preferred version that has it, in the server's order."""
    found: dict[tuple[str, str], Resource] = {}
    for group in await fetch_groups(client):
        for version in group.versions:
            api_version = f"{group.name}/{version}" if group.name else version
            for served in await fetch_resources(client, api_version):
                if "/" not in served.name and set(verbs) <= set(served.verbs):
                    found.setdefault((group.name, served.name), build_metadata_resource(api_version, served))
    return list(found.values())


def build_custom_resource(definition: CustomResourceDefinition) -> Resource | None:
    """The kind a definition brings; None while it is not served."""
    is_served = any(
        condition.type == "Established" and condition.status == "True" for condition in definition.status.conditions
    )
    versions = [definition_version for definition_version in definition.spec.versions if definition_version.served]
    if not is_served or not versions or definition.metadata.deletion_timestamp is not None:
        return None
    version = next((definition_version for definition_version in versions if definition_version.storage), versions[0])
    names = definition.spec.names
    return Resource(
        group=definition.spec.group,
        version=version.name,
        kind=names.kind,
        plural=names.plural,
        singular=names.singular,
        namespaced=definition.spec.scope == "Namespaced",
        struct=build_metadata_struct(names.kind),
    )
