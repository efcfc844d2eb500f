"""Machine types of which no group is created for some pods, and what such a machine would lack. Pure.

Each type is checked as if it were labelled for the pods, because groups of that type may carry labels for others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from plimsoll.nodes.model.node_templates import MachineTemplate
from plimsoll.nodes.model.scale_up_plan import GroupProfile
from plimsoll.nodes.planning.autoprovisioning.label_sets import remove_machine_type
from plimsoll.nodes.planning.autoprovisioning.requirements import RequirementReader
from plimsoll.nodes.planning.explain.daemon_overhead import name_daemons
from plimsoll.nodes.planning.problem.verifier import depends_on_other_pods
from plimsoll.nodes.planning.state.daemon_overhead import DaemonSets
from plimsoll.scheduling import DEFAULT_PROFILE
from plimsoll.scheduling.cluster_view import NodeState, PlacedPod
from plimsoll.scheduling.feasibility import prepare_pod
from plimsoll.scheduling.pod_requests import compute_pod_demand

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from plimsoll.nodes.model.snapshot import MachineType
    from plimsoll.nodes.planning.autoprovisioning.requirements import NodeRequirements
    from plimsoll.nodes.planning.problem.problem import ScaleUpProblem
    from plimsoll.objects.api.pods import Pod
    from plimsoll.scheduling.verdicts import Refusal


def find_rejected_types(problem: ScaleUpProblem, number: int) -> Iterator[tuple[MachineType, tuple[Refusal, ...]]]:
    """Machine types of auto-provisioning that reject the class, with their refusals; empty if it is off."""
    policy = problem.policy
    if not policy.nap.enabled or problem.option_set.new_groups_left <= 0:
        return
    known = _find_accepting_types(problem, number)
    pod = problem.table.classes[number].pod
    requirements = RequirementReader.from_snapshot(problem.snapshot, policy).read(pod)
    if requirements.impossible is not None:
        return
    wanted = policy.nap.machine_types
    known |= {skipped_groups.machine_type for skipped_groups in problem.option_set.skipped_groups}
    daemons = DaemonSets(problem.snapshot.daemon_sets)
    for kind in problem.snapshot.machine_types:
        if kind.name not in known and (not wanted or kind.name in wanted):
            refusals = _collect_refusals(problem, pod, _build_nodes(problem, kind, requirements), daemons)
            if refusals:
                yield kind, refusals


def _find_accepting_types(problem: ScaleUpProblem, number: int) -> set[str]:
    return {problem.options[option].machine_type for option in np.flatnonzero(problem.allowed[:, number]).tolist()}


def _build_nodes(problem: ScaleUpProblem, kind: MachineType, requirements: NodeRequirements) -> list[NodeState]:
    """One node per zone, as a group for this pod alone would have."""
    profile = GroupProfile(labels=remove_machine_type(requirements.selector), taints=requirements.taints)
    template = MachineTemplate(kind, problem.option_set.regions)
    return [NodeState(template.build_node("", zone, profile)) for zone in kind.zones or ("",)]


def _collect_refusals(
    problem: ScaleUpProblem, pod: Pod, nodes: Sequence[NodeState], daemons: DaemonSets
) -> tuple[Refusal, ...]:
    """The refusals of the zone that has the fewest."""
    view = problem.snapshot.view
    alone = None if depends_on_other_pods(pod) else prepare_pod(pod, view, profile=DEFAULT_PROFILE)
    found: list[tuple[Refusal, ...]] = []
    for empty in nodes:
        carried = daemons.compute_overhead(empty.node)
        place = empty.with_pods(PlacedPod(daemon) for daemon in carried.pods)
        rules = alone or prepare_pod(pod, view.with_node(empty.node), profile=DEFAULT_PROFILE)
        found.append(name_daemons(rules.find_refusals(place), compute_pod_demand(pod), place.free, carried.pods))
    return min(found, key=len)
