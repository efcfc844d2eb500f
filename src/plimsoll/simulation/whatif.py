"""What if: the same cluster and the same pods, planned under several policies, side by side.

A policy file has flags of the node autoscaler by name, as `options` of a scenario. What a policy does not mention is as
in the files of the cluster.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import msgspec

from plimsoll.core.errors import InvalidInput
from plimsoll.nodes.config.options import read_options
from plimsoll.nodes.config.price_overlays import decode_overlay_file
from plimsoll.nodes.planning.scaleup.planner import propose, verify_proposal
from plimsoll.nodes.reporting.plan_json import get_machine_type
from plimsoll.objects.codec.manifests import read_documents
from plimsoll.simulation.plan.files import read_plan_files
from plimsoll.simulation.plan.inputs import build_plan_input

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from plimsoll.nodes.config.policy import Policy
    from plimsoll.nodes.model.scale_up_plan import ScaleUpPlan
    from plimsoll.simulation.scenario import GroupEntry, Json, Scenario

OPTIONS: Final = "options"
_ENDED: Final = frozenset({"Succeeded", "Failed"})
_PER_NODE: Final = frozenset({"DaemonSet", "Node"})
"""Owners of pods that a node brings with it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedPolicy:
    """A policy file: its name, and the flags in it."""

    name: str
    options: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyOutcome:
    """What one policy would do. Money is per hour, in `currency`."""

    name: str
    nodes: int
    machine_types: Mapping[str, int]
    cost_per_hour: float
    lower_bound_per_hour: float
    placed: int
    unschedulable: int
    reasons: tuple[str, ...]
    """Why pods stay unschedulable, the most frequent first."""
    currency: str


def read_policy(name: str, data: bytes) -> NamedPolicy:
    """A mapping of flags, alone or under `options`. Raises `InvalidInput`."""
    documents = [document for _, document in read_documents(data, source=name) if document is not None]
    if len(documents) != 1 or not isinstance(documents[0], dict):
        raise InvalidInput("a policy is one mapping of flags, e.g. expander: least-waste", path=name)
    document = documents[0]
    options = document.get(OPTIONS, {}) if set(document) == {OPTIONS} else document
    if not isinstance(options, dict):
        raise InvalidInput("is a mapping of flags", path=f"{name}: {OPTIONS}")
    read_options(options, path=name)
    return NamedPolicy(name=name, options=options)


def compare_policies(
    files: Sequence[tuple[str, bytes]],
    policies: Sequence[NamedPolicy],
    *,
    catalogues: Sequence[str] = (),
    repacks: bool = False,
    read_file: Callable[[str], bytes],
) -> tuple[PolicyOutcome, ...]:
    """One outcome per policy. `repacks`: all pods are placed anew, as if there were no nodes."""
    scenario = read_plan_files(files, catalogues=catalogues)
    if repacks:
        scenario = clear_nodes(scenario)
    return tuple(_plan(scenario, policy, read_file) for policy in policies)


def clear_nodes(scenario: Scenario) -> Scenario:
    """The cluster without its nodes; pods that ran on them wait for new ones."""
    objects: list[Json] = []
    for manifest in scenario.objects:
        if manifest["kind"] == "Pod":
            if not _is_gone_with_nodes(manifest):
                objects.append(_clear_binding(manifest))
        elif manifest["kind"] != "Node":
            objects.append(manifest)
    groups = tuple(_drop_machines(group) for group in scenario.node_groups)
    return msgspec.structs.replace(scenario, objects=tuple(objects), node_groups=groups)


def _plan(scenario: Scenario, policy: NamedPolicy, read_file: Callable[[str], bytes]) -> PolicyOutcome:
    options = {**scenario.options, **policy.options}
    given = build_plan_input(msgspec.structs.replace(scenario, options=options))
    if scenario.machine_types and not given.snapshot.groups:
        options.setdefault("node-autoprovisioning", True)
    active = replace(_read_policy(options, policy.name, read_file), priorities=given.priorities)
    plan = verify_proposal(propose(given.snapshot, active))
    return _describe_outcome(policy.name, plan, given.currency)


def _read_policy(options: Mapping[str, Any], name: str, read_file: Callable[[str], bytes]) -> Policy:
    policy = read_options(options, path=name)
    file = policy.planning.price_overlay
    return replace(policy, overlay=decode_overlay_file(read_file(file), source=file) if file else {})


def _describe_outcome(name: str, plan: ScaleUpPlan, currency: str) -> PolicyOutcome:
    types: Counter[str] = Counter()
    for scale_up in plan.scale_ups:
        types[get_machine_type(scale_up.option) or scale_up.option.group] += scale_up.added
    reasons: Counter[str] = Counter()
    for left in plan.unschedulable:
        for reason in left.reasons[:1]:
            reasons[str(reason)] += left.pods
    return PolicyOutcome(
        name=name,
        nodes=sum(types.values()),
        machine_types=dict(sorted(types.items())),
        cost_per_hour=plan.cost_per_hour,
        lower_bound_per_hour=plan.lower_bound_per_hour,
        placed=plan.scheduled,
        unschedulable=sum(left.pods for left in plan.unschedulable),
        reasons=tuple(reason for reason, _ in reasons.most_common()),
        currency=currency,
    )


def _is_gone_with_nodes(pod: Json) -> bool:
    owners = pod["metadata"].get("ownerReferences")
    kinds = {owner.get("kind") for owner in owners if isinstance(owner, dict)} if isinstance(owners, list) else set()
    status = pod.get("status")
    return bool(kinds & _PER_NODE) or (isinstance(status, dict) and status.get("phase") in _ENDED)


def _clear_binding(pod: Json) -> Json:
    spec = pod.get("spec")
    if not isinstance(spec, dict):
        return pod
    return {**pod, "spec": {**spec, "nodeName": None}, "status": {"phase": "Pending"}}


def _drop_machines(group: GroupEntry) -> GroupEntry:
    return msgspec.structs.replace(group, spec={**group.spec, "target": 0, "min": 0})
