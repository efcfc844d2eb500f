"""The result of a patch: `Patched` with the new value, or `PatchRefused` with the error response."""

from __future__ import annotations

from typing import Any, Final

from plimsoll.core.values import Value

# What a real server says instead of the reason when a JSON patch does not apply.
_REJECTED: Final = "the server rejected our request due to an error in our request"


class Patched(Value):
    """The new value. `strict_problems` are for `fieldValidation`: warnings, or errors when it is Strict."""

    value: Any
    strict_problems: tuple[str, ...] = ()


class PatchRefused(Value):
    """The error response. An empty `reason` stays out of the Status; `detail` has more than kube-apiserver's."""

    code: int
    reason: str
    message: str
    detail: str = ""


def bad_request(message: str) -> PatchRefused:
    return PatchRefused(code=400, reason="BadRequest", message=message)


def not_applicable(detail: str) -> PatchRefused:
    """A well-formed patch that cannot be carried out on this object: 422, and the real server keeps the reason back."""
    return PatchRefused(code=422, reason="Invalid", message=_REJECTED, detail=detail)


def too_large(message: str) -> PatchRefused:
    return PatchRefused(code=413, reason="RequestEntityTooLarge", message=f"Request entity too large: {message}")


def internal_error(message: str) -> PatchRefused:
    """An error the real server did not think of as the client's."""
    return PatchRefused(code=500, reason="", message=message)
