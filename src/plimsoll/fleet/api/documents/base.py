"""The bases of documents, references and lists, and the error document."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from plimsoll.web.responses import JSON, PageResponse

Text = Annotated[str, Field(max_length=255)]
"""Text of a body that goes into a column."""


class Answer(BaseModel):
    """A document that the API answers with. A value that is None is omitted."""

    model_config = ConfigDict(frozen=True, serialize_by_alias=True, validate_by_name=True, validate_by_alias=True)


class Body(BaseModel):
    """A body of users and administrators. Unknown fields are mistakes: a misspelt one would be ignored."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class Report(BaseModel):
    """A body of agents, which may be newer than this service: unknown fields are ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore", strict=True)


class ObjectReference(Answer):
    """Names an object and its address."""

    id: str
    kind: str
    href: str


class ErrorAnswer(ObjectReference):
    """An error."""

    code: str
    reason: str
    operation_id: str | None = None


class ListAnswer(Answer):
    """A page of a list. `size` is the number of its items, `total` that of all."""

    kind: str
    page: int
    size: int
    total: int


class ErrorListAnswer(ListAnswer):
    """All errors that a client may meet."""

    items: list[ErrorAnswer]


def build_document_response(document: Answer, status: int = 200) -> PageResponse:
    body = document.model_dump_json(exclude_none=True, by_alias=True)
    return PageResponse(body.encode(), status, content_type=JSON)
