"""Claims: the streaming units that instances of this cluster hold (docs/design/fleet.md 17.3)."""

from __future__ import annotations

from collections.abc import Mapping  # noqa: TC003 - msgspec reads annotations at run time

import msgspec

from plimsoll.core.values import Value


class Claim(Value, omit_defaults=True):
    """What an instance holds. An instance is its namespace: no two instances share one."""

    name: str
    id: str
    instance_type: str
    placement_id: str
    units: int = 0
    """0: nothing is held. The entry stays for `earlier` while the instance is replaced."""
    earlier: tuple[str, ...] = ()
    """Placements of the instance that were removed here. They do not come back."""


class ClaimsList(Value):
    """All claims of the cluster, with the version of the object that stores them. `version` empty: there is none."""

    claims: Mapping[str, Claim] = msgspec.field(default_factory=dict)
    """By namespace."""
    version: str = ""
    unreadable: tuple[str, ...] = ()
    """Namespaces whose entry cannot be read. How much they hold is not known, so nothing further is granted."""

    def count_units(self, instance_type: str) -> int:
        return sum(claim.units for claim in self.claims.values() if claim.instance_type == instance_type)
