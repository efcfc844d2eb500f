"""The identity of an object: its name, namespace, uid and resourceVersion against the URL and the stored object."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from plimsoll.local.apiserver import status_errors
from plimsoll.local.apiserver.request.options import parse_revision
from plimsoll.local.apiserver.storage import Key
from plimsoll.objects.schema import field_errors as fields

if TYPE_CHECKING:
    from plimsoll.local.apiserver.request.context import RequestContext

Json = dict[str, Any]


def build_key(call: RequestContext) -> Key:
    return Key(call.resource.stored_as, call.namespace if call.resource.namespaced else "", call.name)


def set_namespace(obj: Json, call: RequestContext) -> None:
    """Set the namespace of the URL where the object has none; cluster-scoped objects lose theirs."""
    metadata = obj["metadata"]
    given = metadata.get("namespace") or ""
    if not call.resource.namespaced:
        metadata.pop("namespace", None)
    elif not given:
        metadata["namespace"] = call.namespace
    elif given != call.namespace:
        raise status_errors.bad_request(
            "the namespace of the provided object does not match the namespace sent on the request"
        )


def check_identity(obj: Json, call: RequestContext) -> None:
    name = obj["metadata"].get("name") or ""
    if not name:
        text = f"the name of the object ({call.name} based on URL) was undeterminable: name must be provided"
        raise status_errors.bad_request(text)
    if name != call.name:
        raise status_errors.bad_request(
            f"the name of the object ({name}) does not match the name on the URL ({call.name})"
        )


def check_revision(new: Json, old: Json, call: RequestContext, *, allows_unconditional: bool) -> None:
    """Optimistic locking: a resourceVersion that is given must be the current one."""
    resource = call.resource
    given = new["metadata"].get("resourceVersion") or "0"
    number = parse_revision(given)
    if isinstance(number, str):
        raise status_errors.unexpected(number)
    if number == 0:
        if allows_unconditional:
            return
        error = fields.invalid("metadata.resourceVersion", 0, "must be specified for an update")
        raise status_errors.invalid(call.name, group=resource.group, kind=resource.plural, errors=[error])
    if given != old["metadata"]["resourceVersion"]:
        raise status_errors.conflict(call.name, group=resource.group, resource=resource.plural)


def check_uid(new: Json, old: Json, call: RequestContext) -> None:
    """A PUT that names a uid means that object and no successor of it."""
    resource = call.resource
    given, is_ = new["metadata"].get("uid") or "", old["metadata"].get("uid") or ""
    if not given or given == is_:
        return
    where = "/".join(part for part in (resource.group, resource.plural, call.namespace, call.name) if part)
    why = (
        f"StorageError: invalid object, Code: 4, Key: /registry/{where}, ResourceVersion: 0, AdditionalErrorMsg: "
        f"Precondition failed: UID in precondition: {given}, UID in object meta: {is_}"
    )
    raise status_errors.conflict(call.name, group=resource.group, resource=resource.plural, why=why)
