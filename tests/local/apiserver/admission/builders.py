"""A store with admission in front of it, and objects with defaults: for the tests of admission."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from copy import deepcopy
from typing import TYPE_CHECKING, Any, TypeVar

import pytest

from plimsoll.local.apiserver.admission import Admission
from plimsoll.local.apiserver.admission import AdmissionAttributes as Attempt
from plimsoll.local.apiserver.auth_types import Attributes, Decision, User
from plimsoll.local.apiserver.resources.builtin import list_builtin_resources
from plimsoll.local.apiserver.resources.registry import ResourceRegistry, ServedResource
from plimsoll.local.apiserver.status_errors import StatusError
from plimsoll.local.apiserver.storage import Delete, Key, MemoryDriver, Put, Store, Stored
from plimsoll.objects.builtin import default
from plimsoll.runtime.entropy import SeededEntropy
from plimsoll.testing import run_virtual

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from plimsoll.local.apiserver.storage import HistoryLimits
    from plimsoll.local.apiserver.storage.drivers.interface import Driver
    from plimsoll.runtime.clocks import VirtualClock

Json = dict[str, Any]
T = TypeVar("T")

ANYBODY = User(name="somebody", groups=("system:masters",))
CATALOGUE = ResourceRegistry(list_builtin_resources())


class ObjectExists(Exception):
    """The write does not come about."""


def _unless_there(current: Stored | None, body: Json, *, fails: bool) -> Put:
    if fails or current is not None:
        raise ObjectExists
    return Put(body)


class AllowAllAuthorizer:
    def decide(self, _attributes: Attributes) -> Decision:
        return Decision(allowed=True)


class AdmissionHarness:
    """What a handler does with admission, without a handler: `create`, `update` and `delete` go through all steps."""

    def __init__(self, clock: VirtualClock, driver: Driver | None = None, limits: HistoryLimits | None = None) -> None:
        self.clock = clock
        self.store = Store.open(driver or MemoryDriver(), clock=clock, limits=limits)
        self.admission = Admission(
            store=self.store, clock=clock, entropy=SeededEntropy(1), authorizer=AllowAllAuthorizer()
        )

    async def put(self, obj: Json) -> Json:
        """Store it, without asking anybody."""
        whole = default(deepcopy(obj))
        stored = await self.store.update(key_of(whole), lambda _current: Put(whole))
        assert stored is not None
        return stored.decode_body()

    async def furnish(self, namespace: str = "ns", *, phase: str = "Active") -> None:
        """A namespace as a pod needs it."""
        whole = an("v1", "Namespace", namespace, namespace="", status={"phase": phase})
        await self.store.update(key_of(whole), lambda _current: Put(whole))
        await self.put(an("v1", "ServiceAccount", "default", namespace=namespace))

    async def create(self, obj: Json, *, pauses: int = 0, fails: bool = False, **details: Any) -> Json:
        whole = default(deepcopy(obj))
        attempt = attempt_of("CREATE", whole, **details)
        await self.admission.mutate(attempt)
        await self.admission.validate(attempt)
        for _ in range(pauses):
            await asyncio.sleep(0)
        if attempt.dry_run:
            return whole
        with suppress(ObjectExists):
            await self._write(attempt, lambda current: _unless_there(current, whole, fails=fails))
        return whole

    async def _write(self, attempt: Attempt, change: Callable[[Stored | None], Put]) -> None:
        assert attempt.obj is not None
        is_written = False
        try:
            await self.store.update(key_of(attempt.obj), change)
            is_written = True
        finally:
            if not is_written:
                self.admission.release(attempt)

    async def update(self, obj: Json, *, pauses: int = 0, **details: Any) -> Json:
        stored = self.store.get(key_of(obj))
        assert stored is not None
        whole = default(deepcopy(obj))
        attempt = attempt_of("UPDATE", whole, old=stored.decode_body(), **details)
        await self.admission.mutate(attempt)
        await self.admission.validate(attempt)
        for _ in range(pauses):
            await asyncio.sleep(0)
        await self._write(attempt, lambda _current: Put(whole))
        return whole

    async def delete(self, obj: Json) -> None:
        await self.admission.mutate(attempt_of("DELETE", obj, gone=True))
        await self.store.update(key_of(obj), lambda _current: Delete())

    def get(self, api_version: str, kind: str, name: str, namespace: str = "ns") -> Json:
        stored = self.store.get(key_of(an(api_version, kind, name, namespace=namespace)))
        assert stored is not None
        return stored.decode_body()


def in_world(
    story: Callable[[AdmissionHarness], Awaitable[T]],
    driver: Driver | None = None,
    *,
    limits: HistoryLimits | None = None,
) -> T:
    async def reported(clock: VirtualClock) -> T:
        return await story(AdmissionHarness(clock, driver, limits))

    return run_virtual(reported)


def refused(story: Callable[[AdmissionHarness], Awaitable[Any]]) -> Json:
    """The Status that the story ends with."""
    with pytest.raises(StatusError) as caught:
        in_world(story)
    return caught.value.status


def served(api_version: str, kind: str) -> ServedResource:
    found = CATALOGUE.find_kind(api_version, kind)
    assert found is not None
    return found


def key_of(obj: Json) -> Key:
    resource = served(obj["apiVersion"], obj["kind"])
    metadata = obj["metadata"]
    return Key(resource.stored_as, metadata.get("namespace", "") if resource.namespaced else "", metadata["name"])


def attempt_of(
    operation: Any, obj: Json, *, old: Json | None = None, gone: bool = False, dry_run: bool = False
) -> Attempt:
    metadata = obj["metadata"]
    resource = served(obj["apiVersion"], obj["kind"])
    return Attempt(
        operation=operation,
        resource=resource,
        user=ANYBODY,
        namespace=metadata.get("namespace", "") if resource.namespaced else "",
        name=metadata.get("name", ""),
        obj=None if gone else obj,
        old=obj if gone else old,
        dry_run=dry_run,
    )


def an(api_version: str, kind: str, name: str, *, namespace: str = "ns", **parts: Any) -> Json:
    metadata: Json = {"name": name, **parts.pop("metadata", {})}
    if namespace:
        metadata["namespace"] = namespace
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **parts}


def pod(name: str = "p", *, requests: Json | None = None, limits: Json | None = None, **spec: Any) -> Json:
    resources = {"requests": requests or {}, "limits": limits or {}}
    container = {"name": "c", "image": "nginx:1.27", "resources": {part: of for part, of in resources.items() if of}}
    return an("v1", "Pod", name, spec={"containers": [container], **spec})


def quota(name: str = "rq", *, hard: Json, **spec: Any) -> Json:
    return an("v1", "ResourceQuota", name, spec={"hard": hard, **spec})


def limit_range(*limits: Json, name: str = "lr") -> Json:
    return an("v1", "LimitRange", name, spec={"limits": list(limits)})
