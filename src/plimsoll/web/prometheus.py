"""Instant queries to Prometheus: the value of a query at one moment, per series.

Failures are values, and anything that is not a finite number in a vector counts as missing: a wrong number would scale
a cluster. An answer with warnings is a failure too: the server, or one behind it, did not see all data. So is an answer
for another moment than the one asked for, as a cache gives it.
"""

from __future__ import annotations

import math
from http import HTTPStatus
from typing import TYPE_CHECKING, Annotated, Final
from urllib.parse import urlencode

import msgspec

from plimsoll.core.values import Value, Wire
from plimsoll.web.client import Request, RequestFailed, Response

if TYPE_CHECKING:
    from datetime import datetime

    from plimsoll.web.client import HttpClient

_PATH: Final = "/api/v1/query"
_EVALUATED_WITHIN_S: Final = 5.0
"""Servers round the time of a query, at most to seconds."""
_WARNINGS_CHARACTERS: Final = 500
_FORM: Final = "application/x-www-form-urlencoded"
# The answers of servers and proxies that support this query by GET only.
_NEEDS_GET: Final = frozenset({HTTPStatus.METHOD_NOT_ALLOWED, HTTPStatus.NOT_IMPLEMENTED})


class Sample(Value):
    """A series and its value, which is finite."""

    labels: dict[str, str]
    value: float


class Vector(Value):
    """The series of an answer, in its order. Series whose value is not a finite number are left out."""

    samples: tuple[Sample, ...]


class QueryFailed(Value):
    """There is no usable answer. `is_unreachable`: the server did not answer in time."""

    problem: str
    is_unreachable: bool = False


class _Series(Wire):
    metric: dict[str, str] = {}
    value: tuple[float, str] | None = None


class _Data(Wire):
    result_type: str = ""
    # Results of other types have other shapes, so only a vector is decoded.
    result: msgspec.Raw = msgspec.Raw(b"[]")


class _Reply(Wire):
    status: str = ""
    data: _Data = _Data()
    error_type: str = ""
    error: str = ""
    warnings: Annotated[tuple[str, ...], msgspec.Meta(max_length=1000)] | None = None


_REPLIES: Final = msgspec.json.Decoder(_Reply)
_SERIES: Final = msgspec.json.Decoder(tuple[_Series, ...])


class Prometheus:
    """A Prometheus server at a base URL."""

    def __init__(self, base: str, *, web: HttpClient) -> None:
        self._address = f"{base}{_PATH}"
        self._web = web

    async def query(self, text: str, *, at: datetime) -> Vector | QueryFailed:
        """The value of a query at a moment."""
        fields = urlencode({"query": text, "time": f"{at.timestamp():.3f}"})
        post = Request(method="POST", url=self._address, body=fields.encode(), content_type=_FORM)
        answer = await self._web.send(post)
        if isinstance(answer, Response) and answer.status in _NEEDS_GET:
            answer = await self._web.send(Request(method="GET", url=f"{self._address}?{fields}"))
        if isinstance(answer, RequestFailed):
            return QueryFailed(problem=answer.problem, is_unreachable=True)
        return _read(answer, text, at_s=at.timestamp())


def _read(answer: Response, query: str, *, at_s: float) -> Vector | QueryFailed:
    try:
        reply = _REPLIES.decode(answer.body)
        if not answer.is_ok or reply.status != "success":
            problem = f"{reply.error_type}: {reply.error}" if reply.error else answer.excerpt
            return QueryFailed(problem=f"Prometheus answers {answer.status} to {query}: {problem[:500]}")
        if reply.data.result_type != "vector":
            return QueryFailed(problem=f"{query} gives a {reply.data.result_type or 'nothing'}, not a vector")
        if reply.warnings:
            warnings = "; ".join(reply.warnings)[:_WARNINGS_CHARACTERS]
            return QueryFailed(problem=f"Prometheus answers {query} incompletely: {warnings}")
        series = _SERIES.decode(reply.data.result)
        if any(sample.value is not None and abs(sample.value[0] - at_s) > _EVALUATED_WITHIN_S for sample in series):
            return QueryFailed(problem=f"Prometheus answers {query} for another time than the one asked for")
        return Vector(samples=tuple(_select_finite(series)))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        return QueryFailed(
            problem=f"Prometheus answers {answer.status} to {query}, unreadable ({error}): {answer.excerpt}"
        )


def _select_finite(series: tuple[_Series, ...]) -> list[Sample]:
    return [
        Sample(labels=sample.metric, value=value)
        for sample in series
        if sample.value is not None and (value := _parse_number(sample.value[1])) is not None
    ]


def _parse_number(written: str) -> float | None:
    """Prometheus writes floats, `NaN` and `+Inf` among them."""
    try:
        number = float(written)
    except ValueError:
        return None
    return number if math.isfinite(number) else None
