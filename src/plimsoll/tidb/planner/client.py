"""Who says how many instances there should be: a planner over HTTP, or our own in this process.

The autoscaler asks through `Planner` and cannot tell the two apart: both answer with bytes, and both are distrusted
alike. Nothing is asked twice; what an answer means, a refusal among them, is `read_answer`'s to say.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

import msgspec

from plimsoll.core.values import Wire
from plimsoll.objects.codec.decode_problems import problem_of
from plimsoll.tidb.model.planner_answer import BAD_ANSWER, NO_METRICS, REFUSED, UNREACHABLE, NoAnswer
from plimsoll.tidb.pd.members import BaseCluster
from plimsoll.tidb.planner.collector import Collecting, Collector
from plimsoll.tidb.planner.service import QUESTION, PlannerService
from plimsoll.tidb.wire.plans import RejectedAnswer, read_plans
from plimsoll.web.client import Request, RequestFailed, Response

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from plimsoll.objects.api.tidb import TidbCluster
    from plimsoll.tidb.model.components import Component
    from plimsoll.tidb.model.scaling_plan import ScalingPlan
    from plimsoll.tidb.pd.access import PdAccess
    from plimsoll.web.client import HttpClient

_LACK_OF_DATA: Final = frozenset({"insufficient_metrics", "no_capacity"})
LARGEST_ANSWER_BYTES: Final = 1024 * 1024
"""Thousands of groups: who sends more means something else."""


class Planner(Protocol):
    """Answers one question about a component of one cluster."""

    async def ask(self, base: TidbCluster, question: bytes) -> Response | RequestFailed: ...


class HttpPlanner:
    """`POST {url}/autoscaling`: ours, PD's of old, or anybody's."""

    def __init__(self, url: str, *, web: HttpClient) -> None:
        self._url = f"{url}{QUESTION}"
        self._web = web

    async def ask(self, base: TidbCluster, question: bytes) -> Response | RequestFailed:  # noqa: ARG002 - one planner, one cluster
        return await self._web.send(
            Request(method="POST", url=self._url, body=question, content_type="application/json")
        )


class AnsweredHere(Response):
    """Nothing lay between: whatever it says, the planner was reached."""


class OwnPlanner:
    """Plans here, from what PD and Prometheus of the cluster say at that moment."""

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

    async def ask(self, base: TidbCluster, question: bytes) -> Response | RequestFailed:
        cluster = BaseCluster(namespace=base.metadata.namespace, name=base.metadata.name)
        collecting = Collecting(base=cluster, prometheus=self._prometheus)
        collector = Collector(collecting, pd=self._pds.of(base), web=self._web)
        warned = self._warned.setdefault(cluster, {})
        service = PlannerService(collector, now=self._now, falls_back=self._falls_back, warned=warned)
        page = await service.answer(question)
        return AnsweredHere(status=page.status_code, body=bytes(page.body))


class _Refused(Wire, rename={}):
    error: str = ""
    detail: str = ""


def read_answer(answer: Response | RequestFailed, component: Component) -> tuple[ScalingPlan, ...] | NoAnswer:
    """Plans, if the whole of the answer can be believed."""
    if isinstance(answer, RequestFailed):
        return NoAnswer(code=UNREACHABLE, problem=answer.problem)
    if not answer.is_ok:
        return _refused(answer)
    if len(answer.body) > LARGEST_ANSWER_BYTES:
        problem = f"the planner's answer is refused: it has more than {LARGEST_ANSWER_BYTES} bytes"
        return NoAnswer(code=BAD_ANSWER, problem=problem)
    plans = read_plans(answer.body, component)
    if isinstance(plans, RejectedAnswer):
        return NoAnswer(code=BAD_ANSWER, problem=f"the planner's answer is refused: {plans.problem}")
    return plans


def _refused(answer: Response) -> NoAnswer:
    """Ours say a code and a detail, PD's of old a JSON text, anything in between whatever it likes."""
    try:
        told = msgspec.json.decode(answer.body, type=_Refused | str)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        problem = f"the planner answers {answer.status}: {answer.excerpt or problem_of(error)}"
        return NoAnswer(code=REFUSED, problem=problem)
    if isinstance(told, str):
        return NoAnswer(code=REFUSED, problem=f"the planner answers {answer.status}: {told[:500]}")
    code = NO_METRICS if told.error in _LACK_OF_DATA else REFUSED
    problem = f"the planner answers {answer.status}: {told.error}: {told.detail}"[:1000]
    # Of a planner elsewhere, whatever is not 200 counts as not reachable: that is the contract.
    return NoAnswer(code=code, problem=problem, is_plain=code == NO_METRICS and isinstance(answer, AnsweredHere))
