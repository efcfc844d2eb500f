"""Constraints beyond the scheduling rules: groups made for certain pods, spot capacity, GPUs, architectures. Pure.

A planner combines them with the feasibility of the rules by "and". They work on representative pods, because pods of
one class have the same requirements.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from plimsoll.core.errors import InvalidQuantity
from plimsoll.nodes.model.gpus import count_gpus, is_gpu
from plimsoll.nodes.model.node_labels import ARCH, CAPACITY_TYPE_KEYS
from plimsoll.nodes.model.node_templates import is_upcoming
from plimsoll.nodes.model.snapshot import CapacityType
from plimsoll.nodes.planning.autoprovisioning.label_sets import remove_machine_type
from plimsoll.scheduling.pod_requests import compute_pod_demand
from plimsoll.scheduling.rules.taints import tolerates

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from plimsoll.nodes.config.policy import AutoProvisioning, Policy
    from plimsoll.nodes.model.scale_up_plan import GroupProfile, ScaleUpOption
    from plimsoll.nodes.planning.autoprovisioning.requirements import NodeRequirements, RequirementReader
    from plimsoll.objects.api.nodes import Node, Taint
    from plimsoll.objects.api.pods import Pod
    from plimsoll.scheduling.cluster_view import NodeState
    from plimsoll.solver.problem import Flags

_COMMON: Final = "amd64"
_ARCHITECTURE_KEYS: Final = frozenset({ARCH, "beta.kubernetes.io/arch"})


def find_allowed_options(
    options: Sequence[ScaleUpOption], pods: Sequence[Pod], policy: Policy, reader: RequirementReader
) -> Flags:
    """[options, pods]: False if a new group is for other pods, or if it has a trait that the pod did not ask for.

    Such traits are spot capacity, and an architecture that the images may not be built for.
    """
    foreign = _find_uncommon_architectures(options)
    allowed = np.ones((len(options), len(pods)), dtype=np.bool_)
    requirement_sets = [reader.read(pod) for pod in pods] if any(option.profile for option in options) else []
    by_profile: dict[str, Flags] = {}
    by_taints: dict[tuple[Taint, ...], Flags] = {}
    names_one = np.array([selects_architecture(pod) for pod in pods], dtype=np.bool_) if foreign else None
    for row, option in enumerate(options):
        profile = option.profile
        if profile is not None:
            if profile.hash not in by_profile:
                made_for = [serves(profile, requirements, policy.nap) for requirements in requirement_sets]
                by_profile[profile.hash] = np.array(made_for, dtype=np.bool_)
            allowed[row] &= by_profile[profile.hash]
        if option.capacity_type is CapacityType.SPOT:
            taints = option.node.spec.taints
            if taints not in by_taints:
                by_taints[taints] = np.array([accepts_spot(pod, taints) for pod in pods], dtype=np.bool_)
            allowed[row] &= by_taints[taints]
        if names_one is not None and row in foreign:
            allowed[row] &= names_one
    return allowed


def _find_uncommon_architectures(options: Sequence[ScaleUpOption]) -> frozenset[int]:
    """New groups whose architecture is not the common one, if new groups of the common one exist too."""
    new = {
        row: option.node.metadata.labels.get(ARCH, _COMMON) for row, option in enumerate(options) if not option.exists
    }
    if _COMMON not in new.values():
        return frozenset()
    return frozenset(row for row, architecture in new.items() if architecture != _COMMON)


def selects_architecture(pod: Pod) -> bool:
    """Whether the pod selects an architecture: it is not known what its images are built for."""
    return bool(
        _ARCHITECTURE_KEYS
        & {
            *pod.spec.node_selector,
            *_collect_required_keys(pod),
            *(toleration.key for toleration in pod.spec.tolerations),
        }
    )


def serves(profile: GroupProfile, requirements: NodeRequirements, nap: AutoProvisioning) -> bool:
    """Whether a new group with this profile is for these pods; scheduling rules check machine types."""
    if requirements.impossible is not None or not _do_taints_agree(profile, requirements, merge=nap.taints_merge):
        return False
    wanted = remove_machine_type(requirements.selector)
    if nap.label_merge == "alpha":
        return wanted == remove_machine_type(profile.labels)
    return all(profile.labels.get(key) == value for key, value in wanted.items())


def accepts_spot(pod: Pod, taints: Iterable[Taint]) -> bool:
    """Whether the pod selects by capacity type, or tolerates by key the taints of such nodes."""
    if CAPACITY_TYPE_KEYS & {*pod.spec.node_selector, *_collect_required_keys(pod)}:
        return True
    named = [toleration for toleration in pod.spec.tolerations if toleration.key]
    if any(toleration.key in CAPACITY_TYPE_KEYS for toleration in named):
        return True
    spot_taints = [taint for taint in taints if taint.effect != "PreferNoSchedule" and not is_gpu(taint.key)]
    return any(tolerates(toleration, taint) for toleration in named for taint in spot_taints)


def reserve_gpu_nodes(allowed: Flags, options: Sequence[ScaleUpOption], pods: Sequence[Pod]) -> Flags:
    """`allowed` without accelerator nodes for pods that request none, unless nothing else would take them.

    `allowed` [options, pods] must already include the scheduling rules.
    """
    with_gpus = np.array([count_gpus(option.capacity) > 0 for option in options], dtype=np.bool_)
    if not with_gpus.any():
        return allowed
    without_gpus = np.array([not _requests_gpus(pod) for pod in pods], dtype=np.bool_)
    has_other = allowed[~with_gpus].any(axis=0)
    return allowed & ~(with_gpus[:, None] & (without_gpus & has_other)[None, :])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ReservedNodes:
    """Upcoming nodes that a soft taint keeps for pods with accelerator requests, and the pods that are kept off.

    They were added for such pods. If others were planned onto them, the pods that they were added for would need more.
    """

    rows: Flags
    """[N]"""
    kept_off: Flags
    """[C]: pods that request no accelerator and that a node without accelerators takes."""


def find_reserved_nodes(
    nodes: Sequence[NodeState], allowed: Flags, options: Sequence[ScaleUpOption], pods: Sequence[Pod]
) -> ReservedNodes | None:
    """`allowed` [options, pods] must already include the scheduling rules; None if there are no such nodes."""
    rows = np.array([_is_reserved(state.node) for state in nodes], dtype=np.bool_)
    if not rows.any():
        return None
    plain = np.array([count_gpus(option.capacity) == 0 for option in options], dtype=np.bool_)
    without_gpus = np.array([not _requests_gpus(pod) for pod in pods], dtype=np.bool_)
    return ReservedNodes(rows=rows, kept_off=allowed[plain].any(axis=0) & without_gpus)


def _is_reserved(node: Node) -> bool:
    taints = node.spec.taints
    return any(taint.effect == "PreferNoSchedule" and is_gpu(taint.key) for taint in taints) and is_upcoming(node)


def _requests_gpus(pod: Pod) -> bool:
    try:
        return count_gpus(compute_pod_demand(pod)) > 0
    except InvalidQuantity:
        return False


def _do_taints_agree(profile: GroupProfile, requirements: NodeRequirements, *, merge: bool) -> bool:
    """Whether the taints that come from tolerations agree; the rules check those of accelerators."""
    taints = {taint for taint in profile.taints if not is_gpu(taint.key)}
    if merge and taints:
        return taints <= set(requirements.taints)
    return taints == set(requirements.taints)


def _collect_required_keys(pod: Pod) -> set[str]:
    """Keys that required node affinity asks for; NotIn and DoesNotExist ask for nothing."""
    affinity = None if pod.spec.affinity is None else pod.spec.affinity.node_affinity
    required = None if affinity is None else affinity.required_during_scheduling_ignored_during_execution
    terms = () if required is None else required.node_selector_terms
    return {
        requirement.key
        for term in terms
        for requirement in term.match_expressions
        if requirement.operator in {"In", "Exists"}
    }
