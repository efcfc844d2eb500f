"""The pages of the node autoscaler: `/metrics`, `/health-check`, and debugging pages about the last loop iteration.

`/snapshotz`, `/plan` and `/explain` (`?pod=NAMESPACE/NAME`, `?request=NAMESPACE/NAME`) show names and reasons of the
whole cluster, so they are guarded (docs/design/nodes.md 11); so is `/debug/pprof/profile`, which exists only with
`--profiling`.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from plimsoll.operator.debug_access import DebugGuard
from plimsoll.operator.pages import PROFILE, OperatorPages, ProfilePage, read_query
from plimsoll.scheduling.cluster_view import PodKey
from plimsoll.web.responses import build_json_response, build_text_response

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from starlette.requests import Request
    from starlette.responses import Response

    from plimsoll.nodes.reporting.http.debug import DebugViews
    from plimsoll.operator.debug_access import AccessReviewer
    from plimsoll.operator.pages import Exposition
    from plimsoll.operator.profiler import Profiler

Json = dict[str, Any]


def build_pages(
    debug_views: DebugViews,
    *,
    metrics: Sequence[Exposition],
    health: Callable[[], Response],
    reviewer: AccessReviewer | None = None,
    profiler: Profiler | None = None,
) -> OperatorPages:
    """An ASGI application. Without a `reviewer` the debugging pages are for the same machine only."""
    pages = DebugPages(debug_views)
    debug = {"/snapshotz": pages.show_snapshot, "/plan": pages.show_plan, "/explain": pages.explain}
    if profiler is not None:
        debug[PROFILE] = ProfilePage(profiler).show
    return OperatorPages(
        metrics=metrics,
        health={"/health-check": health},
        debug=debug,
        guard=DebugGuard(reviewer),
    )


class DebugPages:
    """The debugging pages about the last loop iteration."""

    def __init__(self, debug_views: DebugViews) -> None:
        self._debug_views = debug_views
        self._explainers: dict[str, Callable[[PodKey], Awaitable[Json | None]]] = {
            "pod": debug_views.show_pod,
            "request": debug_views.show_request,
        }
        """By the parameter that names the object; each returns None for an object that it does not know."""

    async def show_snapshot(self, _request: Request) -> Response:
        found = self._debug_views.show_snapshot()
        if found is None:
            problem = "no snapshot: it needs --debugging-snapshot-enabled, and a loop iteration that saw the cluster"
            return build_text_response(problem, HTTPStatus.NOT_FOUND)
        return build_json_response(found)

    async def show_plan(self, _request: Request) -> Response:
        found = self._debug_views.show_plan()
        if found is None:
            return build_text_response("no loop iteration has ended yet", HTTPStatus.NOT_FOUND)
        return build_json_response(found)

    async def explain(self, request: Request) -> Response:
        queries = [
            (kind, key) for kind, keys in read_query(request).items() if kind in self._explainers for key in keys
        ]
        kind, (namespace, _, name) = (
            (queries[0][0], queries[0][1].partition("/")) if len(queries) == 1 else ("", ("", "", ""))
        )
        if not namespace or not name:
            forms = " or ".join(f"/explain?{parameter}=NAMESPACE/NAME" for parameter in self._explainers)
            return build_text_response(f"name the object: {forms}", HTTPStatus.BAD_REQUEST)
        found = await self._explainers[kind](PodKey(namespace, name))
        if found is None:
            problem = f"the last loop iteration saw no {kind} {namespace}/{name}"
            return build_text_response(problem, HTTPStatus.NOT_FOUND)
        return build_json_response(found)
