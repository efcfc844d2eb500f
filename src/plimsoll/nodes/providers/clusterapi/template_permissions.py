"""The permissions to read the machine templates of an infrastructure. They follow from the objects of Cluster API."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from plimsoll.kube.diagnosis.permissions import Permission, Scope
from plimsoll.kube.requests.options import Selection
from plimsoll.nodes.providers.clusterapi.client import look_up_served, read
from plimsoll.nodes.providers.values import ProviderFailed

if TYPE_CHECKING:
    from plimsoll.kube.client import Client
    from plimsoll.nodes.providers.clusterapi.settings import ClusterApiSettings
    from plimsoll.objects.api.cluster_api import Scalable

_WHY: Final = "to read the capacity of machines, for a scale-up from zero"


async def find_template_permissions(management: Client, settings: ClusterApiSettings) -> tuple[Permission, ...]:
    """One per kind and namespace of templates that groups refer to.

    None if the groups cannot be listed: whether they may be listed is another permission.
    """
    try:
        served = await look_up_served(management, settings)
        selection = Selection(namespace=settings.namespace)
        found: list[Scalable] = []
        for kind in served.scalable:
            found += (await read(management.list(served.get_resource(kind), selection))).items
    except ProviderFailed:
        return ()
    allowed = [scalable for scalable in found if settings.allows(scalable) and _get_group(scalable)]
    return tuple(dict.fromkeys(_build_permission(scalable) for scalable in allowed))


def _get_group(found: Scalable) -> str:
    reference = found.spec.template.spec.infrastructure_ref
    if reference is None or not reference.kind or not reference.name:
        return ""
    return reference.api_group or reference.api_version.rpartition("/")[0]


def _build_permission(found: Scalable) -> Permission:
    reference = found.spec.template.spec.infrastructure_ref
    assert reference is not None, "only those with a group are asked about"
    return Permission(
        group=_get_group(found),
        resource=f"{reference.kind.lower()}s",
        verbs=("get",),
        scope=Scope.ONE,
        namespace=found.metadata.namespace,
        why=_WHY,
    )
