"""Machine types that no group is made of for some pods, and what such a machine would lack, labelled as they ask. Pure.

Offers are made for those who fit them. For everybody else a type was left out, or its groups carry the labels of
others; what they want to hear is what stands between them and a machine of their own. Only `why_left` and `explaining`
ask.

Why a group is made rather than one grown that is there: what every group in the cluster lacks, in few words. Pure.

Only `assembling` asks. Where the rules refuse, it says what would help: a larger machine type, one with accelerators,
labels; else why groups that would do cannot be used, or that the new one is cheaper.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from plimsoll.core.plans import Reason
from plimsoll.core.resources import CPU, EPHEMERAL_STORAGE, MEMORY, PODS
from plimsoll.nodes.model.node_templates import MachineTemplate
from plimsoll.nodes.model.scale_up_options import Profile
from plimsoll.nodes.planning.autoprovisioning.label_sets import without_machine_type
from plimsoll.nodes.planning.autoprovisioning.requirements import RequirementReader
from plimsoll.nodes.planning.explain.unschedulable import beside_daemons, few_names
from plimsoll.nodes.planning.scaleup.verifier import looks_at_others
from plimsoll.nodes.planning.state.daemon_overhead import DaemonSets
from plimsoll.scheduling import DEFAULT_PROFILE
from plimsoll.scheduling.cluster_view import NodeState, PlacedPod
from plimsoll.scheduling.feasibility import prepared
from plimsoll.scheduling.rules.node_affinity import NODE_AFFINITY
from plimsoll.scheduling.rules.resources_fit import RESOURCES_FIT, pod_demand
from plimsoll.scheduling.rules.taints import TAINT_TOLERATION

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from plimsoll.nodes.model.scale_up_options import ScaleUpOption
    from plimsoll.nodes.model.snapshot import MachineType
    from plimsoll.nodes.planning.autoprovisioning.requirements import NodeRequirements
    from plimsoll.nodes.planning.scaleup.placement import Placement
    from plimsoll.nodes.planning.scaleup.problem import ScaleUpProblem
    from plimsoll.objects.api.pods import Pod
    from plimsoll.scheduling.verdicts import Refusal


def refused_types(board: ScaleUpProblem, number: int) -> Iterator[tuple[MachineType, tuple[Refusal, ...]]]:
    """Types that auto-provisioning may use and has no place on for this class; nothing where it is off."""
    policy = board.policy
    if not policy.nap.enabled or board.offered.new_groups_left <= 0:
        return
    known = _types_with_a_place(board, number)
    pod = board.table.classes[number].pod
    wish = RequirementReader(policy, board.snapshot.machine_types).wish_of(pod)
    if wish.impossible is not None:
        return
    wanted = policy.nap.machine_types
    known |= {one.machine_type for one in board.offered.not_offered}
    daemons = DaemonSets(board.snapshot.daemon_sets)
    for kind in board.snapshot.machine_types:
        if kind.name not in known and (not wanted or kind.name in wanted):
            refusals = _refusals(board, pod, _nodes(board, kind, wish), daemons)
            if refusals:
                yield kind, refusals


def _types_with_a_place(board: ScaleUpProblem, number: int) -> set[str]:
    return {board.offers[offer].machine_type for offer in np.flatnonzero(board.allowed[:, number]).tolist()}


def _nodes(board: ScaleUpProblem, kind: MachineType, wish: NodeRequirements) -> list[NodeState]:
    """One a zone, as a group made for this pod alone would have them."""
    profile = Profile(labels=without_machine_type(wish.selector), taints=wish.taints)
    template = MachineTemplate(kind, board.offered.regions)
    return [NodeState(template.node("", zone, profile)) for zone in kind.zones or ("",)]


def _refusals(board: ScaleUpProblem, pod: Pod, nodes: Sequence[NodeState], daemons: DaemonSets) -> tuple[Refusal, ...]:
    """Those of the zone that has the fewest."""
    view = board.snapshot.view
    alone = None if looks_at_others(pod) else prepared(pod, view, profile=DEFAULT_PROFILE)
    found: list[tuple[Refusal, ...]] = []
    for empty in nodes:
        carried = daemons.on(empty.node)
        place = empty.with_pods(PlacedPod(daemon) for daemon in carried.pods)
        rules = alone or prepared(pod, view.with_node(empty.node), profile=DEFAULT_PROFILE)
        found.append(beside_daemons(rules.refusals(place), pod_demand(pod), place.free, carried.pods))
    return min(found, key=len)


NEW_GROUP: Final = "NewGroupNeeded"
_CLASSES: Final = 8
"""Of so many classes on the new nodes it is told, those with the most pods first."""
_ORDINARY: Final = frozenset({CPU, MEMORY, EPHEMERAL_STORAGE, PODS})


def why_made(board: ScaleUpProblem, draft: Placement, offer: int) -> tuple[Reason, ...]:
    """Causes, for the pods on the new nodes of one offer; none where there are no groups to be grown instead."""
    found: dict[str, list[str]] = {}
    for number in _largest(draft, offer):
        for cause, groups in (*_refusals_why_made(board, number), *_unused(board, draft, offer, number)):
            found[cause] = [*dict.fromkeys([*found.get(cause, ()), *groups])]
    for other in board.offered.not_offered:
        if other.group:
            found[other.reason] = [*dict.fromkeys([*found.get(other.reason, ()), other.group])]
    return tuple(Reason(code=NEW_GROUP, message=f"{cause} ({few_names(groups)})") for cause, groups in found.items())


def _largest(draft: Placement, offer: int) -> list[int]:
    """Classes on the nodes of the offer."""
    pods: dict[int, int] = {}
    for batch in draft.batches:
        if batch.offer == offer:
            for number, each in batch.content.items():
                pods[number] = pods.get(number, 0) + each * batch.nodes
    return sorted(pods, key=lambda number: (-pods[number], number))[:_CLASSES]


def _refusals_why_made(board: ScaleUpProblem, number: int) -> Iterator[tuple[str, list[str]]]:
    """What would have to be different about nodes of groups that the rules exclude; told alike for one rule's word."""
    there = [index for index, one in enumerate(board.offers) if one.exists]
    if not there:
        return
    rules = board.offer_rules
    codes = rules.rules.codes(number, rules.arrays.free, {})
    for code in np.unique(codes[there]).tolist():
        if code:
            refused = [board.offers[index] for index in there if codes[index] == code]
            told = _lacking(board, number, refused[0], rules.refusal(code))
            yield told, [one.group for one in refused]


def _lacking(board: ScaleUpProblem, number: int, offer: ScaleUpOption, refusal: Refusal) -> str:
    words = ", ".join(refusal.messages)
    if refusal.plugin == NODE_AFFINITY:
        wanted = RequirementReader(board.policy, board.snapshot.machine_types).wish_of(board.table.classes[number].pod)
        there = offer.node.metadata.labels
        labels = [f"{key}={value}" for key, value in wanted.pinned.items() if there.get(key) != value]
        return f"nodes labelled {', '.join(labels)} are needed" if labels else words
    if refusal.plugin == TAINT_TOLERATION:
        taints = [f"{one.key}={one.value}:{one.effect}" for one in offer.node.spec.taints]
        return f"nodes without the taint {', '.join(taints)} are needed"
    if refusal.plugin == RESOURCES_FIT:
        demand = board.table.classes[number].demand
        devices = [name for name in demand if name not in _ORDINARY and not offer.capacity[name]]
        if devices:
            return f"nodes with {', '.join(devices)} are needed"
        return f"a larger machine type is needed: {words}"
    return words


def _unused(board: ScaleUpProblem, draft: Placement, offer: int, number: int) -> Iterator[tuple[str, list[str]]]:
    """Groups that would take such a pod, and why they were not grown for it."""
    nodes = draft.nodes_of(len(board.offers))
    left = draft.room_left(board)
    for index in np.flatnonzero(board.allowed[:, number]).tolist():
        one = board.offers[index]
        if not one.exists:
            continue
        broken = np.flatnonzero(board.limits.use[index] > left).tolist()
        if nodes[index] >= one.max_size - one.size:
            yield "max size reached", [one.group]
        elif broken:
            yield str(board.limits.ceilings[broken[0]]), [one.group]
        elif one.tier == board.offers[offer].tier:
            yield "a new group is cheaper", [one.group]
        else:
            yield "a new group has a higher priority", [one.group]
