"""The autoscaler's few pages, as ASGI: `/metrics` and `/health-check` for everybody, the rest for who may see it.

`/snapshotz`, `/plan` and `/explain` (`?pod=NAMESPACE/NAME`, `?request=NAMESPACE/NAME`) show names and reasons of the
whole cluster, so they are for the same machine, or for whoever the API server lets (specs/nodes.md 11); so is
`/debug/pprof/profile`, which is there only where the operator wants it (`--profiling`). Raw ASGI: there are few pages
and no bodies.
Whoever wires the program serves it with uvicorn.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qs

import msgspec
import structlog

from plimsoll.kube.errors import ApiCallFailed
from plimsoll.operator.debug_access import Access, is_local
from plimsoll.scheduling.cluster_view import PodKey

if TYPE_CHECKING:
    from plimsoll.core.clock import Clock
    from plimsoll.nodes.reporting.http.debug import Insights
    from plimsoll.nodes.reporting.metrics.metrics import Metrics
    from plimsoll.operator.debug_access import Reviewer
    from plimsoll.operator.health import Health
    from plimsoll.operator.profiler import Profiler

    Scope = dict[str, Any]
    Receive = Callable[[], Awaitable[Any]]
    Send = Callable[[Any], Awaitable[None]]

Json = dict[str, Any]

log = structlog.get_logger(__name__)

_TEXT: Final = "text/plain; charset=utf-8"
_EXPOSITION: Final = "text/plain; version=0.0.4; charset=utf-8"
_JSON: Final = "application/json"
PROFILE: Final = "/debug/pprof/profile"
"""Where Cluster Autoscaler has its own; `seconds` as there."""
_USUAL_PROFILE_S: Final = 30.0
_LONGEST_PROFILE_S: Final = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """An answer."""

    status: int = 200
    type: str = _TEXT
    body: bytes = b""

    @classmethod
    def text(cls, text: str, status: int = 200) -> Page:
        return cls(status=status, body=f"{text}\n".encode(errors="replace"))

    @classmethod
    def json(cls, value: object) -> Page:
        return cls(type=_JSON, body=msgspec.json.encode(value))


Answer = Callable[[dict[str, Any]], Awaitable[Page]]


class TellingPages:
    """An ASGI application. Without a `reviewer` the guarded pages are for the same machine alone."""

    def __init__(
        self,
        *,
        metrics: Metrics,
        health: Health,
        insights: Insights,
        clock: Clock,
        reviewer: Reviewer | None = None,
        profiler: Profiler | None = None,
    ) -> None:
        self._metrics = metrics
        self._health = health
        self._insights = insights
        self._clock = clock
        self._reviewer = reviewer
        self._profiler = profiler
        self._is_profiling = False
        self._guarded: dict[str, Answer] = {
            "/snapshotz": self._snapshot,
            "/plan": self._plan,
            "/explain": self._explain,
            **({} if profiler is None else {PROFILE: self._profile}),
        }
        self._explained: dict[str, Callable[[PodKey], Awaitable[Json | None]]] = {
            "pod": insights.pod,
            "request": insights.request,
        }
        """By what is asked about; its NAMESPACE/NAME goes to a function that gives None of what it does not know."""

    async def __call__(self, scope: Scope, _receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        page = await self._page(scope)
        headers = [
            (b"content-type", page.type.encode()),
            (b"content-length", str(len(page.body)).encode()),
            (b"cache-control", b"no-store"),
            (b"x-content-type-options", b"nosniff"),
        ]
        if page.status == Access.UNAUTHENTICATED.value:
            headers.append((b"www-authenticate", b"Bearer"))
        await send({"type": "http.response.start", "status": page.status, "headers": headers})
        await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else page.body})

    async def _page(self, scope: Scope) -> Page:
        path = scope["path"]
        if scope["method"] not in {"GET", "HEAD"}:
            return Page.text("only GET", 405)
        if path == "/metrics":
            return Page(type=_EXPOSITION, body=self._metrics.exposition())
        if path == "/health-check":
            return self._health_check()
        guarded = self._guarded.get(path)
        if guarded is None:
            return Page.text("no such page", 404)
        refusal = await self._refusal(scope)
        return await guarded(scope) if refusal is None else refusal

    async def _refusal(self, scope: Scope) -> Page | None:
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
        peer = (scope.get("client") or ("",))[0]
        if is_local(peer, headers):
            return None
        if self._reviewer is None:
            return Page.text("this page is for the same machine only", Access.FORBIDDEN.value)
        try:
            access = await self._reviewer.access(headers.get("authorization", ""), scope["path"])
        except ApiCallFailed as error:
            log.warning("page.access_unknown", path=scope["path"], problem=str(error))
            return Page.text("the API server cannot be asked whether you may see this", 503)
        if access is Access.GRANTED:
            return None
        told = "a bearer token is needed" if access is Access.UNAUTHENTICATED else "you may not see this page"
        return Page.text(told, access.value)

    # ---- pages

    def _health_check(self) -> Page:
        problem = self._health.problem(self._clock.monotonic_s())
        return Page.text(f"Error: {problem}", 500) if problem else Page.text("OK")

    async def _snapshot(self, _scope: Scope) -> Page:
        found = self._insights.snapshot()
        if found is None:
            return Page.text("no snapshot: it needs --debugging-snapshot-enabled, and a turn that saw the cluster", 404)
        return Page.json(found)

    async def _plan(self, _scope: Scope) -> Page:
        found = self._insights.plan()
        return Page.text("no turn has ended yet", 404) if found is None else Page.json(found)

    async def _explain(self, scope: Scope) -> Page:
        asked = [(kind, one) for kind, listed in _query(scope).items() if kind in self._explained for one in listed]
        kind, (namespace, _, name) = (
            (asked[0][0], asked[0][1].partition("/")) if len(asked) == 1 else ("", ("", "", ""))
        )
        if not namespace or not name:
            forms = " or ".join(f"/explain?{one}=NAMESPACE/NAME" for one in self._explained)
            return Page.text(f"say of what: {forms}", 400)
        found = await self._explained[kind](PodKey(namespace, name))
        if found is None:
            return Page.text(f"the last turn saw no {kind} {namespace}/{name}", 404)
        return Page.json(found)

    async def _profile(self, scope: Scope) -> Page:
        """One at a time: two would see each other."""
        assert self._profiler is not None
        seconds = _seconds(_query(scope).get("seconds", []))
        if seconds is None:
            return Page.text(f"say for how long: {PROFILE}?seconds=30, at most {_LONGEST_PROFILE_S}", 400)
        if self._is_profiling:
            return Page.text("a profile is being taken already", 409)
        self._is_profiling = True
        try:
            return Page(body=(await self._profiler.profile(seconds)).encode(errors="replace"))
        finally:
            self._is_profiling = False


def _query(scope: Scope) -> dict[str, list[str]]:
    return parse_qs(scope["query_string"].decode("latin-1"))


def _seconds(written: list[str]) -> float | None:
    """How long a profile is to take; None: what is written is no such time."""
    if not written:
        return _USUAL_PROFILE_S
    whole = written[0]
    is_time = len(written) == 1 and whole.isascii() and whole.isdecimal() and len(whole) <= len(str(_LONGEST_PROFILE_S))
    return float(whole) if is_time and 0 < int(whole) <= _LONGEST_PROFILE_S else None
