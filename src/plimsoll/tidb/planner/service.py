"""The planning service: `POST /autoscaling`, as in old versions of PD, and `/healthz` for probes, as ASGI.

`plimsoll tidb planner` and `plimsoll up` serve it, for our controller and any other client. Every request is answered
from the current data of PD and Prometheus. A response is either complete, with `X-Plan-Complete: true`, or an error:
missing data never gives an empty plan, because an empty plan removes every group. The only state is the last warning
about each component.
"""

from __future__ import annotations

import asyncio
import json
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

import msgspec
import structlog
from starlette.requests import Request

from plimsoll.core.errors import InvalidInput
from plimsoll.tidb.model.planner_answer import PlannerAnswer
from plimsoll.tidb.planner.collector import CannotCollect
from plimsoll.tidb.planning.planner.planner import plan
from plimsoll.tidb.planning.planner.result import CannotPlan, PlannerReason, Refusal
from plimsoll.tidb.wire.plans import write_plans
from plimsoll.tidb.wire.strategy import read_strategies
from plimsoll.web.bodies import BODY_TIMEOUT_S, MAX_BODY_BYTES, BodyRefused, read_body
from plimsoll.web.responses import JSON, PageResponse, build_json_response

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime

    from starlette.types import Receive, Scope, Send

    from plimsoll.tidb.model.components import Component
    from plimsoll.tidb.model.scaling_plan import ScalingPlan
    from plimsoll.tidb.model.strategy import Strategy
    from plimsoll.tidb.planner.collector import CollectedSnapshot, Collector

log: structlog.typing.FilteringBoundLogger = structlog.get_logger(__name__)

PLANNING_PATH: Final = "/autoscaling"
GAPS_HEADER: Final = "x-plan-gaps"
"""A header with a JSON list of missing data. Nothing is scaled in because of missing data."""
HEALTH_PATH: Final = "/healthz"
MAX_REQUEST_BYTES: Final = MAX_BODY_BYTES
_LISTED_GAPS: Final = 10
_METHODS: Final = {PLANNING_PATH: ("POST",), HEALTH_PATH: ("GET", "HEAD")}
# Refusals that are due to the request; all others are due to missing data.
_FAULTS_OF_THE_QUESTION: Final = frozenset({Refusal.NO_HOMOGENEOUS_SIZE})


class PlannerService:
    """An ASGI application. `now` returns the time to plan for; `falls_back` as in `Strategy`.

    `warned` has the last warning about each component; callers that build a service per request pass it.
    """

    def __init__(
        self,
        collector: Collector,
        *,
        now: Callable[[], datetime],
        falls_back: bool = False,
        warned: dict[Component, str] | None = None,
    ) -> None:
        self._collector = collector
        self._now = now
        self._falls_back = falls_back
        self._warned = {} if warned is None else warned

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        response = await self._respond(Request(scope, receive))
        await response(scope, receive, send)

    async def _respond(self, request: Request) -> PageResponse:
        path = request.scope["path"]
        allowed = _METHODS.get(path)
        if allowed is None:
            return _build_error(HTTPStatus.NOT_FOUND, "not_found", f"the paths are {PLANNING_PATH} and {HEALTH_PATH}")
        if request.method not in allowed:
            status, headers = HTTPStatus.METHOD_NOT_ALLOWED, {"allow": ", ".join(allowed)}
            return _build_error(
                status, "method_not_allowed", f"the methods are {' and '.join(allowed)}", headers=headers
            )
        if path == HEALTH_PATH:
            return build_json_response({"status": "ok"})
        body = await read_body(request, max_bytes=MAX_REQUEST_BYTES)
        return _refuse_body(body) if isinstance(body, BodyRefused) else await self.answer_request(body)

    async def answer_request(self, question: bytes) -> PageResponse:
        """The response to the body of one request, valid or not."""
        try:
            strategies = read_strategies(question)
        except InvalidInput as error:
            return _build_error(HTTPStatus.BAD_REQUEST, "bad_strategy", str(error))
        at = self._now()
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(self._build_plans(strategy, at)) for strategy in strategies]
        plans: list[ScalingPlan] = []
        gaps: list[str] = []
        for task in tasks:
            answer = task.result()
            if isinstance(answer, PageResponse):
                return answer
            plans += answer.plans
            gaps += answer.gaps
        headers = {"x-plan-complete": "true"}
        if gaps:
            headers[GAPS_HEADER] = json.dumps(gaps)
        return PageResponse(write_plans(tuple(plans)), content_type=JSON, headers=headers)

    async def _build_plans(self, strategy: Strategy, at: datetime) -> PlannerAnswer | PageResponse:
        collected = await self._collector.collect(strategy.component, at=at, wants_cpu=strategy.cpu is not None)
        if isinstance(collected, CannotCollect):
            self._warn("planner.blind", strategy.component, code=collected.code, detail=collected.detail)
            return _build_error(HTTPStatus.INTERNAL_SERVER_ERROR, collected.code, collected.detail)
        strategy = msgspec.structs.replace(strategy, falls_back=self._falls_back)
        answer = plan(strategy, collected.snapshot)
        if isinstance(answer, CannotPlan):
            detail = "; ".join([answer.detail, *_list_gaps(collected)])
            self._warn("planner.refused", strategy.component, code=answer.code, detail=detail)
            at_fault = answer.code in _FAULTS_OF_THE_QUESTION
            status = HTTPStatus.BAD_REQUEST if at_fault else HTTPStatus.INTERNAL_SERVER_ERROR
            return _build_error(status, answer.code, detail)
        self._warn("planner.gaps" if _list_gaps(collected) else "", strategy.component, gaps=_list_gaps(collected))
        log.info(
            "planner.answered",
            component=strategy.component,
            plans={scaling_plan.group: scaling_plan.count for scaling_plan in answer.plans},
            reasons=[{"code": reason.code, "message": reason.message, **reason.facts} for reason in answer.reasons],
        )
        unlisted = [
            f"{reason.message}: {reason.facts['types']}"
            for reason in answer.reasons
            if reason.code == PlannerReason.INSTANCES_UNLISTED
        ]
        return PlannerAnswer(plans=answer.plans, gaps=(*unlisted, *_list_gaps(collected, with_expected=False)))

    def _warn(self, event: str, component: Component, **more: Any) -> None:
        """Log a warning once while it stays the same: requests come every few seconds. No event: no problem."""
        warning = f"{event} {more}" if event else ""
        if warning and warning != self._warned.get(component):
            log.warning(event, component=component, **more)
        self._warned[component] = warning


def _list_gaps(collected: CollectedSnapshot, *, with_expected: bool = True) -> list[str]:
    """The missing data, with a limited number of instances."""
    found = [gap for gap in collected.gaps if with_expected or not gap.is_expected]
    gaps = [f"{gap.instance}: {gap.problem}" for gap in found[:_LISTED_GAPS]]
    more = len(found) - _LISTED_GAPS
    return [*collected.problems, *gaps, *([f"and {more} more instances"] if more > 0 else [])]


def _refuse_body(refused: BodyRefused) -> PageResponse:
    match refused:
        case BodyRefused.TOO_LARGE:
            code, detail = "too_large", f"a request may have at most {MAX_REQUEST_BYTES} bytes"
        case BodyRefused.TOO_SLOW:
            code, detail = "too_slow", f"the request took more than {BODY_TIMEOUT_S:g} s"
        case BodyRefused.DISCONNECTED:
            code, detail = "bad_request", "the request ended early"
    return _build_error(refused.status, code, detail)


def _build_error(
    status: HTTPStatus, code: str, detail: str, *, headers: Mapping[str, str] | None = None
) -> PageResponse:
    return build_json_response({"error": code, "detail": detail}, status, headers=headers)
