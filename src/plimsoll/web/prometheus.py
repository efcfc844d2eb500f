"""Instant queries to Prometheus: what a query is worth at one moment, per series.

The collector of the planner asks; this only reads answers. Failures are values, and everything that is not a finite
number in a vector counts as missing: a wrong number would scale a cluster.
"""

from __future__ import annotations

import math
from http import HTTPStatus
from typing import TYPE_CHECKING, Annotated, Final
from urllib.parse import urlencode

import msgspec
import structlog

from plimsoll.core.values import Value, Wire
from plimsoll.web.client import Request, RequestFailed, Response

if TYPE_CHECKING:
    from datetime import datetime

    from plimsoll.web.client import HttpClient

log: structlog.typing.FilteringBoundLogger = structlog.get_logger(__name__)

_PATH: Final = "/api/v1/query"
_FORM: Final = "application/x-www-form-urlencoded"
# What servers and proxies say to a POST that know this query by GET only.
_WANTS_GET: Final = frozenset({HTTPStatus.METHOD_NOT_ALLOWED, HTTPStatus.NOT_IMPLEMENTED})


class Sample(Value):
    """One series, and its value; always a finite one."""

    labels: dict[str, str]
    value: float


class Vector(Value):
    """An answer, in its order. Series whose value is no finite number are not in it."""

    samples: tuple[Sample, ...]


class QueryFailed(Value):
    """No answer that can be used. `is_unreachable`: nobody answered, or not in time."""

    problem: str
    is_unreachable: bool = False


class _Series(Wire):
    metric: dict[str, str] = {}
    value: tuple[float, str] | None = None


class _Data(Wire):
    result_type: str = ""
    # Of another type than a vector it has another shape, and the type is what is told then.
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
    """One server, by the base of its address."""

    def __init__(self, base: str, *, web: HttpClient) -> None:
        self._address = f"{base}{_PATH}"
        self._web = web

    async def query(self, text: str, *, at: datetime) -> Vector | QueryFailed:
        """The value of a query at a moment."""
        fields = urlencode({"query": text, "time": f"{at.timestamp():.3f}"})
        posted = Request(method="POST", url=self._address, body=fields.encode(), content_type=_FORM)
        answer = await self._web.send(posted)
        if isinstance(answer, Response) and answer.status in _WANTS_GET:
            answer = await self._web.send(Request(method="GET", url=f"{self._address}?{fields}"))
        if isinstance(answer, RequestFailed):
            return QueryFailed(problem=answer.problem, is_unreachable=True)
        return _read(answer, text)


def _read(answer: Response, query: str) -> Vector | QueryFailed:
    try:
        reply = _REPLIES.decode(answer.body)
        if reply.warnings:
            log.warning("prometheus.warned", query=query, warnings=list(reply.warnings))
        if not answer.is_ok or reply.status != "success":
            told = f"{reply.error_type}: {reply.error}" if reply.error else answer.excerpt
            return QueryFailed(problem=f"Prometheus answers {answer.status} to {query}: {told[:500]}")
        if reply.data.result_type != "vector":
            return QueryFailed(problem=f"{query} gives a {reply.data.result_type or 'nothing'}, not a vector")
        return Vector(samples=tuple(_finite(_SERIES.decode(reply.data.result))))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        return QueryFailed(
            problem=f"Prometheus answers {answer.status} to {query}, unreadable ({error}): {answer.excerpt}"
        )


def _finite(series: tuple[_Series, ...]) -> list[Sample]:
    return [
        Sample(labels=sample.metric, value=value)
        for sample in series
        if sample.value is not None and (value := _number(sample.value[1])) is not None
    ]


def _number(written: str) -> float | None:
    """Prometheus writes floats, `NaN` and `+Inf` among them."""
    try:
        number = float(written)
    except ValueError:
        return None
    return number if math.isfinite(number) else None
