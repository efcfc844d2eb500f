"""The object in the body of a subresource's request, decoded as Go does it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from plimsoll.local.apiserver import refusals
from plimsoll.objects.builtin import decoding, openapi
from plimsoll.objects.schema.json_values import Refused, take_over

if TYPE_CHECKING:
    from plimsoll.local.apiserver.handlers.context import Call

Json = dict[str, Any]


def decoded(call: Call, body: Json, *, api_version: str, kind: str) -> Json:
    """`body` as an object of the kind; fields nobody knows are gone. Raises the 400 for what is none."""
    version = api_version.rpartition("/")[2]
    refused = f'{kind} in version "{version}" cannot be handled as a {kind}: '
    taken = take_over(body)
    if isinstance(taken, Refused):
        raise refusals.bad_request(f"{refused}{taken.path}: {taken.problem}")
    component = openapi.schema_name(api_version, kind)
    assert component is not None, f"{kind} is no built-in kind"
    found = decoding.decode(taken, component)
    problem = decoding.go_error(found.problems)
    if problem is not None:
        raise refusals.bad_request(f"{refused}{problem}")
    unknown = [f'unknown field "{path}"' for path in found.unknown_fields]
    if unknown and call.field_validation == "Strict":
        raise refusals.bad_request(f"{refused}strict decoding error: {', '.join(unknown)}")
    if call.field_validation == "Warn":
        call.warnings.extend(unknown)
    return {**found.value, "apiVersion": api_version, "kind": kind, "metadata": found.value.get("metadata") or {}}
