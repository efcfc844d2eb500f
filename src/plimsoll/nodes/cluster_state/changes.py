"""What the registry found out in a turn: things to tell, and things it wants done about sizes and instances. Data only.

Every one of them carries its reason, whose code is the name of the Event that tells it (specs/nodes.md 11). Actuators
carry out `ShrinkTarget` and `DeleteInstances`; nobody here does.
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
    """A group whose growth went wrong, by time or by error; it is backed off already."""

    group: str
    error: ScaleUpError
    nodes: int
    reason: Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class ShrinkTarget:
    """Give up nodes that never came: size `after`, if the size is still `before`."""

    group: str
    before: int
    after: int
    reason: Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteInstances:
    """Machines that will never be nodes. `force`: with the provider's force delete, where it has one."""

    group: str
    instances: tuple[str, ...]
    force: bool
    reason: Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """All of one turn, each list in order of the group's id."""

    arrived: tuple[str, ...] = ()
    """Groups whose growth is complete."""
    failed: tuple[FailedScaleUp, ...] = ()
    shrink: tuple[ShrinkTarget, ...] = ()
    delete_failed: tuple[DeleteInstances, ...] = ()
    delete_unregistered: tuple[DeleteInstances, ...] = ()


def timed_out(group: str, *, missing: int, waited_s: float) -> Reason:
    return Reason(
        code=SCALE_UP_TIMED_OUT,
        message=f"Nodes added to group {group} failed to register within {format_duration(waited_s)}",
        facts={"group": group, "missing": missing, "waitedSeconds": waited_s},
    )


def failed_instances(group: str, error: ScaleUpError, *, failed: int, new: int, messages: Iterable[str]) -> Reason:
    told = sorted({message for message in messages if message})
    shown = ", ".join(told[:_MESSAGES_SHOWN])
    more = f", ...and {len(told) - _MESSAGES_SHOWN} more" if len(told) > _MESSAGES_SHOWN else ""
    return Reason(
        code=SCALE_UP_FAILED,
        message=(
            f"Failed adding {failed} nodes ({new} unseen previously) to group {group} due to {error}; "
            f"source errors: {shown}{more}"
        ),
        facts={"group": group, "errorClass": str(error.error_class), "errorCode": error.code, "nodes": new},
    )


def deleted_failed_instances(group: str, count: int) -> Reason:
    return Reason(
        code=SCALE_UP_FAILED,
        message=f"{count} instances of group {group} could not be created and are deleted",
        facts={"group": group, "instances": count},
    )


def never_registered(group: str, count: int, *, limit_s: float, kept: int) -> Reason:
    left = f"; {kept} more stay, the group is at its min size without them" if kept else ""
    return Reason(
        code=DELETE_UNREGISTERED,
        message=f"{count} instances of group {group} did not become nodes within {format_duration(limit_s)}{left}",
        facts={"group": group, "instances": count, "kept": kept, "limitSeconds": limit_s},
    )


def size_differs(group: str, *, nodes: int, target: int, limit_s: float) -> Reason:
    return Reason(
        code=WRONG_SIZE,
        message=f"group {group} has {nodes} nodes and a target of {target} for more than {format_duration(limit_s)}",
        facts={"group": group, "nodes": nodes, "target": target, "limitSeconds": limit_s},
    )
