"""Pods that waited and wait no more: where they are now, so that the last word on a pod that runs is no old one. Pure.

Plans name pods that wait; `journal_news` remembers whom they named, and asks here about those that are named no more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from plimsoll.core.plans import NotDone, Reason
from plimsoll.scheduling.view import PodKey

if TYPE_CHECKING:
    from collections.abc import Iterable

    from plimsoll.core.plans import Ref
    from plimsoll.nodes.planning.world import Snapshot
    from plimsoll.nodes.turns import Turn

_WAITS_NO_MORE: Final = "waits no more"
_NOT_SEEN: Final = Reason(code="WaitsNoMore", message="it is not among the pods without a place any more")


def settled_pods(refs: Iterable[Ref], turn: Turn) -> tuple[NotDone, ...]:
    """Of pods by their refs; nothing of those that still wait, and nothing at all where nobody could look."""
    if turn.snapshot is None:
        return ()
    waiting = {(one.pod.metadata.namespace, name) for one in turn.snapshot.pending for name in one.names}
    asked = {PodKey(ref.namespace, ref.name): ref for ref in refs if (ref.namespace, ref.name) not in waiting}
    if not asked:
        return ()
    by_node = _by_node(set(asked), turn.snapshot)
    found = {key for keys in by_node.values() for key in keys}
    told = [_told(_on(node), [asked[key] for key in sorted(keys)]) for node, keys in sorted(by_node.items())]
    gone = [asked[key] for key in sorted(set(asked) - found)]
    return (*told, _told(_NOT_SEEN, gone)) if gone else tuple(told)


def _by_node(keys: set[PodKey], snapshot: Snapshot) -> dict[str, set[PodKey]]:
    found = ((state.name, state.pods.keys() & keys) for state in snapshot.view.nodes.values())
    return {node: met for node, met in found if met}


def _told(reason: Reason, refs: list[Ref]) -> NotDone:
    return NotDone(what=_WAITS_NO_MORE, about=tuple(refs), reason=reason)


def _on(node: str) -> Reason:
    return Reason(code="HasPlace", message=f"it has a place on node {node}", facts={"node": node})
