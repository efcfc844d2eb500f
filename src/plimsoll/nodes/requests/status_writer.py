"""Writes what was decided of ProvisioningRequests into their status: the only place here that speaks to the API server.

Server-side apply in one name, with everything that is ours, on exactly the object that was read: uid and version are
named, so that of two controllers that both mean to answer a request one is refused. Nothing is tried twice: what could
not be written is not assumed, and the next turn says it again (specs/nodes.md 2.2).

A cache may be behind our own writes. What the server answered to them counts until the cache shows something newer.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import structlog

from plimsoll.kube.errors import ApiCallFailed, NotFound
from plimsoll.kube.informer.own_writes import Mutations
from plimsoll.kube.requests.options import DeleteOptions
from plimsoll.objects.api.provisioning_requests import ProvisioningRequest

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from plimsoll.kube.client import Client
    from plimsoll.nodes.requests.model import RequestView, StatusUpdate
    from plimsoll.nodes.requests.status import Conditions, Details

log = structlog.get_logger(__name__)

MANAGER: Final = "cluster-autoscaler"
_TIMEOUT_S: Final = 4.0
_AT_ONCE: Final = 8
"""So few that with the default rate of five calls a second nobody waits for long behind the others."""


class RequestStatusWriter:
    """One a controller."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._mutations: Mutations[ProvisioningRequest] = Mutations()

    def freshest(self, listed: Iterable[ProvisioningRequest]) -> tuple[ProvisioningRequest, ...]:
        """The list of a cache, with our own writes where the cache does not show them yet."""
        return self._mutations.newest_of(listed)

    async def write_all(self, updates: Sequence[StatusUpdate]) -> tuple[StatusUpdate, ...]:
        """The same, each with whether it was written."""
        turns = asyncio.Semaphore(_AT_ONCE)
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(self._in_turn(turns, update)) for update in updates]
        return tuple(task.result() for task in tasks)

    async def write(self, view: RequestView, conditions: Conditions, details: Details) -> bool:
        """Whether the server has it."""
        base = self._mutations.newest(view.request).metadata
        status: dict[str, Any] = {"conditions": conditions.to_json()}
        if texts := details.to_map():
            status["provisioningClassDetails"] = texts
        body = {"metadata": {"uid": base.uid, "resourceVersion": base.resource_version}, "status": status}
        try:
            async with asyncio.timeout(_TIMEOUT_S):
                written = await self._client.apply(
                    ProvisioningRequest,
                    base.name,
                    body,
                    namespace=base.namespace,
                    subresource="status",
                    field_manager=MANAGER,
                    force=True,
                )
        except (ApiCallFailed, TimeoutError) as error:
            log.warning("provreq.not_written", request=view.name, problem=str(error) or type(error).__name__)
            return False
        self._mutations.wrote(written, replaced=base.resource_version)
        return True

    async def delete(self, view: RequestView) -> bool:
        """Whether it is gone, or will be."""
        meta = view.request.metadata
        try:
            async with asyncio.timeout(_TIMEOUT_S):
                await self._client.delete(
                    ProvisioningRequest, meta.name, namespace=meta.namespace, options=DeleteOptions(uid=meta.uid)
                )
        except NotFound:
            return True
        except (ApiCallFailed, TimeoutError) as error:
            log.warning("provreq.not_deleted", request=view.name, problem=str(error) or type(error).__name__)
            return False
        return True

    # ---- inside

    async def _in_turn(self, turns: asyncio.Semaphore, update: StatusUpdate) -> StatusUpdate:
        async with turns:
            is_written = await self.write(update.view, update.conditions, update.details)
        return replace(update, is_written=is_written)
