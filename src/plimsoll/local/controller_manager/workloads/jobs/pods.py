"""The pods of a job: creates them with the tracking finalizer, deletes them, and removes the finalizer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from plimsoll.kube.controlled_objects.pod_control import (
    PodControl,
    build_pod,
    read_template,
    run_slow_start_batch,
)
from plimsoll.kube.errors import Invalid, NotFound
from plimsoll.kube.informer.own_writes import Expectations
from plimsoll.local.controller_manager.workloads.jobs.indexes import INDEX_KEY
from plimsoll.local.controller_manager.workloads.jobs.tracking import TRACKING, is_tracked
from plimsoll.objects.api.pods import Pod

if TYPE_CHECKING:
    from collections.abc import Mapping

    from plimsoll.core.errors import PlimsollError
    from plimsoll.local.components import Component
    from plimsoll.local.controller_manager.workloads.jobs.plan import JobPlan
    from plimsoll.objects.api.meta import ObjectMeta
    from plimsoll.objects.api.resource import Resource
    from plimsoll.objects.api.workloads import Job
    from plimsoll.objects.codec.decoding import RawObject

_INDEX_VARIABLE: Final = "JOB_COMPLETION_INDEX"
# A generated name is cut to this, its suffix and the dash before the index included.
_LONGEST_NAME: Final = 63
_SUFFIX_LENGTH: Final = 5


class JobPods:
    """Creates and deletes the pods of jobs."""

    def __init__(self, component: Component, resource: Resource) -> None:
        self._client = component.client
        self._resource = resource
        self.own_writes: Expectations[Pod] = Expectations(component.informers.get_informer(Pod), clock=component.clock)
        self._making = PodControl(component.client, component.recorder, resource, self.own_writes)

    async def create(self, found: RawObject[Job], plan: JobPlan) -> tuple[int, PlimsollError | None]:
        """Make the pods of a plan; gives how many there are of them and the first error."""
        metadata = found.view.metadata
        template = read_template(found.raw)
        made = 0

        async def create_one(number: int) -> PlimsollError | None:
            nonlocal made
            index = plan.indexes[number] if plan.indexes else None
            body = build_job_pod(template, self._resource, metadata, index=index)
            if plan.annotations:
                body["metadata"]["annotations"] |= plan.annotations[number]
            error = await self._making.create_as(body, metadata)
            made += error is None
            return error

        error = await run_slow_start_batch(plan.create, create_one)
        return made, error

    async def delete(self, pod: Pod, owner: ObjectMeta, *, keep_tracking: bool) -> PlimsollError | None:
        """Delete a pod; one that is not to be counted loses its finalizer before."""
        if not keep_tracking:
            await self.release(pod, owner.uid)
        return await self._making.delete(pod, owner)

    async def release(self, pod: Pod, owner_uid: str) -> None:
        """Take the finalizer off. A pod that is gone needs nothing."""
        if not is_tracked(pod):
            return
        metadata = pod.metadata
        body = {"metadata": {"uid": metadata.uid, "$deleteFromPrimitiveList/finalizers": [TRACKING]}}
        try:
            patched = await self._client.patch_strategic(Pod, metadata.name, body, namespace=metadata.namespace)
        except (NotFound, Invalid):
            # Gone, or another pod has its name by now.
            self.own_writes.expect_deletion(owner_uid, pod)
        else:
            self.own_writes.expect_write(owner_uid, patched)


def build_job_pod(
    template: Mapping[str, Any], resource: Resource, owner: ObjectMeta, *, index: int | None
) -> dict[str, Any]:
    """A pod of a job; with an index it knows which part of the work is its own."""
    body = build_pod(template, resource, owner)
    metadata = body["metadata"]
    finalizers = [finalizer for finalizer in metadata.get("finalizers", []) if finalizer != TRACKING]
    metadata["finalizers"] = [*finalizers, TRACKING]
    if index is None:
        return body
    metadata["generateName"] = _build_indexed_prefix(owner.name, index)
    metadata["annotations"] = {**metadata.get("annotations", {}), INDEX_KEY: str(index)}
    metadata["labels"] = {**metadata.get("labels", {}), INDEX_KEY: str(index)}
    spec = {**body["spec"], "hostname": f"{owner.name}-{index}"}
    for kind in ("initContainers", "containers"):
        if spec.get(kind):
            spec[kind] = [_add_index_env(container) for container in spec[kind]]
    body["spec"] = spec
    return body


def _build_indexed_prefix(name: str, index: int) -> str:
    end = f"-{index}-"
    return name[: _LONGEST_NAME - _SUFFIX_LENGTH - len(end)] + end


def _add_index_env(container: Mapping[str, Any]) -> dict[str, Any]:
    variables = list(container.get("env") or [])
    if any(variable.get("name") == _INDEX_VARIABLE for variable in variables):
        return dict(container)
    field = {"fieldPath": f"metadata.labels['{INDEX_KEY}']"}
    return {**container, "env": [*variables, {"name": _INDEX_VARIABLE, "valueFrom": {"fieldRef": field}}]}
