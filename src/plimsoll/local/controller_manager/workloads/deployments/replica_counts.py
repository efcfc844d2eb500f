"""Surge and unavailability of a deployment, and the share of each set in a change of size. Pure.

`ReplicaSizes` tracks the replicas of each set through the steps of one reconciliation.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

    from plimsoll.objects.api.meta import IntOrString
    from plimsoll.objects.api.workloads import Deployment, ReplicaSet

    NewSizes = dict[str, int]


ROLLING_UPDATE: Final = "RollingUpdate"


_DEFAULT: Final = "25%"


# Kubernetes reads 64 bits; a longer number is invalid there.
_MOST_DIGITS: Final = 18


def get_replicas(owner: Deployment | ReplicaSet) -> int:
    """Absent means one; the server sets it, files may omit it."""
    return 1 if owner.spec.replicas is None else owner.spec.replicas


def is_rolling(deployment: Deployment) -> bool:
    return deployment.spec.strategy.type in {"", ROLLING_UPDATE}


def compute_max_surge(deployment: Deployment) -> int:
    """How many pods there may be above the wanted number."""
    return _resolve_rolling_update_limits(deployment)[0] if is_rolling(deployment) else 0


def compute_max_unavailable(deployment: Deployment) -> int:
    """How many of the wanted pods may be unavailable; never more than are wanted."""
    wanted = get_replicas(deployment)
    return min(_resolve_rolling_update_limits(deployment)[1], wanted) if is_rolling(deployment) and wanted else 0


def scale_value(value: IntOrString | None, total: int, *, up: bool) -> int:
    """A number as it stands, or a share of `compute_total`, rounded up or down. What is neither is nothing."""
    if isinstance(value, int):
        return max(0, value)
    text = _DEFAULT if value is None else value
    digits = text.removesuffix("%")
    if digits == text or not (digits.isascii() and digits.isdigit()) or len(digits) > _MOST_DIGITS:
        return 0
    share = total * int(digits)
    return -(-share // 100) if up else share // 100


def _resolve_rolling_update_limits(deployment: Deployment) -> tuple[int, int]:
    """Surge rounds up, unavailability down; both 0 would never get anywhere, so then one may be unavailable."""
    wanted = get_replicas(deployment)
    rolling = deployment.spec.strategy.rolling_update
    surge = scale_value(rolling.max_surge if rolling else None, wanted, up=True)
    unavailable = scale_value(rolling.max_unavailable if rolling else None, wanted, up=False)
    return (surge, unavailable) if surge or unavailable else (0, 1)


def round_half_away(number: float) -> int:
    """Halves away from zero, as Kubernetes rounds here."""
    return math.floor(number + 0.5) if number >= 0 else math.ceil(number - 0.5)


class ReplicaSizes:
    """The desired replicas of each set by name. It starts with the stored ones and changes step by step."""

    def __init__(self, sets: Iterable[ReplicaSet]) -> None:
        self._sizes = {replica_set.metadata.name: get_replicas(replica_set) for replica_set in sets}

    def get_size(self, name: str) -> int:
        return self._sizes.get(name, 0)

    def put(self, name: str, size: int) -> None:
        self._sizes[name] = size

    def compute_total(self) -> int:
        return sum(self._sizes.values())
