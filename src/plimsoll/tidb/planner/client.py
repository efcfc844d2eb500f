"""Clients of planners: over HTTP, or in this process.

Both answer with bytes, and `read_answer` validates both in the same way. Nothing is retried.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

import msgspec

from plimsoll.core.values import Wire
from plimsoll.objects.codec.decode_problems import describe_problem
from plimsoll.tidb.model.planner_answer import BAD_ANSWER, NO_METRICS, REFUSED, UNREACHABLE, NoAnswer, PlannerAnswer
from plimsoll.tidb.pd.members import BaseCluster
from plimsoll.tidb.planner.collector import Collector, CollectorSettings
from plimsoll.tidb.planner.service import GAPS_HEADER, PLANNING_PATH, PlannerService
from plimsoll.tidb.wire.plans import RejectedPlans, read_plans
from plimsoll.web.client import Request, RequestFailed, Response

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from plimsoll.objects.api.tidb import TidbCluster
    from plimsoll.tidb.model.components import Component
    from plimsoll.tidb.pd.access import PdAccess
    from plimsoll.web.client import HttpClient

_LACK_OF_DATA: Final = frozenset({"insufficient_metrics", "no_capacity"})
LARGEST_ANSWER_BYTES: Final = 1024 * 1024
"""Enough for thousands of groups. A larger answer is not a plan."""


class Planner(Protocol):
    """Answers a request about one component of one cluster."""

    async def request_plans(self, base: TidbCluster, question: bytes) -> Response | RequestFailed: ...


class HttpPlanner:
    """`POST {url}/autoscaling` of any planner, ours or an old PD's."""

    def __init__(self, url: str, *, web: HttpClient) -> None:
        self._url = f"{url}{PLANNING_PATH}"
        self._web = web

    async def request_plans(self, base: TidbCluster, question: bytes) -> Response | RequestFailed:  # noqa: ARG002 - one planner, one cluster
        return await self._web.send(
            Request(method="POST", url=self._url, body=question, content_type="application/json")
        )


class InProcessResponse(Response):
    """A response that needed no network: the planner was reached in any case."""


class InProcessPlanner:
    """Plans in this process, from the present state of the cluster's PD and Prometheus."""

    def __init__(
        self,
        pds: PdAccess,
        *,
        web: HttpClient,
        now: Callable[[], datetime],
        prometheus: str = "",
        falls_back: bool = False,
    ) -> None:
        self._pds = pds
        self._falls_back = falls_back
        self._web = web
        self._now = now
        self._prometheus = prometheus
        self._warned: dict[BaseCluster, dict[Component, str]] = {}

    async def request_plans(self, base: TidbCluster, question: bytes) -> Response | RequestFailed:
        cluster = BaseCluster(namespace=base.metadata.namespace, name=base.metadata.name)
        collecting = CollectorSettings(base=cluster, prometheus=self._prometheus)
        collector = Collector(collecting, pd=self._pds.build_client(base), web=self._web)
        warned = self._warned.setdefault(cluster, {})
        service = PlannerService(collector, now=self._now, falls_back=self._falls_back, warned=warned)
        page = await service.answer_request(question)
        return InProcessResponse(status=page.status_code, body=bytes(page.body), headers=dict(page.headers))


class _Refused(Wire, rename={}):
    error: str = ""
    detail: str = ""


def read_answer(answer: Response | RequestFailed, component: Component) -> PlannerAnswer | NoAnswer:
    """The plans, if the whole answer is valid."""
    if isinstance(answer, RequestFailed):
        return NoAnswer(code=UNREACHABLE, problem=answer.problem)
    if not answer.is_ok:
        return _read_refusal(answer)
    if len(answer.body) > LARGEST_ANSWER_BYTES:
        problem = f"the planner's answer is rejected: it has more than {LARGEST_ANSWER_BYTES} bytes"
        return NoAnswer(code=BAD_ANSWER, problem=problem)
    plans = read_plans(answer.body, component)
    if isinstance(plans, RejectedPlans):
        return NoAnswer(code=BAD_ANSWER, problem=f"the planner's answer is rejected: {plans.problem}")
    return PlannerAnswer(plans=plans, gaps=_read_gaps(answer))


def _read_gaps(answer: Response) -> tuple[str, ...]:
    """What our planner did not know. Other planners do not say."""
    try:
        return msgspec.json.decode(answer.headers.get(GAPS_HEADER, "[]"), type=tuple[str, ...])
    except msgspec.DecodeError:
        return ()


def _read_refusal(answer: Response) -> NoAnswer:
    """The reason of a refusal. Our planner sends a code and a detail, old PDs a JSON string, proxies anything."""
    try:
        refusal = msgspec.json.decode(answer.body, type=_Refused | str)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        problem = f"the planner answers {answer.status}: {answer.excerpt or describe_problem(error)}"
        return NoAnswer(code=REFUSED, problem=problem)
    if isinstance(refusal, str):
        return NoAnswer(code=REFUSED, problem=f"the planner answers {answer.status}: {refusal[:500]}")
    code = NO_METRICS if refusal.error in _LACK_OF_DATA else REFUSED
    problem = f"the planner answers {answer.status}: {refusal.error}: {refusal.detail}"[:1000]
    # By contract, any status but 200 of a remote planner counts as not reachable.
    return NoAnswer(
        code=code, problem=problem, is_from_planner=code == NO_METRICS and isinstance(answer, InProcessResponse)
    )
