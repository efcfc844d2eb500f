"""The bodies of reviews: read as Go reads them, and the common parts of the responses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from plimsoll.local.apiserver import status_errors
from plimsoll.local.apiserver.apply.field_manager import FieldManager
from plimsoll.local.apiserver.apply.typed.schemas import TypeSchema
from plimsoll.objects import builtin

if TYPE_CHECKING:
    from datetime import datetime

    from plimsoll.local.apiserver.request.context import RequestContext

Json = dict[str, Any]

_OTHER_NAMESPACE: Final = "the namespace of the provided object does not match the namespace sent on the request"


def decode_review(body: Json, *, api_version: str, kind: str) -> Json:
    """The body as Go would hold it: of the kind that was posted to, without nulls and unknown fields."""
    whole = {**body, "apiVersion": api_version, "kind": kind}
    problem = builtin.check_create(whole).decode_error
    if problem is not None:
        version = api_version.rpartition("/")[2]
        raise status_errors.bad_request(f'{kind} in version "{version}" cannot be handled as a {kind}: {problem}')
    held = builtin.default(whole)
    held.pop("status", None)
    return held


def set_namespace(review: Json, namespace: str) -> Json:
    """The object in the namespace of the request, which it may name or leave out."""
    metadata = dict(review.get("metadata") or {})
    given = metadata.pop("namespace", "")
    if given and namespace and given != namespace:
        raise status_errors.bad_request(_OTHER_NAMESPACE)
    return {**review, "metadata": {**metadata, **({"namespace": namespace} if namespace else {})}}


def set_managed_fields(review: Json, call: RequestContext, *, now: datetime, subresource: str = "") -> Json:
    """With the managedFields of a create, as the answers to most reviews show them."""
    api_version, kind = review["apiVersion"], review["kind"]
    schema = TypeSchema.from_builtin(api_version, kind)
    assert schema is not None, f"{kind} has no schema"
    managed = FieldManager({api_version: schema}, api_version=api_version, kind=kind, subresource=subresource)
    return managed.update(None, review, manager=call.field_manager, now=now)


def build_response_head(known: Json, call: RequestContext) -> Json:
    """Kind, version and metadata of an answer."""
    return {
        "kind": call.resource.kind,
        "apiVersion": call.resource.api_version,
        "metadata": known.get("metadata") or {},
    }
