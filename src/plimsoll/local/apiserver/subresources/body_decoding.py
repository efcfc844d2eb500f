"""The object in the body of a subresource request, decoded as Go does it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from plimsoll.local.apiserver import status_errors
from plimsoll.objects.builtin.decoding import decode, openapi
from plimsoll.objects.schema.json_values import Refused, take_over

if TYPE_CHECKING:
    from plimsoll.local.apiserver.request.context import RequestContext

Json = dict[str, Any]


def decode_body(call: RequestContext, body: Json, *, api_version: str, kind: str) -> Json:
    """`body` as an object of the kind; unknown fields are dropped. Raises the 400 for anything else."""
    version = api_version.rpartition("/")[2]
    refused = f'{kind} in version "{version}" cannot be handled as a {kind}: '
    taken = take_over(body)
    if isinstance(taken, Refused):
        raise status_errors.bad_request(f"{refused}{taken.path}: {taken.problem}")
    component = openapi.find_schema_name(api_version, kind)
    assert component is not None, f"{kind} is not a built-in kind"
    found = decode.decode(taken, component)
    problem = decode.choose_go_error(found.problems)
    if problem is not None:
        raise status_errors.bad_request(f"{refused}{problem}")
    unknown = [f'unknown field "{path}"' for path in found.unknown_fields]
    if unknown and call.field_validation == "Strict":
        raise status_errors.bad_request(f"{refused}strict decoding error: {', '.join(unknown)}")
    if call.field_validation == "Warn":
        call.warnings.extend(unknown)
    return {**found.value, "apiVersion": api_version, "kind": kind, "metadata": found.value.get("metadata") or {}}
