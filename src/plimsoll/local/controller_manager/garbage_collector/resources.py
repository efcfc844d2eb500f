"""Every served kind whose objects can be listed and deleted.

The garbage collector and the namespace controller read only metadata, so kinds without a struct are handled like any
other.
"""

from __future__ import annotations

from functools import cache
from types import new_class
from typing import TYPE_CHECKING, Final

from plimsoll.kube.discovery import fetch_groups, fetch_resources
from plimsoll.objects.api.meta import WireObject
from plimsoll.objects.api.resource import Resource

if TYPE_CHECKING:
    from plimsoll.kube.client import Client
    from plimsoll.kube.discovery import ServedResource
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
        struct=_build_metadata_struct(names.kind),
    )


def build_metadata_resource(api_version: str, served: ServedResource) -> Resource:
    """A line of discovery as a kind of which only the metadata is read."""
    group, _, version = api_version.rpartition("/")
    return Resource(
        group=group,
        version=version,
        kind=served.kind,
        plural=served.name,
        singular=served.kind.lower(),
        namespaced=served.namespaced,
        struct=_build_metadata_struct(served.kind),
    )


@cache
def _build_metadata_struct(kind: str) -> type[WireObject]:
    """A struct that reads objects of a kind and nothing of them but their metadata."""

    def fill(namespace: dict[str, object]) -> None:
        namespace |= {"KIND": kind, "__module__": __name__}

    return new_class(f"{kind}Metadata", (WireObject,), exec_body=fill)
