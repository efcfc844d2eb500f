"""Machine types that no group is made of for some pods, and what such a machine would lack, labelled as they ask. Pure.

Offers are made for those who fit them. For everybody else a type was left out, or its groups carry the labels of
others; what they want to hear is what stands between them and a machine of their own. Only `why_left` and `explaining`
ask.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from plimsoll.nodes.model.node_templates import MachineTemplate
from plimsoll.nodes.model.scale_up_options import Profile
from plimsoll.nodes.planning.autoprovisioning.label_sets import without_machine_type
from plimsoll.nodes.planning.autoprovisioning.requirements import RequirementReader
from plimsoll.nodes.planning.explain.daemon_overhead import beside_daemons
from plimsoll.nodes.planning.problem.verifier import looks_at_others
from plimsoll.nodes.planning.state.daemon_overhead import DaemonSets
from plimsoll.scheduling import DEFAULT_PROFILE
from plimsoll.scheduling.cluster_view import NodeState, PlacedPod
from plimsoll.scheduling.feasibility import prepared
from plimsoll.scheduling.pod_requests import pod_demand

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from plimsoll.nodes.model.snapshot import MachineType
    from plimsoll.nodes.planning.autoprovisioning.requirements import NodeRequirements
    from plimsoll.nodes.planning.problem.problem import ScaleUpProblem
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
    known |= {not_offered.machine_type for not_offered in board.offered.not_offered}
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
        carried = daemons.overhead_on(empty.node)
        place = empty.with_pods(PlacedPod(daemon) for daemon in carried.pods)
        rules = alone or prepared(pod, view.with_node(empty.node), profile=DEFAULT_PROFILE)
        found.append(beside_daemons(rules.refusals(place), pod_demand(pod), place.free, carried.pods))
    return min(found, key=len)
