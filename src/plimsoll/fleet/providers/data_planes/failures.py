"""Calls to Kubernetes APIs as the port of providers wants them: a result, or `CallFailed` with what was called."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

from plimsoll.core.errors import InvalidInput
from plimsoll.fleet.model.provided import CallFailed, FailureKind, build_failure
from plimsoll.kube.errors import (
    ApiCallFailed,
    BadRequest,
    CredentialsFailed,
    Forbidden,
    Invalid,
    MethodNotAllowed,
    ServerUnreachable,
    TooLarge,
    Unauthorized,
    Unsupported,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Iterator

T = TypeVar("T")

_REFUSALS = (BadRequest, Unauthorized, Forbidden, MethodNotAllowed, TooLarge, Unsupported, Invalid, CredentialsFailed)


class DataPlaneUnreachable(ApiCallFailed):
    """The API server of one cluster does not answer, which says nothing about the other clusters of its provider."""


@contextmanager
def limit_failures_to_cluster() -> Iterator[None]:
    """Around calls to the API server of one cluster."""
    try:
        yield
    except ServerUnreachable as error:
        raise DataPlaneUnreachable(str(error)) from error


async def attempt(calls: Awaitable[T], *, about: str) -> T | CallFailed:
    """The result of calls to one API server. `about` begins the text of a failure: `cluster mk-1`."""
    try:
        return await calls
    except (ApiCallFailed, InvalidInput) as error:
        return build_failure(classify_failure(error), f"{about}: {error}")


def classify_failure(error: ApiCallFailed | InvalidInput) -> FailureKind:
    if isinstance(error, ServerUnreachable):
        return FailureKind.UNREACHABLE
    if isinstance(error, _REFUSALS):
        return FailureKind.REFUSED
    return FailureKind.RETRY if isinstance(error, ApiCallFailed) else FailureKind.REFUSED
