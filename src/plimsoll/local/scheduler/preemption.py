"""Preemption: the search for victims of lower priority, in slices on a snapshot of the cluster.

The rules are those of `plimsoll.scheduling.preemption`; this module evaluates a few nodes at a time and yields to other
tasks in between. Disruption budgets are not considered, and nothing is deleted here.
"""

from __future__ import annotations

import asyncio
from itertools import islice
from typing import TYPE_CHECKING, Final

from plimsoll.core.values import Value
from plimsoll.local.scheduler.equivalence import WIDE
from plimsoll.scheduling.cluster_view import ClusterView
from plimsoll.scheduling.feasibility import prepare_pod
from plimsoll.scheduling.messages import NO_CLAIMS, summarise_refusals
from plimsoll.scheduling.preemption import Candidate, Preemption, explain_ineligible, search

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from plimsoll.local.scheduler.cache import SchedulerCache
    from plimsoll.objects.api.pods import Pod
    from plimsoll.scheduling.verdicts import Verdict

_NODES_AT_ONCE: Final = 16
# kube-scheduler stops looking once it has a tenth of the nodes, but at least this many.
_CANDIDATES_AT_LEAST: Final = 100


class PreemptionResult(Value, frozen=True):
    """The result of the search. `may_keep_nomination`: room is being made already, and the pod only waits."""

    choice: Candidate | None = None
    message: str = ""
    """What the message says of it; nothing where room can be made."""
    may_keep_nomination: bool = False


async def find_preemption(pod: Pod, cache: SchedulerCache, answers: Mapping[str, Verdict]) -> PreemptionResult:
    view = _add_nominated(pod, cache)
    reason = explain_ineligible(pod, view, answers)
    if reason:
        return PreemptionResult(message=f"{NO_CLAIMS}, preemption: {reason}", may_keep_nomination=True)
    found = await _search(pod, view, answers)
    if found.candidates:
        return PreemptionResult(choice=found.choice)
    return PreemptionResult(message=f"{NO_CLAIMS}, preemption: {summarise_refusals(found.refusals.values())}")


def _add_nominated(pod: Pod, cache: SchedulerCache) -> ClusterView:
    """The view with nominated pods of equal or higher priority, which are not victims and take their resources."""
    view = cache.take_snapshot()
    for name, coming in cache.list_nominated_against(pod).items():
        for item in coming:
            view = view.with_pod(item, name)
    return view


async def _search(pod: Pod, view: ClusterView, answers: Mapping[str, Verdict]) -> Preemption:
    looks_wide = bool(prepare_pod(pod, view, profile=WIDE).rules)
    enough = max(_CANDIDATES_AT_LEAST, len(view.nodes) // 10)
    candidates: list[Candidate] = []
    refusals: dict[str, tuple[str, ...]] = {}
    for some in _slice_verdicts(answers):
        for name, verdict in some.items():
            # Trying costs as much as the view is large, so the pod is shown no more than its rules look at.
            seen = view if looks_wide else _select_node(view, name)
            found = search(pod, seen, {name: verdict})
            candidates += found.candidates
            refusals |= found.refusals
        if len(candidates) >= enough:
            break
        await asyncio.sleep(0)
    return Preemption(candidates=tuple(candidates[:enough]), refusals=refusals)


def _select_node(view: ClusterView, name: str) -> ClusterView:
    return ClusterView({name: view.nodes[name]}, namespaces=view.namespaces, storage=view.storage, anti_affine={})


def _slice_verdicts(answers: Mapping[str, Verdict]) -> Iterator[dict[str, Verdict]]:
    left = iter(answers.items())
    while some := dict(islice(left, _NODES_AT_ONCE)):
        yield some
