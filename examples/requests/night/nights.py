"""An example of a custom provisioning class: machines are added at night only, when they are cheap.

Plimsoll calls `answer` when a request of the class is due: immediately, and then with back-off until it is provisioned
or failed. The function may read the request, the snapshot and the time; it must be fast and have no side effects.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from plimsoll.nodes.requests.classes import Handled
from plimsoll.nodes.requests.status import build_condition

if TYPE_CHECKING:
    from datetime import datetime

    from plimsoll.nodes.model.snapshot import Snapshot
    from plimsoll.nodes.requests.model import RequestView

MOST_PODS = 100


def answer(request: RequestView, _snapshot: Snapshot, now: datetime) -> Handled:
    """Refuse by day, and fail requests for too many pods; plan all others like the atomic class."""
    if request.total > MOST_PODS:
        return Handled(conditions=(build_condition("Failed", "True", "TooMany", f"at most {MOST_PODS} pods", at=now),))
    if 6 <= now.hour < 22:
        told = "machines are added from 22:00 to 06:00 UTC"
        return Handled(conditions=(build_condition("Provisioned", "False", "ItIsDay", told, at=now),))
    night = build_condition("Night", "True", "ItIsNight", "machines are cheap", at=now)
    return Handled(plan=request.pods, conditions=(night,), details={"askedAt": f"{now:%H:%M}"})


answer.condition_types = ("Night",)  # type: ignore[attr-defined]  # of its own, beside those that every class may set
