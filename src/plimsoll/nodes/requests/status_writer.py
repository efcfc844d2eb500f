"""Writes status updates of ProvisioningRequests to the API server.

Server-side apply by one field manager, with all owned fields, on exactly the object that was read: uid and
resourceVersion are part of the apply, so one of two controllers that answer the same request is rejected. Writes are
not retried: a failed write is not assumed, and the next loop writes again (docs/design/nodes.md 2.2).

An informer cache may lag behind these writes. The server's response counts until the cache shows something newer.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import structlog

from plimsoll.kube.errors import ApiCallFailed, NotFound
from plimsoll.kube.informer.own_writes import Mutations
from plimsoll.kube.requests.options import DeleteOptions
from plimsoll.nodes.requests.status import describe_state
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
"""Few enough that with the default rate of five calls per second no write waits long."""


class RequestStatusWriter:
    """Writes the status of requests and remembers its own writes."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._mutations: Mutations[ProvisioningRequest] = Mutations()

    def replace_stale(self, listed: Iterable[ProvisioningRequest]) -> tuple[ProvisioningRequest, ...]:
        """The list of a cache, with our own writes where the cache does not show them yet."""
        return self._mutations.overlay(listed)

    async def write_all(self, updates: Sequence[StatusUpdate]) -> tuple[StatusUpdate, ...]:
        """The same updates, each with whether it was written."""
        slots = asyncio.Semaphore(_AT_ONCE)
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(self._write_in_slot(slots, update)) for update in updates]
        return tuple(task.result() for task in tasks)

    async def write(self, view: RequestView, conditions: Conditions, details: Details) -> bool:
        """Write a status; returns whether the server has it."""
        base = self._mutations.get_newest(view.request).metadata
        texts = {**details.to_map(), **describe_state(conditions)}
        status: dict[str, Any] = {"conditions": conditions.to_json(), "provisioningClassDetails": texts}
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
        self._mutations.record_write(written, replaced=base.resource_version)
        return True

    async def delete(self, view: RequestView) -> bool:
        """Delete a request; returns whether it is gone or being deleted."""
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

    async def _write_in_slot(self, slots: asyncio.Semaphore, update: StatusUpdate) -> StatusUpdate:
        async with slots:
            is_written = await self.write(update.view, update.conditions, update.details)
        return replace(update, is_written=is_written)
