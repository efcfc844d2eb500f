"""The sentence in a pod's PodScheduled condition and FailedScheduling event, as kube-scheduler 1.34 writes it.

`compute_scheduling_outcome` is what the embedded scheduler and `plimsoll why` show: users know these texts, search for
them and alert on them. The format, found from recordings: reasons are counted over nodes, written "<count> <reason>"
and sorted as text (so "10 x" comes before "2 y"); a refusal before any node was checked stands alone; the result of
preemption follows, unless it helped.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from plimsoll.core.values import Value
from plimsoll.scheduling.feasibility import DEFAULT_PROFILE, check_nodes, prepare_pod
from plimsoll.scheduling.preemption import Candidate, explain_ineligible, search
from plimsoll.scheduling.rules.node_affinity import NODE_AFFINITY
from plimsoll.scheduling.rules.scheduling_gates import GATED_MESSAGE, GATED_REASON, SCHEDULING_GATES, is_gated
from plimsoll.scheduling.verdicts import DoesNotFit, Fits, Refusal

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from plimsoll.objects.api.pods import Pod
    from plimsoll.scheduling.cluster_view import ClusterView
    from plimsoll.scheduling.feasibility import Profile
    from plimsoll.scheduling.verdicts import Verdict

UNSCHEDULABLE_REASON: Final = "Unschedulable"
NO_NODES: Final = "no nodes available to schedule pods"

# What the dynamic resources plugin, which comes before preemption, adds to every failure.
NO_CLAIMS: Final = "no new claims to deallocate"
# What it adds when scheduling ended before it could prepare: the text of a missing piece of its own state.
_NOT_PREPARED: Final = "not found"


class Schedulable(Value, frozen=True, tag_field="outcome", tag="Schedulable"):
    """Nodes the pod fits on, in the order of the view; the scheduler chooses among them."""

    nodes: tuple[str, ...]


class NotSchedulable(Value, frozen=True, tag_field="outcome", tag="NotSchedulable"):
    """The condition's reason and message; `preempt` is set when preemption would make room."""

    reason: str
    message: str
    preempt: Candidate | None = None


def compute_scheduling_outcome(
    pod: Pod, view: ClusterView, *, profile: Profile = DEFAULT_PROFILE
) -> Schedulable | NotSchedulable:
    if is_gated(pod) and SCHEDULING_GATES not in profile.disabled:
        return NotSchedulable(reason=GATED_REASON, message=GATED_MESSAGE)
    if not view.nodes:
        return NotSchedulable(reason=UNSCHEDULABLE_REASON, message=NO_NODES)
    rules = prepare_pod(pod, view, profile=profile)
    if rules.everywhere:
        text = format_refused_everywhere(rules.everywhere[0], len(view.nodes))
        return NotSchedulable(reason=UNSCHEDULABLE_REASON, message=text)
    answers = with_named_nodes_only(check_nodes(pod, view, profile=profile), rules.named_nodes)
    fitting = tuple(name for name, verdict in answers.items() if isinstance(verdict, Fits))
    if fitting:
        return Schedulable(nodes=fitting)
    return _explain_after_preemption(pod, view, answers, profile)


def _explain_after_preemption(
    pod: Pod, view: ClusterView, answers: Mapping[str, Verdict], profile: Profile
) -> NotSchedulable:
    first_half = summarise_refusals(
        verdict.reason.messages for verdict in answers.values() if isinstance(verdict, DoesNotFit)
    )
    detail = explain_ineligible(pod, view, answers)
    if not detail:
        found = search(pod, view, answers, profile=profile)
        if found.candidates:
            return NotSchedulable(reason=UNSCHEDULABLE_REASON, message=first_half, preempt=found.choice)
        detail = summarise_refusals(found.refusals.values())
    text = f"{first_half} {NO_CLAIMS}, preemption: {detail}"
    return NotSchedulable(reason=UNSCHEDULABLE_REASON, message=text)


def summarise_refusals(messages_by_node: Iterable[tuple[str, ...]]) -> str:
    """Sum up refusals of nodes: "0/3 nodes are available: 1 node(s) were unschedulable, 2 Insufficient cpu."."""
    listed = list(messages_by_node)
    counts = Counter(message for messages in listed for message in messages)
    histogram = sorted(f"{count} {message}" for message, count in counts.items())
    reasons = f" {', '.join(histogram)}." if histogram else ""
    return f"0/{len(listed)} nodes are available:{reasons}"


def format_refused_everywhere(refusal: Refusal, nodes: int) -> str:
    """The text for a pod that was refused before any node was checked."""
    return f"0/{nodes} nodes are available: {', '.join(refusal.messages)}. {_NOT_PREPARED}"


def with_named_nodes_only(answers: dict[str, Verdict], named: frozenset[str] | None) -> dict[str, Verdict]:
    """Where the pod's affinity names nodes, kube-scheduler checks only these and gives the others one reason."""
    if named is None:
        return answers
    other = DoesNotFit(
        reason=Refusal(plugin=NODE_AFFINITY, messages=(f"node(s) didn't satisfy plugin(s) [{NODE_AFFINITY}]",))
    )
    return {name: verdict if name in named else other for name, verdict in answers.items()}
