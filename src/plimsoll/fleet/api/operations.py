"""The table of routes: operations with their ids, callers, bodies and answers; and the paths that are left out."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, Final

from fastapi import Path, Query

from plimsoll.fleet.api.documents.base import ErrorAnswer
from plimsoll.fleet.api.errors import BASE_PATH

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pydantic import BaseModel

RowId = Annotated[str, Path(alias="id")]
PageNumber = Annotated[str, Query(alias="page")]
PageSize = Annotated[str, Query(alias="size")]
OrderBy = Annotated[str, Query(alias="orderBy")]
SearchText = Annotated[str, Query(alias="search")]
IsAsync = Annotated[bool, Query(alias="async")]


class Group(StrEnum):
    """The callers that a route is for. `open`: no token is needed."""

    OPEN = "open"
    PUBLIC = "public"
    AGENT = "agent"
    ADMIN = "admin"


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """A route. `answers`: the model of each status; None: no body. The first one is that of success."""

    method: str
    path: str
    """Below `BASE_PATH`."""
    operation_id: str
    group: Group
    endpoint: Callable[..., Any]
    answers: Mapping[int, type[BaseModel] | None]
    body: type[BaseModel] | None = None
    summary: str = ""

    @property
    def full_path(self) -> str:
        return f"{BASE_PATH}{self.path}"


def answer_errors(*statuses: int) -> dict[int, type[BaseModel] | None]:
    """The answers of an operation with these statuses: an error document each."""
    return dict.fromkeys(statuses, ErrorAnswer)


_OUT_OF_SCOPE: Final = (
    "/kafkas/{id}/promote",
    "/service_accounts",
    "/service_accounts/{id}",
    "/service_accounts/{id}/reset_credentials",
    "/kafkas/{id}/metrics/query_range",
    "/kafkas/{id}/metrics/query",
    "/kafkas/{id}/metrics/federate",
    "/clusters",
    "/clusters/{id}",
    "/clusters/{id}/addon_parameters",
    "/obs-proxy-verification/{id}",
    "/admin/kafkas/{id}/revoke_tls_certificate",
)
"""Paths of the original service that are left out (docs/design/fleet.md 0). They answer 405 to every method."""
_OUT_OF_SCOPE_PATTERN: Final = re.compile(
    "|".join(f"{re.escape(BASE_PATH)}{path.replace('{id}', '[^/]+')}" for path in _OUT_OF_SCOPE)
)


def is_out_of_scope(path: str) -> bool:
    return _OUT_OF_SCOPE_PATTERN.fullmatch(path) is not None
