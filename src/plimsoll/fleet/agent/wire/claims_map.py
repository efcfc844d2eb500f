"""The ConfigMap that stores the claims: one key per instance, its namespace. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from plimsoll.fleet.agent.model.claims import Claim, ClaimsList

if TYPE_CHECKING:
    from collections.abc import Mapping

    from plimsoll.objects.api.core import ConfigMap

CLAIMS_MAP: Final = "plimsoll-agent-claims"


def read_claims(stored: ConfigMap) -> ClaimsList:
    claims: dict[str, Claim] = {}
    unreadable = []
    for namespace, text in sorted(stored.data.items()):
        try:
            claim = msgspec.json.decode(text, type=Claim)
        except (msgspec.DecodeError, RecursionError):  # also fields of the wrong type
            unreadable.append(namespace)
            continue
        if claim.units < 0:
            unreadable.append(namespace)
        else:
            claims[namespace] = claim
    return ClaimsList(claims=claims, version=stored.metadata.resource_version, unreadable=tuple(unreadable))


def format_claim(claim: Claim | None) -> str | None:
    """The value of a key; None removes it."""
    return None if claim is None else msgspec.json.encode(claim).decode()


def build_changes(changed: Mapping[str, Claim | None]) -> dict[str, str | None]:
    return {namespace: format_claim(claim) for namespace, claim in changed.items()}
