"""Sizes of groups, changed through the scale subresource and only from what they were seen to be.

The version of the object goes with every change, so nobody else's change is overwritten. A version is often out of date
for no reason that matters (the status was written), so a refused change is looked at and tried again a few times.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from plimsoll.kube.errors import Conflict
from plimsoll.nodes.providers.clusterapi.asking import TROUBLE, failure_of, refused
from plimsoll.nodes.providers.values import CallFailed, Done, FailureKind

if TYPE_CHECKING:
    from collections.abc import Callable

    from plimsoll.nodes.providers.clusterapi.holdings import GroupObject, Holdings

    Decide = Callable[[int], int | Done | CallFailed]

_TRIES: Final = 5


async def resize(holdings: Holdings, group: GroupObject, decide: Decide) -> Done | CallFailed:
    """Ask `decide` what the present size is to become, until that is so or is not to be."""
    meta = group.object.metadata
    resource = (await holdings.served()).resource(type(group.object))
    for _ in range(_TRIES):
        try:
            scale = await holdings.client.get_scale(resource, meta.name, namespace=meta.namespace)
        except TROUBLE as error:
            return _only_asked(failure_of(error))
        wanted = decide(scale.spec.replicas)
        if not isinstance(wanted, int):
            holdings.note_replicas(group, scale.spec.replicas)
            return wanted
        version = scale.metadata.resource_version
        try:
            await holdings.client.scale(resource, meta.name, wanted, namespace=meta.namespace, resource_version=version)
        except Conflict:
            continue
        except TROUBLE as error:
            return failure_of(error)
        holdings.note_replicas(group, wanted)
        return Done()
    return refused(f"node group {group.id} is changed by others all the time")


def from_expected(group: GroupObject, delta: int, *, expected: int) -> Decide:
    """`expected + delta`, unless it is that already, or something else by now."""

    def decide(replicas: int) -> int | Done | CallFailed:
        if replicas == expected + delta:
            return Done()
        if replicas != expected:
            return refused(f"target of node group {group.id} is {replicas}, not {expected}")
        return expected + delta

    return decide


def _only_asked(failure: CallFailed) -> CallFailed:
    """Nothing was done, whatever became of the question."""
    if failure.kind is not FailureKind.UNKNOWN:
        return failure
    return CallFailed(kind=FailureKind.FAILED, message=failure.message)
