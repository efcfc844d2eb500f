"""Pod control: creates and deletes the pods of replica sets, daemon sets, jobs and pod sets, with Events.

Templates are plain JSON, taken from the bytes of their owner, so that no field is lost. A failed creation is a value
(`PlimsollError`), because the owner reports it in its status before it tries again.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

import msgspec

from plimsoll.core.errors import PlimsollError
from plimsoll.core.names import find_subdomain_problems
from plimsoll.kube.errors import ApiError, NotAllowed, NotFound
from plimsoll.kube.recorder import EventType
from plimsoll.kube.requests.options import DeleteOptions
from plimsoll.objects.api.meta import ObjectReference
from plimsoll.objects.api.pods import Pod

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from plimsoll.kube.client import Client
    from plimsoll.kube.informer.own_writes import Expectations
    from plimsoll.kube.recorder import EventRecorder
    from plimsoll.objects.api.meta import ObjectMeta
    from plimsoll.objects.api.resource import Resource

# Never more in one turn, whatever is wanted: kube-controller-manager's burst.
BURST: Final = 500
_NAMESPACE_TERMINATING: Final = "NamespaceTerminating"


def read_template(raw: bytes) -> dict[str, Any]:
    """`spec.template` of an owner's bytes."""
    template: dict[str, Any] = msgspec.json.decode(raw)["spec"]["template"]
    return template


def build_controller_reference(resource: Resource, owner: ObjectMeta) -> dict[str, Any]:
    """The owner reference of an object that `owner` manages."""
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "name": owner.name,
        "uid": owner.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }


def build_event_subject(resource: Resource, owner: ObjectMeta) -> ObjectReference:
    """Whom an event about `owner` names."""
    return ObjectReference(
        api_version=resource.api_version,
        kind=resource.kind,
        namespace=owner.namespace,
        name=owner.name,
        uid=owner.uid,
        resource_version=owner.resource_version,
    )


def build_pod(template: Mapping[str, Any], resource: Resource, owner: ObjectMeta, *, name: str = "") -> dict[str, Any]:
    """The pod a template stands for: of its metadata only labels, annotations and finalizers are taken over.

    Without a `name` the server makes one from the owner's.
    """
    given = template.get("metadata") or {}
    kept = {field: given[field] for field in ("labels", "annotations", "finalizers") if given.get(field)}
    named = {"name": name} if name else {"generateName": build_name_prefix(owner.name)}
    metadata = {**named, **kept, "ownerReferences": [build_controller_reference(resource, owner)]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template.get("spec") or {}}


def build_name_prefix(owner: str) -> str:
    """What the names of an owner's pods begin with; the dash only where it leaves a valid name."""
    return f"{owner}-" if not find_subdomain_problems(f"{owner}-a") else owner


class PodControl:
    """Creates and deletes pods of owners of one kind, records Events, and tracks its writes for the cache."""

    def __init__(
        self, client: Client, recorder: EventRecorder, resource: Resource, own_writes: Expectations[Pod]
    ) -> None:
        self._client = client
        self._recorder = recorder
        self._resource = resource
        self._own_writes = own_writes

    async def create(
        self, template: Mapping[str, Any], owner: ObjectMeta, *, name: str = "", change: Mapping[str, Any] | None = None
    ) -> PlimsollError | None:
        """Make one pod; what went wrong, if anything did. `change` replaces top-level fields of its spec."""
        body = build_pod(template, self._resource, owner, name=name)
        if change:
            body["spec"] = {**body["spec"], **change}
        return await self.create_as(body, owner)

    async def create_as(self, body: Mapping[str, Any], owner: ObjectMeta) -> PlimsollError | None:
        """The same for a pod that is written out: daemon sets and indexed jobs add to what `build_pod` gives."""
        try:
            pod = await self._client.create(Pod, dict(body), namespace=owner.namespace)
        except NotAllowed as error:
            # This process does not lead, or is paused: no Event says that of the pod.
            return error
        except PlimsollError as error:
            if is_namespace_terminating(error):
                # Nothing can be created there any more, and no Event is needed.
                return None
            self._record_event(owner, EventType.WARNING, "FailedCreate", f"Error creating: {error}")
            return error
        self._own_writes.expect_write(owner.uid, pod)
        self._record_event(owner, EventType.NORMAL, "SuccessfulCreate", f"Created pod: {pod.metadata.name}")
        return None

    async def delete(self, pod: Pod, owner: ObjectMeta) -> PlimsollError | None:
        """Delete this very pod; one that is gone already counts as deleted."""
        metadata = pod.metadata
        try:
            await self._client.delete(
                Pod, metadata.name, namespace=metadata.namespace, options=DeleteOptions(uid=metadata.uid)
            )
        except NotFound:
            self._own_writes.expect_deletion(owner.uid, pod)
            return None
        except NotAllowed as error:
            return error
        except PlimsollError as error:
            self._record_event(owner, EventType.WARNING, "FailedDelete", f"Error deleting: {error}")
            return error
        self._own_writes.expect_deletion(owner.uid, pod)
        self._record_event(owner, EventType.NORMAL, "SuccessfulDelete", f"Deleted pod: {metadata.name}")
        return None

    def _record_event(self, owner: ObjectMeta, event_type: EventType, reason: str, message: str) -> None:
        subject = build_event_subject(self._resource, owner)
        self._recorder.record(subject, event_type, reason=reason, message=message)


def is_namespace_terminating(error: PlimsollError) -> bool:
    """Whether something was refused because its namespace is being deleted."""
    return isinstance(error, ApiError) and any(cause.reason == _NAMESPACE_TERMINATING for cause in error.causes)


async def run_slow_start_batch(
    count: int, act: Callable[[int], Awaitable[PlimsollError | None]]
) -> PlimsollError | None:
    """Do `act(0)` to `act(count - 1)`, first one, then two, four… at once; stop after a batch that met an error.

    So a template that the server refuses costs one request per reconciliation, not a hundred. Returns the first error.
    """
    done, size = 0, 1
    while done < count:
        size = min(size, count - done)
        error = await run_concurrently([act(number) for number in range(done, done + size)])
        if error is not None:
            return error
        done += size
        size *= 2
    return None


async def run_concurrently(acts: list[Awaitable[PlimsollError | None]]) -> PlimsollError | None:
    """Do all of them side by side; the first error, by their order."""
    if len(acts) == 1:
        return await acts[0]
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(_await(act)) for act in acts]
    return next((task.result() for task in tasks if task.result() is not None), None)


async def _await(act: Awaitable[PlimsollError | None]) -> PlimsollError | None:
    return await act
