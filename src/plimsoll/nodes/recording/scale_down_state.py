"""The scale-down state that a plan was made with, as JSON and back. Pure."""

from __future__ import annotations

from datetime import datetime  # noqa: TC003 - msgspec reads annotations at run time
from typing import TYPE_CHECKING, Any

import msgspec

from plimsoll.core.values import Value
from plimsoll.nodes.planning.scaledown.drainability import ControllerInfo
from plimsoll.nodes.planning.scaledown.eligibility import ScaleDownState
from plimsoll.nodes.recording.wire import Json, read, to_plain
from plimsoll.scheduling.cluster_view import PodKey

if TYPE_CHECKING:
    from collections.abc import Mapping


class _Moment(Value):
    node_name: str
    at: datetime


class _Owner(Value):
    namespace: str
    kind: str
    name: str
    exists: bool = True
    replicas: int | None = None


class _Hint(Value):
    namespace: str
    name: str
    node_name: str


class _Deletions(Value):
    group: str
    count: int


class _Known(Value):
    unneeded_since: tuple[_Moment, ...] = ()
    unremovable_until: tuple[_Moment, ...] = ()
    owners: tuple[_Owner, ...] = ()
    hints: tuple[_Hint, ...] = ()
    postponed_nodes: tuple[str, ...] | msgspec.UnsetType = msgspec.UNSET
    """Mostly none, and then not written."""
    leaving_nodes: tuple[str, ...] = ()
    deletions: tuple[_Deletions, ...] | None = None
    unready_nodes: tuple[str, ...] = ()
    booked_nodes: tuple[str, ...] = ()
    removals_under_way: int = 0
    drains_under_way: int = 0


def encode_state(known: ScaleDownState) -> Json:
    deletions = known.deletions
    written = _Known(
        unneeded_since=_encode_times(known.unneeded_since),
        unremovable_until=_encode_times(known.unremovable_until),
        owners=tuple(
            _Owner(namespace=namespace, kind=kind, name=name, exists=controller.exists, replicas=controller.replicas)
            for (namespace, kind, name), controller in sorted(known.controllers.items(), key=lambda item: item[0])
        ),
        hints=tuple(
            _Hint(namespace=key.namespace, name=key.name, node_name=node) for key, node in sorted(known.hints.items())
        ),
        postponed_nodes=known.postponed or msgspec.UNSET,
        leaving_nodes=tuple(sorted(known.being_deleted)),
        deletions=None
        if deletions is None
        else tuple(_Deletions(group=group, count=count) for group, count in sorted(deletions.items())),
        unready_nodes=tuple(sorted(known.unready)),
        booked_nodes=tuple(sorted(known.booked)),
        removals_under_way=known.removals_under_way,
        drains_under_way=known.drains_under_way,
    )
    found: Json = to_plain(written)
    return found


def read_state(value: Any) -> ScaleDownState:
    """Raises `UnreadableRecording` with the path of the problem."""
    written = read(_Known, value, path="known")
    deletions = written.deletions
    return ScaleDownState(
        unneeded_since={moment.node_name: moment.at for moment in written.unneeded_since},
        unremovable_until={moment.node_name: moment.at for moment in written.unremovable_until},
        controllers={
            (owner.namespace, owner.kind, owner.name): ControllerInfo(exists=owner.exists, replicas=owner.replicas)
            for owner in written.owners
        },
        hints={PodKey(hint.namespace, hint.name): hint.node_name for hint in written.hints},
        postponed=() if isinstance(written.postponed_nodes, msgspec.UnsetType) else written.postponed_nodes,
        being_deleted=frozenset(written.leaving_nodes),
        deletions=None if deletions is None else {deletion.group: deletion.count for deletion in deletions},
        unready=frozenset(written.unready_nodes),
        booked=frozenset(written.booked_nodes),
        removals_under_way=written.removals_under_way,
        drains_under_way=written.drains_under_way,
    )


def _encode_times(times: Mapping[str, datetime]) -> tuple[_Moment, ...]:
    return tuple(_Moment(node_name=name, at=at) for name, at in sorted(times.items()))
