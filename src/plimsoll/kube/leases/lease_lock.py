"""The Lease on the API server: read, create, and replace of exactly the observed version.

It uses a bare `Transport` and not the client, because the client's rate limit, retries and Retry-After are all waits,
and a wait can cost the lease. The elector does the retries.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Protocol

import msgspec

from plimsoll.kube.errors import NotFound, UnreadableAnswer
from plimsoll.kube.leases.lease_record import read_lease_record
from plimsoll.kube.requests.status_errors import build_api_error
from plimsoll.kube.transport import JSON, MERGE_PATCH, Request
from plimsoll.objects.api.coordination import Lease
from plimsoll.objects.registry import KINDS

if TYPE_CHECKING:
    from plimsoll.core.clock import Clock
    from plimsoll.kube.leases.lease_record import Claim, LeaseRecord
    from plimsoll.kube.leases.settings import LeaseSettings
    from plimsoll.kube.transport import Transport

_UNREADABLE: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


class ResourceLock(Protocol):
    """One Lease. Every method raises what `kube.errors` lists."""

    async def read(self, *, timeout_s: float) -> LeaseRecord | None:
        """What stands there; None if there is no such Lease."""
        ...

    async def create(self, claim: Claim, *, timeout_s: float) -> LeaseRecord:
        """Raises `AlreadyExists` if another process was faster."""
        ...

    async def replace(self, claim: Claim, *, version: str, timeout_s: float) -> LeaseRecord:
        """Raises `Conflict` if another version stands there, `NotFound` if none does."""
        ...


class LeaseLock:
    """A `ResourceLock` over a transport."""

    def __init__(self, transport: Transport, settings: LeaseSettings, *, clock: Clock) -> None:
        resource = KINDS.find_by_struct(Lease)
        assert resource is not None
        self._transport = transport
        self._settings = settings
        self._clock = clock
        self._header = {"apiVersion": resource.api_version, "kind": resource.kind}
        self._collection = resource.build_path(settings.namespace)
        self._path = resource.build_path(settings.namespace, settings.name)

    async def read(self, *, timeout_s: float) -> LeaseRecord | None:
        try:
            return await self._ask(Request("GET", self._path, headers={"accept": JSON}, timeout_s=timeout_s))
        except NotFound:
            return None

    async def create(self, claim: Claim, *, timeout_s: float) -> LeaseRecord:
        metadata = {"name": self._settings.name, "namespace": self._settings.namespace}
        lease = {**self._header, "metadata": metadata, "spec": claim.build_spec()}
        call = self._build_write_request("POST", self._collection, content_type=JSON, body=lease)
        return await self._ask(call._replace(timeout_s=timeout_s))

    async def replace(self, claim: Claim, *, version: str, timeout_s: float) -> LeaseRecord:
        # A resourceVersion inside a patch is a precondition: the server answers 409 if another one stands there.
        patch = {"metadata": {"resourceVersion": version}, "spec": claim.build_spec()}
        call = self._build_write_request("PATCH", self._path, content_type=MERGE_PATCH, body=patch)
        return await self._ask(call._replace(timeout_s=timeout_s))

    def _build_write_request(self, method: str, path: str, *, content_type: str, body: Any) -> Request:
        return Request(
            method,
            path,
            query=(("fieldManager", self._settings.field_manager),),
            headers={"accept": JSON, "content-type": content_type},
            body=msgspec.json.encode(body),
        )

    async def _ask(self, call: Request) -> LeaseRecord:
        reply = await self._transport.send(call)
        if not reply.is_success:
            raise build_api_error(reply, call, now=self._clock.now())
        try:
            lease = msgspec.json.decode(reply.body)
        except _UNREADABLE as error:
            raise UnreadableAnswer(f"{call.method} {call.path}: not JSON: {error}") from error
        if not isinstance(lease, dict) or lease.get("kind") != self._header["kind"]:
            raise UnreadableAnswer(f"{call.method} {call.path}: the answer is not a Lease")
        return read_lease_record(lease, self._settings)
