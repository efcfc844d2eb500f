"""Errors of the API as data: their numbers, HTTP statuses and texts, and the body that carries them."""

from __future__ import annotations

from enum import IntEnum
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from plimsoll.core.errors import PlimsollError
from plimsoll.web.responses import build_json_response

if TYPE_CHECKING:
    from collections.abc import Mapping

    from plimsoll.web.responses import PageResponse

BASE_PATH: Final = "/api/kafkas_mgmt/v1"
_LONGEST_REASON: Final = 2_000


class Code(IntEnum):
    """The numbers of errors that this service gives."""

    FORBIDDEN = 4
    MAX_ALLOWED_INSTANCES = 5
    CONFLICT = 6
    NOT_FOUND = 7
    VALIDATION = 8
    GENERAL = 9
    NOT_IMPLEMENTED = 10
    UNAUTHORIZED = 11
    UNAUTHENTICATED = 15
    MALFORMED_REQUEST = 17
    UNDER_MAINTENANCE = 18
    BAD_REQUEST = 21
    BAD_SEARCH = 23
    CAPACITY_EXHAUSTED = 24
    PROVIDER_NOT_SUPPORTED = 30
    REGION_NOT_SUPPORTED = 31
    BAD_KAFKA_NAME = 32
    MINIMUM_LENGTH = 33
    MAXIMUM_LENGTH = 34
    DUPLICATE_NAME = 36
    FIELD_VALIDATION = 37
    INSTANCE_TYPE = 41
    PLAN = 42
    BILLING_ACCOUNT = 43
    DUPLICATE_CLUSTER_ID = 44
    BAD_CLUSTER_ID = 45
    NEEDS_ASYNC = 103
    INSUFFICIENT_QUOTA = 120
    TOO_MANY_REQUESTS = 429


class ErrorKind(NamedTuple):
    """An entry of the table: HTTP status and general text."""

    status: int
    reason: str


ERRORS: Final[dict[int, ErrorKind]] = {
    4: ErrorKind(403, "Forbidden to perform this action"),
    5: ErrorKind(403, "Forbidden to create more instances than the maximum allowed"),
    6: ErrorKind(409, "An entity with the specified unique values already exists"),
    7: ErrorKind(404, "Resource not found"),
    8: ErrorKind(400, "General validation failure"),
    9: ErrorKind(500, "Unspecified error"),
    10: ErrorKind(405, "HTTP method not implemented for this endpoint"),
    11: ErrorKind(403, "Account is unauthorized to perform this action"),
    12: ErrorKind(403, "Required terms have not been accepted"),
    15: ErrorKind(401, "Account authentication could not be verified"),
    17: ErrorKind(400, "Unable to read request body"),
    18: ErrorKind(403, "Unable to perform this action, as the service is currently under maintenance"),
    21: ErrorKind(400, "Bad request"),
    23: ErrorKind(400, "Failed to parse search query"),
    24: ErrorKind(403, "The maximum number of allowed Kafka instances has been reached"),
    25: ErrorKind(410, "Resource gone"),
    30: ErrorKind(400, "Provider not supported"),
    31: ErrorKind(400, "Region not supported"),
    32: ErrorKind(400, "Kafka cluster name is invalid"),
    33: ErrorKind(400, "Minimum field length not reached"),
    34: ErrorKind(400, "Maximum field length has been depassed"),
    36: ErrorKind(409, "Kafka cluster name is already used"),
    37: ErrorKind(400, "Field validation failed"),
    41: ErrorKind(400, "Instance type not supported"),
    42: ErrorKind(400, "Instance plan not supported"),
    43: ErrorKind(400, "Billing account id missing or invalid"),
    44: ErrorKind(409, "The cluster id is already used"),
    45: ErrorKind(400, "The cluster id is invalid"),
    46: ErrorKind(400, "The external cluster id is invalid"),
    47: ErrorKind(400, "The DNS name is invalid"),
    103: ErrorKind(400, "Synchronous action is not supported, use the async=true parameter"),
    106: ErrorKind(500, "Failed to create the service account"),
    107: ErrorKind(500, "Failed to get the service account"),
    108: ErrorKind(500, "Failed to delete the service account"),
    109: ErrorKind(404, "Failed to find the service account"),
    110: ErrorKind(500, "Failed to create the client of the identity provider"),
    111: ErrorKind(500, "Failed to get the secret of the client of the identity provider"),
    112: ErrorKind(500, "Failed to get the client of the identity provider"),
    113: ErrorKind(500, "Failed to delete the client of the identity provider"),
    115: ErrorKind(403, "The maximum number of service accounts has been reached"),
    120: ErrorKind(403, "Insufficient quota"),
    121: ErrorKind(500, "Failed to check the quota"),
    429: ErrorKind(429, "Too many requests"),
    1000: ErrorKind(500, "An unexpected error happened, please check the log of the service for details"),
}
"""Every number that clients know (docs/design/fleet.md 3.0), whether or not this service gives it."""


class RequestRefused(PlimsollError):
    """A request gets an error as its answer. `status`: instead of the one of the table."""

    def __init__(
        self, code: Code, reason: str = "", *, status: int | None = None, headers: Mapping[str, str] | None = None
    ) -> None:
        self.code = code
        self.reason = (reason or ERRORS[code].reason)[:_LONGEST_REASON]
        self.status = status or ERRORS[code].status
        self.headers = dict(headers or {})
        super().__init__(f"{code}: {self.reason}")


def build_error_document(code: int, reason: str = "", *, operation_id: str = "") -> dict[str, Any]:
    """The body of an error, also an item of `GET /errors`."""
    document = {
        "id": f"{code:d}",
        "kind": "Error",
        "href": f"{BASE_PATH}/errors/{code:d}",
        "code": f"KAFKAS-MGMT-{code:d}",
        "reason": reason or ERRORS[code].reason,
    }
    return {**document, "operation_id": operation_id} if operation_id else document


def build_error_response(refused: RequestRefused, *, operation_id: str) -> PageResponse:
    document = build_error_document(refused.code, refused.reason, operation_id=operation_id)
    headers = dict(refused.headers)
    if refused.status == HTTPStatus.UNAUTHORIZED:
        headers.setdefault("www-authenticate", "Bearer")
    return build_json_response(document, refused.status, headers=headers)
