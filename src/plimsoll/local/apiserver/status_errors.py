"""The errors of the API server: a `StatusError` is raised anywhere below the application and becomes a Status.

The wording and the details are those of a recorded 1.34 server, where they are less regular than expected: a body
without a reason for what Go calls an unexpected error, `details: {}` for an unknown resource.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from plimsoll.core.errors import PlimsollError
from plimsoll.objects.schema.field_errors import FieldError, build_invalid_status

if TYPE_CHECKING:
    from collections.abc import Sequence

    from plimsoll.web.guards import HostRefusal

Json = dict[str, Any]


class StatusError(PlimsollError):
    """A request that is answered with an error Status."""

    def __init__(self, status: Json, *, headers: Sequence[tuple[str, str]] = ()) -> None:
        super().__init__(status.get("message", ""))
        self.status = status
        self.headers = headers

    @property
    def code(self) -> int:
        return int(self.status["code"])


def failure(
    code: int, reason: str, message: str, *, details: Json | None = None, headers: Sequence[tuple[str, str]] = ()
) -> StatusError:
    """An error Status with its fields in the order in which Go writes them."""
    status: Json = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": message}
    if reason:
        status["reason"] = reason
    if details is not None:
        status["details"] = details
    return StatusError({**status, "code": code}, headers=headers)


def build_details(name: str, *, group: str, kind: str, **more: Any) -> Json:
    """The `details` that name an object; empty parts are left out, as Go does."""
    return {key: value for key, value in {"name": name, "group": group, "kind": kind, **more}.items() if value}


def bad_request(message: str) -> StatusError:
    return failure(400, "BadRequest", message)


def refuse_host(refusal: HostRefusal) -> StatusError:
    """The Status for a request whose Host or Origin is not served."""
    if refusal.status == HTTPStatus.BAD_REQUEST:
        return bad_request(refusal.message)
    return failure(int(refusal.status), "Forbidden", refusal.message)


def unauthorized() -> StatusError:
    return failure(401, "Unauthorized", "Unauthorized")


def forbidden(message: str, *, details: Json) -> StatusError:
    return failure(403, "Forbidden", message, details=details)


def not_found(name: str, *, group: str, resource: str) -> StatusError:
    full = f"{resource}.{group}" if group else resource
    return failure(
        404, "NotFound", f'{full} "{name}" not found', details=build_details(name, group=group, kind=resource)
    )


def unknown_resource() -> StatusError:
    return failure(404, "NotFound", "the server could not find the requested resource", details={})


def method_not_allowed() -> StatusError:
    message = "the server does not allow this method on the requested resource"
    return failure(405, "MethodNotAllowed", message, details={})


def already_exists(name: str, *, group: str, resource: str) -> StatusError:
    full = f"{resource}.{group}" if group else resource
    details = build_details(name, group=group, kind=resource)
    return failure(409, "AlreadyExists", f'{full} "{name}" already exists', details=details)


MODIFIED = "the object has been modified; please apply your changes to the latest version and try again"


def conflict(name: str, *, group: str, resource: str, why: str = MODIFIED) -> StatusError:
    full = f"{resource}.{group}" if group else resource
    message = f'Operation cannot be fulfilled on {full} "{name}": {why}'
    return failure(409, "Conflict", message, details=build_details(name, group=group, kind=resource))


def invalid(name: str, *, group: str, kind: str, errors: Sequence[FieldError]) -> StatusError:
    return StatusError(build_invalid_status(kind=kind, group=group, name=name, errors=errors))


def unexpected(message: str) -> StatusError:
    """What Go reports as an error without a type: code 500 and no reason."""
    return failure(500, "", message)


def internal_error(what: str) -> StatusError:
    details = {"causes": [{"message": what}]}
    return failure(500, "InternalError", f"Internal error occurred: {what}", details=details)
