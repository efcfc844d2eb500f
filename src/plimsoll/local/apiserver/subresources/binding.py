"""pods/binding and the older bindings: sets the node of a pod that has none yet.

The server itself writes it, without a field manager: a pod's nodeName has no owner.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from plimsoll.local.apiserver import status_errors
from plimsoll.local.apiserver.storage import Decision, Keep, Key, Put, Stored
from plimsoll.local.apiserver.subresources.body_decoding import decode_body
from plimsoll.local.apiserver.subresources.pod_conditions import set_condition
from plimsoll.objects.schema import field_errors as fields

if TYPE_CHECKING:
    from datetime import datetime

    from plimsoll.local.apiserver.request.context import RequestContext
    from plimsoll.local.apiserver.server import Server
    from plimsoll.objects.schema.field_errors import FieldError

Json = dict[str, Any]

BOUND: Final[Json] = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}


async def bind(server: Server, call: RequestContext, body: Json) -> Json:
    """Assign the pod to the node of the Binding `body`; the Status to answer with (201)."""
    binding = decode_body(call, body, api_version="v1", kind="Binding")
    metadata = binding["metadata"]
    name = metadata.get("name", "")
    if call.subresource and name != call.name:
        raise status_errors.bad_request("name in URL does not match name in Binding object")
    errors = _validate_target(binding.get("target") or {})
    if errors:
        # Kubernetes forgets to give this error a type.
        raise status_errors.unexpected(fields.format_aggregate(errors))
    now = server.clock.now()

    def change(current: Stored | None) -> Decision:
        if current is None:
            raise status_errors.not_found(name, group="", resource="pods")
        shown = server.store.get_shared_body(current)
        _check_preconditions(shown, metadata)
        pod = _assign(shown, binding, now=now)
        return Keep() if call.dry_run else Put(pod)

    await server.store.update(Key("pods", call.namespace, name), change)
    return BOUND


def _validate_target(target: Json) -> list[FieldError]:
    errors: list[FieldError] = []
    kind = target.get("kind")
    if kind and kind != "Node":
        errors.append(fields.not_supported("target.kind", kind, ("Node", "<empty>")))
    if not target.get("name"):
        errors.append(fields.required("target.name"))
    return errors


def _check_preconditions(pod: Json, given: Json) -> None:
    metadata = pod["metadata"]
    for field, called in (("uid", "UID"), ("resourceVersion", "ResourceVersion")):
        wanted = given.get(field)
        if wanted and wanted != metadata.get(field):
            key = f"/registry/pods/{metadata['namespace']}/{metadata['name']}"
            mismatch = f"{called} in precondition: {wanted}, {called} in object meta: {metadata.get(field)}"
            error = f"StorageError: invalid object, Code: 4, Key: {key}, ResourceVersion: 0, AdditionalErrorMsg: "
            why = f"{error}Precondition failed: {mismatch}"
            raise status_errors.conflict(metadata["name"], group="", resource="pods", why=why)


def _assign(pod: Json, binding: Json, *, now: datetime) -> Json:
    """The pod with its node; the given pod is shared and stays unchanged."""
    metadata, spec = pod["metadata"], pod["spec"]
    name = metadata["name"]
    problem = None
    if metadata.get("deletionTimestamp"):
        problem = f"pod {name} is being deleted, cannot be assigned to a host"
    elif spec.get("nodeName"):
        problem = f'pod {name} is already assigned to node "{spec["nodeName"]}"'
    elif spec.get("schedulingGates"):
        problem = f"pod {name} has non-empty .spec.schedulingGates"
    if problem is not None:
        raise status_errors.conflict(name, group="", resource="pods/binding", why=problem)
    annotations = binding["metadata"].get("annotations")
    if annotations:
        metadata = {**metadata, "annotations": {**(metadata.get("annotations") or {}), **annotations}}
    status = pod.get("status") or {}
    conditions = list(status.get("conditions") or ())
    assigned = {**pod, "metadata": metadata, "spec": {**spec, "nodeName": binding["target"]["name"]}}
    assigned["status"] = {**status, "conditions": conditions}
    set_condition(assigned, "PodScheduled", now=now)
    return assigned
