"""Settings of the simulated OCM: its delays, its limits, and who may use it."""

from __future__ import annotations

from typing import Final

from plimsoll.core.errors import InvalidInput
from plimsoll.core.values import Value

MOST_WORKERS: Final = 180
"""The most workers in all pools of a cluster."""
MOST_CLUSTERS: Final = 1_000
BASE_DOMAIN: Final = "fleet.example.com"


class OcmDelays(Value):
    """How long a cluster stays in a state, on the clock; the data plane may take longer."""

    pending_s: float = 60.0
    installing_s: float = 600.0
    addon_s: float = 120.0
    uninstalling_s: float = 120.0

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            if not 0 <= getattr(self, name) < 10**9:
                raise InvalidInput("must be a number of seconds from 0 on", path=name)


NO_DELAYS: Final = OcmDelays(pending_s=0.0, installing_s=0.0, addon_s=0.0, uninstalling_s=0.0)


class OcmSettings(Value):
    """`client_id` empty: no token is needed. `has_unique_names`: the name of a live cluster is refused as taken."""

    delays: OcmDelays = OcmDelays()
    most_workers: int = MOST_WORKERS
    most_clusters: int = MOST_CLUSTERS
    base_domain: str = BASE_DOMAIN
    client_id: str = ""
    client_secret: str = ""
    token_lifetime_s: float = 300.0
    has_unique_names: bool = True
    failing_share: float = 0.0
    """The share of creations that end in `error`, drawn from the entropy."""
    addon_ids: frozenset[str] = frozenset()
    """The add-ons that can be installed; empty: any."""
