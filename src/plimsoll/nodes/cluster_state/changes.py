"""What the registry found in a loop iteration: results of scale-ups, and wrong sizes and instances. Data only.

Each change carries a reason whose code is the Event's (docs/design/nodes.md 11). Actuators carry out `ShrinkTarget` and
`DeleteInstances`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from plimsoll.core.durations import format_duration
from plimsoll.core.plans import Reason
from plimsoll.nodes.model.reasons import DELETE_UNREGISTERED, SCALE_UP_TIMED_OUT

if TYPE_CHECKING:
    from collections.abc import Iterable

    from plimsoll.nodes.cluster_state.observed import ScaleUpError

SCALE_UP_FAILED: Final = "ScaleUpFailed"
WRONG_SIZE: Final = "NodeGroupSizeDiffers"
_MESSAGES_SHOWN: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedScaleUp:
    """A failed scale-up, by timeout or by error; the group is backed off already."""

    group: str
    error: ScaleUpError
    nodes: int
    reason: Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class ShrinkTarget:
    """Give up nodes that did not arrive: set the size to `after` if it is still `before`."""

    group: str
    before: int
    after: int
    reason: Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteInstances:
    """Delete instances that will not become nodes; `force` ignores the minimum size where the provider can."""

    group: str
    instances: tuple[str, ...]
    force: bool
    reason: Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """All changes of one loop iteration, sorted by group id."""

    arrived: tuple[str, ...] = ()
    """Groups whose scale-up is complete."""
    failed: tuple[FailedScaleUp, ...] = ()
    shrink: tuple[ShrinkTarget, ...] = ()
    delete_failed: tuple[DeleteInstances, ...] = ()
    delete_unregistered: tuple[DeleteInstances, ...] = ()


def build_timeout_reason(group: str, *, missing: int, waited_s: float) -> Reason:
    return Reason(
        code=SCALE_UP_TIMED_OUT,
        message=f"Nodes added to group {group} failed to register within {format_duration(waited_s)}",
        facts={"group": group, "missing": missing, "waitedSeconds": waited_s},
    )


def build_failed_instances_reason(
    group: str, error: ScaleUpError, *, failed: int, new: int, messages: Iterable[str]
) -> Reason:
    distinct = sorted({message for message in messages if message})
    shown = ", ".join(distinct[:_MESSAGES_SHOWN])
    more = f", ...and {len(distinct) - _MESSAGES_SHOWN} more" if len(distinct) > _MESSAGES_SHOWN else ""
    return Reason(
        code=SCALE_UP_FAILED,
        message=(
            f"Failed adding {failed} nodes ({new} unseen previously) to group {group} due to {error}; "
            f"source errors: {shown}{more}"
        ),
        facts={"group": group, "errorClass": str(error.error_class), "errorCode": error.code, "nodes": new},
    )


def build_deleted_instances_reason(group: str, count: int) -> Reason:
    return Reason(
        code=SCALE_UP_FAILED,
        message=f"{count} instances of group {group} could not be created and are deleted",
        facts={"group": group, "instances": count},
    )


def build_unregistered_reason(group: str, count: int, *, limit_s: float, kept: int) -> Reason:
    left = f"; {kept} more stay, the group is at its min size without them" if kept else ""
    return Reason(
        code=DELETE_UNREGISTERED,
        message=f"{count} instances of group {group} did not become nodes within {format_duration(limit_s)}{left}",
        facts={"group": group, "instances": count, "kept": kept, "limitSeconds": limit_s},
    )


def build_size_mismatch_reason(group: str, *, nodes: int, target: int, limit_s: float) -> Reason:
    return Reason(
        code=WRONG_SIZE,
        message=f"group {group} has {nodes} nodes and a target of {target} for more than {format_duration(limit_s)}",
        facts={"group": group, "nodes": nodes, "target": target, "limitSeconds": limit_s},
    )
