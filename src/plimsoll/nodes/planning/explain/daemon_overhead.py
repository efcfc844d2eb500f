"""Messages for pods that would fit a new node if its DaemonSets left more room. Pure.

The rules only report "Insufficient cpu" for a node that looks large enough. Here the DaemonSets and what they take are
named.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec import structs

from plimsoll.core.resources import PODS, ResourceVector
from plimsoll.nodes.planning.state.daemon_overhead import sum_demand

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from plimsoll.objects.api.pods import Pod
    from plimsoll.scheduling.verdicts import Refusal


_INSUFFICIENT: Final = "Insufficient "


def name_daemons(
    refusals: Iterable[Refusal], demand: ResourceVector, free: ResourceVector, daemons: Sequence[Pod]
) -> tuple[Refusal, ...]:
    """The refusals of an empty node on which these daemons leave `free`, with the daemons named."""
    if not daemons:
        return tuple(refusals)
    taken = sum_demand(daemons)
    crowded = {
        f"{_INSUFFICIENT}{name}": _describe(name, free[name] + taken[name], daemons)
        for name, wanted in demand.items()
        if name != PODS and free[name] < wanted <= free[name] + taken[name]
    }
    return tuple(
        structs.replace(refusal, messages=tuple(crowded.get(message, message) for message in refusal.messages))
        for refusal in refusals
    )


def _describe(name: str, there: int, daemons: Sequence[Pod]) -> str:
    """The message has no comma: Events count the parts between commas."""
    requested = {_get_owner_name(pod): sum_demand((pod,))[name] for pod in daemons}
    largest = sorted((owner for owner in requested if requested[owner]), key=lambda owner: (-requested[owner], owner))
    if len(largest) == 1:
        who = f"daemon set {largest[0]} takes"
    else:
        who = f"daemon sets {largest[0]} and {len(largest) - 1} more take"
    taken, total = _format_amount(name, sum(requested.values())), _format_amount(name, there)
    return f"{_INSUFFICIENT}{name}: {who} {taken} of {total} on each node"


def _get_owner_name(daemon: Pod) -> str:
    meta = daemon.metadata
    name = next((owner.name for owner in meta.owner_references if owner.controller), meta.name)
    return f"{meta.namespace}/{name}"


def _format_amount(name: str, amount: int) -> str:
    return ResourceVector({name: amount}).to_json().get(name, "0")
