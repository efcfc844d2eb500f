"""Whether evicting pods of lower priority makes room, as kube-scheduler tries if no node fits (DefaultPreemption).

The result is the second half of the message in `messages`. Nothing is evicted here. Disruption budgets are not weighed,
and only pods of one node are tried at a time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from plimsoll.core.values import Value
from plimsoll.objects.api.pods import Pod  # noqa: TC001 - msgspec reads annotations at run time
from plimsoll.scheduling.feasibility import DEFAULT_PROFILE, prepare_pod
from plimsoll.scheduling.priorities import get_priority, may_preempt, outranks, sort_by_importance
from plimsoll.scheduling.verdicts import DoesNotFit, Fits

if TYPE_CHECKING:
    from collections.abc import Mapping

    from plimsoll.scheduling.cluster_view import ClusterView, NodeState
    from plimsoll.scheduling.feasibility import Profile
    from plimsoll.scheduling.verdicts import Verdict

NOT_HELPFUL: Final = "Preemption is not helpful for scheduling"
NO_VICTIMS: Final = "No preemption victims found for incoming pod"
NOT_ELIGIBLE: Final = "not eligible due to preemptionPolicy=Never."
WAITING_FOR_VICTIM: Final = "not eligible due to a terminating pod on the nominated node."

# kube-scheduler stops looking once it has a tenth of the nodes, but at least this many.
_CANDIDATES_AT_LEAST: Final = 100
_LOWEST: Final = -(2**31)


class Candidate(Value, frozen=True):
    """A node that would fit once `victims` (most important first) are gone."""

    node: str
    victims: tuple[Pod, ...]


class Preemption(Value, frozen=True):
    """The result of the search: nodes where preemption helps, and the messages for the others."""

    candidates: tuple[Candidate, ...]
    refusals: dict[str, tuple[str, ...]]

    @property
    def choice(self) -> Candidate | None:
        """The candidate that hurts least, as kube-scheduler ranks them (budgets apart)."""
        return min(self.candidates, key=_compute_harm, default=None)


def explain_ineligible(pod: Pod, view: ClusterView, refused: Mapping[str, Verdict]) -> str:
    """Why the pod may not preempt at all; empty if it may."""
    if not may_preempt(pod):
        return NOT_ELIGIBLE
    name = pod.status.nominated_node_name
    nominated = view.find_node(name)
    verdict = refused.get(name)
    if nominated is None or (isinstance(verdict, DoesNotFit) and not verdict.reason.resolvable):
        return ""
    leaving = any(
        outranks(pod, placed_pod.pod) and _is_preempted(placed_pod.pod) for placed_pod in nominated.pods.values()
    )
    return WAITING_FOR_VICTIM if leaving else ""


def _is_preempted(pod: Pod) -> bool:
    """Whether the pod is terminating because the scheduler preempted it."""
    return pod.metadata.deletion_timestamp is not None and any(
        condition.type == "DisruptionTarget"
        and condition.status == "True"
        and condition.reason == "PreemptionByScheduler"
        for condition in pod.status.conditions
    )


def search(
    pod: Pod, view: ClusterView, refused: Mapping[str, Verdict], *, profile: Profile = DEFAULT_PROFILE
) -> Preemption:
    """Try every node of `refused` whose refusal other pods leaving could change."""
    candidates: list[Candidate] = []
    refusals: dict[str, tuple[str, ...]] = {}
    enough = max(_CANDIDATES_AT_LEAST, len(view.nodes) // 10)
    for name, verdict in refused.items():
        if len(candidates) >= enough:
            break
        if not (isinstance(verdict, DoesNotFit) and verdict.reason.resolvable):
            refusals[name] = (NOT_HELPFUL,)
            continue
        outcome = _find_victims(view.nodes[name], pod, view, profile)
        if isinstance(outcome, Candidate):
            candidates.append(outcome)
        else:
            refusals[name] = outcome
    return Preemption(candidates=tuple(candidates), refusals=refusals)


def _find_victims(place: NodeState, pod: Pod, view: ClusterView, profile: Profile) -> Candidate | tuple[str, ...]:
    """Remove every pod of lower priority; if the pod then fits, keep as many as possible, important ones first."""
    lower = sort_by_importance(placed.pod for placed in place.pods.values() if outranks(pod, placed.pod))
    if not lower:
        return (NO_VICTIMS,)
    cleared = view
    for victim in lower:
        cleared = cleared.without_pod(victim, place.name)
    verdict = _check_named_node(pod, place.name, cleared, profile)
    if isinstance(verdict, DoesNotFit):
        return verdict.reason.messages
    victims: list[Pod] = []
    for victim in lower:
        spared = cleared.with_pod(victim, place.name)
        if isinstance(_check_named_node(pod, place.name, spared, profile), Fits):
            cleared = spared
        else:
            victims.append(victim)
    return Candidate(node=place.name, victims=tuple(victims))


def _check_named_node(pod: Pod, name: str, view: ClusterView, profile: Profile) -> Verdict:
    return prepare_pod(pod, view, profile=profile).check(view.nodes[name])


def _compute_harm(candidate: Candidate) -> tuple[int, int, int, float]:
    """The least important top victim, then the smallest sum of priorities, then the fewest, then the youngest."""
    priorities = [get_priority(victim) for victim in candidate.victims]
    highest = max(priorities, default=_LOWEST)
    started = [pod.status.start_time for pod in candidate.victims if get_priority(pod) == highest]
    oldest = min((time.timestamp() for time in started if time is not None), default=float("inf"))
    # Shifted so that many victims of negative priority do not look cheaper than one.
    return (highest, sum(priority - _LOWEST for priority in priorities), len(priorities), -oldest)
