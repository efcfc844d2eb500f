"""Stores the claims in one ConfigMap. A write names the version that it was decided on, so it is the only one of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from plimsoll.fleet.agent.wire.claims_map import CLAIMS_MAP, build_changes, read_claims
from plimsoll.fleet.agent.wire.names import AGENT, MANAGED_BY
from plimsoll.kube.errors import NotFound
from plimsoll.objects.api.core import ConfigMap

if TYPE_CHECKING:
    from collections.abc import Mapping

    from plimsoll.fleet.agent.model.claims import Claim, ClaimsList
    from plimsoll.kube.client import Client


class ClaimsStore:
    """The ConfigMap `plimsoll-agent-claims`."""

    def __init__(self, client: Client, namespace: str) -> None:
        self._client = client
        self._namespace = namespace

    async def read(self) -> ClaimsList | None:
        """None: it does not exist. Raises `ApiCallFailed`."""
        try:
            return read_claims(await self._client.get(ConfigMap, CLAIMS_MAP, namespace=self._namespace))
        except NotFound:
            return None

    async def create(self, claims: Mapping[str, Claim]) -> ClaimsList:
        """Raises `AlreadyExists` if another agent was faster."""
        body = {
            "metadata": {"name": CLAIMS_MAP, "namespace": self._namespace, "labels": {MANAGED_BY: AGENT}},
            "data": build_changes(claims),
        }
        return read_claims(await self._client.create(ConfigMap, body, namespace=self._namespace))

    async def write(self, changes: Mapping[str, Claim | None], *, version: str) -> ClaimsList:
        """Raises `Conflict` if the list has changed since that version, and `NotFound` if it is gone."""
        patch = {"metadata": {"resourceVersion": version}, "data": build_changes(changes)}
        return read_claims(await self._client.merge_patch(ConfigMap, CLAIMS_MAP, patch, namespace=self._namespace))
