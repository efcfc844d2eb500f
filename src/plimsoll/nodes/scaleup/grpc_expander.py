"""The external expander (`--expander=grpc`): planning with its answers.

Planning is pure and cannot wait for a call. So when a plan reaches the expander, it ends with `Unanswered`; the
question is sent from here, and planning runs again with the answer, which leads it to the same point and past it. An
expander that fails, or names no group of the question, changes nothing.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import chain, repeat
from typing import TYPE_CHECKING, Any, Final

import structlog

from plimsoll.core.formatting import format_limit
from plimsoll.nodes.planning.scaleup.expanders import Unanswered, build_request_key
from plimsoll.nodes.providers.externalgrpc.codes import RpcFailed
from plimsoll.nodes.providers.externalgrpc.generated import expander_pb2 as wire
from plimsoll.nodes.providers.externalgrpc.methods import BEST_OPTIONS
from plimsoll.nodes.providers.externalgrpc.object_bytes import encode_node, encode_pod

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Sequence

    from plimsoll.nodes.config.policy import Policy
    from plimsoll.nodes.model.scale_up_plan import ScaleUpPlan
    from plimsoll.nodes.planning.scaleup.expanders import ExpanderOption
    from plimsoll.nodes.providers.externalgrpc.methods import Calls

log = structlog.get_logger(__name__)

# A plan that the verifier refuses is made again, and may reach other options each time.
_MOST_QUESTIONS: Final = 8


class GrpcExpander:
    """Calls the expander. A question contains at most `max_pods` pods, shared by its options."""

    def __init__(self, calls: Calls, *, max_pods: int) -> None:
        self._calls = calls
        self._max_pods = max_pods

    async def plan(self, policy: Policy, plan: Callable[[Policy], Awaitable[ScaleUpPlan]]) -> ScaleUpPlan:
        """Plan, asking the expander as often as needed."""
        answers: dict[str, tuple[str, ...]] = {}
        for _ in range(_MOST_QUESTIONS):
            try:
                return await plan(replace(policy, expander_answers=answers))
            except Unanswered as requested:
                best = await self.choose_best(requested.options)
                answers = {**answers, build_request_key(requested.options): best}
        log.warning("expander.too_many_questions", questions=len(answers))
        return await plan(replace(policy, expander_answers=None))

    async def choose_best(self, options: Sequence[ExpanderOption]) -> tuple[str, ...]:
        """The ids of the groups that the expander prefers; empty if it prefers none."""
        try:
            answer = await self._calls.call(BEST_OPTIONS, build_request(options, max_pods=self._max_pods))
        except RpcFailed as error:
            log.warning("expander.failed", options=len(options), problem=str(error))
            return ()
        requested = {option.scale_up_option.group for option in options}
        named = list(dict.fromkeys(option.nodeGroupId for option in answer.options))
        if unknown := [name for name in named if name not in requested]:
            log.warning("expander.named_unknown_groups", groups=unknown)
        return tuple(name for name in named if name in requested)

    async def close(self) -> None:
        await self._calls.close()


def build_request(options: Sequence[ExpanderOption], *, max_pods: int) -> Any:
    """The request: each option with the node of its group, and with as many of its pods as the limit allows."""
    total = sum(count for option in options for _, count in option.scheduled_pods)
    share = total if total <= max_pods else max(1, max_pods // max(1, len(options)))
    requested = wire.BestOptionsRequest()
    for option in options:
        scale_up_option = option.scale_up_option
        requested.options.add(
            nodeGroupId=scale_up_option.group,
            nodeCount=option.nodes,
            debug=(
                f"{scale_up_option.group}: {scale_up_option.size}, max {format_limit(scale_up_option.max_size)}, "
                f"{option.pods} pods helped"
            ),
            podBytes=list(_list_pods([(encode_pod(pod), count) for pod, count in option.scheduled_pods], share)),
        )
        requested.nodeBytesMap[scale_up_option.group] = encode_node(scale_up_option.node)
    return requested


def _list_pods(classes: Sequence[tuple[bytes, int]], room: int) -> Iterator[bytes]:
    """One pod per class while there is room, then more pods of each class."""
    firsts = [content for content, count in classes if count > 0][:room]
    more = chain.from_iterable(repeat(content, count - 1) for content, count in classes if count > 1)
    yield from firsts
    for _, content in zip(range(room - len(firsts)), more, strict=False):
        yield content
