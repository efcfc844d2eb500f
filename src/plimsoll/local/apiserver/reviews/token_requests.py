"""The token subresource of a ServiceAccount: TokenRequest."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from plimsoll.core.durations import add_seconds
from plimsoll.local.apiserver import status_errors
from plimsoll.local.apiserver.authentication.bearer import API_AUDIENCES
from plimsoll.local.apiserver.authentication.tokens import BoundObject
from plimsoll.local.apiserver.reviews.bodies import decode_review, set_managed_fields
from plimsoll.local.apiserver.storage import Key
from plimsoll.objects.api.meta import format_time
from plimsoll.objects.schema import field_errors as fe

if TYPE_CHECKING:
    from plimsoll.local.apiserver.request.context import RequestContext
    from plimsoll.local.apiserver.server import Server
    from plimsoll.objects.schema.field_errors import FieldError

Json = dict[str, Any]

GROUP: Final = "authentication.k8s.io"
DEFAULT_EXPIRATION_S: Final = 3600
SHORTEST_EXPIRATION_S: Final = 600
LONGEST_EXPIRATION_S: Final = 1 << 32

_BINDABLE: Final = {"Pod": "pods", "Secret": "secrets", "Node": "nodes"}


def create_token(server: Server, call: RequestContext, body: Json) -> Json:
    """A token for the ServiceAccount of the call, by a TokenRequest."""
    review = decode_review(body, api_version=f"{GROUP}/v1", kind="TokenRequest")
    metadata = review.get("metadata") or {}
    for field, expected, what in (("name", call.name, "name"), ("namespace", call.namespace, "namespace")):
        if metadata.get(field) and metadata[field] != expected:
            detail = f"must match the service account {what} if specified"
            raise _invalid_request([fe.invalid(f"metadata.{field}", metadata[field], detail)], name=call.name)
    account = server.store.get(Key("serviceaccounts", call.namespace, call.name))
    if account is None:
        raise status_errors.not_found(call.name, group="", resource="serviceaccounts")
    now = server.clock.now()
    spec = {"expirationSeconds": DEFAULT_EXPIRATION_S, **(review.get("spec") or {})}
    known = set_managed_fields({**review, "spec": spec}, call, now=now, subresource="token")
    lifetime_s = _read_lifetime_s(spec)
    audiences = list(spec.get("audiences") or API_AUDIENCES)
    token = server.tokens.issue(
        namespace=call.namespace,
        name=call.name,
        uid=account.decode_body()["metadata"].get("uid", ""),
        audiences=audiences,
        expires_in_s=lifetime_s,
        now=now,
        bound_to=_find_bound_object(server, call, spec.get("boundObjectRef")),
    )
    identity = {"name": call.name, "namespace": call.namespace, "uid": server.entropy.generate_uid()}
    return {
        "kind": "TokenRequest",
        "apiVersion": f"{GROUP}/v1",
        "metadata": {**identity, "creationTimestamp": format_time(now), **known["metadata"], **identity},
        "spec": {
            "audiences": audiences,
            "expirationSeconds": lifetime_s,
            "boundObjectRef": spec.get("boundObjectRef"),
        },
        "status": {"token": token, "expirationTimestamp": format_time(add_seconds(now, lifetime_s))},
    }


def _read_lifetime_s(spec: Json) -> int:
    seconds: int = spec["expirationSeconds"]
    path = "spec.expirationSeconds"
    if seconds < SHORTEST_EXPIRATION_S:
        raise _invalid_request([fe.invalid(path, seconds, "may not specify a duration less than 10 minutes")])
    if seconds > LONGEST_EXPIRATION_S:
        raise _invalid_request([fe.invalid(path, seconds, "may not specify a duration larger than 2^32 seconds")])
    return seconds


def _find_bound_object(server: Server, call: RequestContext, ref: Json | None) -> tuple[BoundObject, ...]:
    """The object that the token is to die with; it must be there, and a pod must run as the account."""
    if ref is None:
        return ()
    api_version, kind, name = ref.get("apiVersion", ""), ref.get("kind", ""), ref.get("name", "")
    group, _, version = api_version.rpartition("/")
    if group or kind not in _BINDABLE:
        raise status_errors.bad_request(f"cannot bind token to object of type {group}/{version}, Kind={kind}")
    found = server.store.get(Key(_BINDABLE[kind], "" if kind == "Node" else call.namespace, name))
    if found is None:
        raise status_errors.not_found(name, group="", resource=_BINDABLE[kind])
    body = found.decode_body()
    runs_as = (body.get("spec") or {}).get("serviceAccountName", "")
    if kind == "Pod" and runs_as != call.name:
        text = f'cannot bind token for serviceaccount "{call.name}" to pod running with serviceaccount "{runs_as}"'
        raise status_errors.bad_request(text)
    uid = body["metadata"].get("uid", "")
    if ref.get("uid") and ref["uid"] != uid:
        why = (
            f"the UID in the bound object reference ({ref['uid']}) does not match the UID in record. "
            "The object might have been deleted and then recreated"
        )
        raise status_errors.conflict(name, group="", resource=_BINDABLE[kind], why=why)
    return (BoundObject(kind=kind, name=name, uid=uid),)


def _invalid_request(errors: list[FieldError], *, name: str = "") -> status_errors.StatusError:
    return status_errors.invalid(name, group=GROUP, kind="TokenRequest", errors=errors)
