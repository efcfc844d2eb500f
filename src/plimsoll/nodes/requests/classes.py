"""Classes of ProvisioningRequests: which of them are answered here, and what they do (specs/nodes.md 3.1). Pure.

A class that is not known here is nobody's business: its requests are neither accepted nor failed, booked, expired or
deleted. Of several instances that answer checks each has a name; the one without a name answers who names nobody.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from plimsoll.nodes.requests.seen import Nature
from plimsoll.objects.requests import ATOMIC_CLASSES, CHECK_CLASSES

if TYPE_CHECKING:
    from collections.abc import Collection

MIRRORING: Final = "check-capacity.kubernetes.io"
"""The name of the first design: such requests get its condition CapacityAvailable too."""
BUILT_IN: Final = (*ATOMIC_CLASSES, *CHECK_CLASSES)


def nature_of(kind: str, *, instance: str = "", registered: Collection[str] = ()) -> Nature | None:
    """What requests of a class with this name are; None: nobody here answers them."""
    if kind in ATOMIC_CLASSES:
        return Nature.ATOMIC
    if kind in CHECK_CLASSES or is_named_after(kind, instance):
        return Nature.CHECK
    return Nature.REGISTERED if kind in registered else None


def is_for(kind: str, wanted: str, *, instance: str) -> bool:
    """Whether the instance of this name answers a request that wants the instance `wanted`."""
    if not instance:
        return not wanted
    return is_named_after(kind, instance) or (kind in CHECK_CLASSES and wanted == instance)


def is_named_after(kind: str, instance: str) -> bool:
    """Whether the name of a check class begins with that of the instance: the old way to choose one."""
    return bool(instance) and any(kind == f"{instance}{one}" for one in CHECK_CLASSES)


def is_same(kind: str, other: str) -> bool:
    """Whether both names are of one class: those of ours have had several."""
    return kind == other or any(kind in names and other in names for names in (ATOMIC_CLASSES, CHECK_CLASSES))


def mirrors(kind: str) -> bool:
    """Whether `CapacityAvailable` comes beside `Provisioned`."""
    return kind.endswith(MIRRORING)


def why_not_allowed(kind: str, listed: Collection[str]) -> str:
    """Empty where it is: no ProvisioningClass in the cluster, or one of this name (3.9)."""
    if not listed or kind in listed:
        return ""
    return f"class {kind} is not among the ProvisioningClasses of the cluster: {', '.join(sorted(listed))}"
