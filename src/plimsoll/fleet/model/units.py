"""Kafkas counted by the database, for decisions that need their number and not their rows."""

from __future__ import annotations

from plimsoll.core.values import Value
from plimsoll.fleet.model.clusters import Locator  # noqa: TC001 - msgspec reads annotations at run time


class KafkaCount(Value):
    """Live Kafkas of one size on one cluster. `cluster_id` empty: Kafkas without a place.

    Kafkas in status `deleting` are counted in `deleting`, not in `consuming`: they have left the data plane, but the
    limit of a region counts them.
    """

    locator: Locator
    cluster_id: str
    size_id: str
    consuming: int
    deleting: int = 0
    accepted: int = 0
    """The part of `consuming` in status `accepted`."""
    example_id: str = ""
    """The id of one of them, for errors about an unknown size."""
