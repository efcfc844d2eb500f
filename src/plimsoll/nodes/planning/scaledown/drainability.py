"""Whether a pod may be evicted from its node: the rules of docs/design/nodes.md 6.8, in their order. First match wins.

`DrainRules(...).check(pod)` decides about one pod. The scale-down planner asks once per pod kind, and counts the
disruption budgets over all pods. Codes are Cluster Autoscaler's words for blocking pods. Pure: the time and the
controllers are parameters.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from plimsoll.core.durations import add_seconds
from plimsoll.nodes.model.pod_traits import (
    KUBE_SYSTEM,
    SAFE_LOCAL_VOLUMES,
    SAFE_TO_EVICT,
    is_daemon_pod,
    is_mirror_pod,
    list_local_volumes,
)
from plimsoll.nodes.model.reasons import WAITS_FOR_COMPLETION
from plimsoll.nodes.planning.scaledown.pdbs import RemainingPdbs
from plimsoll.objects.owners import find_controller

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime

    from plimsoll.nodes.config.policy import ScaleDown
    from plimsoll.objects.api.meta import OwnerReference
    from plimsoll.objects.api.pods import Pod

ON_COMPLETION: Final = "on-completion"

CONTROLLER_NOT_FOUND: Final = "ControllerNotFound"
MIN_REPLICAS_REACHED: Final = "MinReplicasReached"
NOT_REPLICATED: Final = "NotReplicated"
LOCAL_STORAGE: Final = "LocalStorageRequested"
NOT_SAFE_TO_EVICT: Final = "NotSafeToEvictAnnotation"
SYSTEM_POD: Final = "UnmovableKubeSystemPod"
NOT_ENOUGH_PDB: Final = "NotEnoughPdb"

TERMINATION_HEADROOM_S: Final = 30
_DEFAULT_GRACE_S: Final = 30
_REPLICATING: Final = frozenset({"ReplicationController", "Job", "ReplicaSet", "StatefulSet"})
_COUNTED: Final = frozenset({"ReplicationController", "ReplicaSet"})
_ENDED: Final = frozenset({"Succeeded", "Failed"})


class DrainOutcome(StrEnum):
    """What happens to a pod when its node is removed."""

    SKIP = "skip"
    """It is not evicted, and nothing waits for it."""
    MOVE = "move"
    """It is evicted and needs a place elsewhere."""
    LET_GO = "let-go"
    """It may be evicted and is not rescheduled: a daemon pod, or a terminated pod."""
    WAIT = "wait"
    """The node stays until the pod has ended by itself."""
    BLOCK = "block"


@dataclass(frozen=True, slots=True, kw_only=True)
class DrainabilityStatus:
    """The status of one pod; `code` and `message` are set if it blocks the removal of its node."""

    outcome: DrainOutcome
    code: str = ""
    message: str = ""

    @property
    def blocks_node(self) -> bool:
        return self.outcome is DrainOutcome.BLOCK or self.outcome is DrainOutcome.WAIT


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerInfo:
    """What is known about a pod's controller."""

    exists: bool = True
    replicas: int | None = None
    """The replicas of its spec, if it has any."""


ControllerKey = tuple[str, str, str]
"""Namespace, kind, name."""

UNKNOWN: Final = ControllerInfo()
"""Not looked up: it counts as existing, with enough replicas."""


def is_overdue(pod: Pod, now: datetime) -> bool:
    """Whether the pod has been terminating for longer than its grace period plus a margin; it then blocks nothing."""
    deleted_at = pod.metadata.deletion_timestamp
    if deleted_at is None:
        return False
    grace = pod.spec.termination_grace_period_seconds
    # Kubernetes has added the grace period to the timestamp already; Cluster Autoscaler adds it once more, so do we.
    patience = TERMINATION_HEADROOM_S + (_DEFAULT_GRACE_S if grace is None else grace)
    return add_seconds(deleted_at, patience) < now


@dataclass(frozen=True, slots=True, kw_only=True)
class DrainRules:
    """The twelve rules under one policy at one time."""

    options: ScaleDown
    now: datetime
    pdbs: RemainingPdbs = field(default_factory=RemainingPdbs)
    controllers: Mapping[ControllerKey, ControllerInfo] = field(default_factory=dict)

    def check(self, pod: Pod) -> DrainabilityStatus:
        found = self.check_without_pdbs(pod)
        if found is not None:
            return found
        closed = (pdb for pdb in self.pdbs.find_matching(pod) if self.pdbs.allowed[pdb] < 1)
        return next(map(self.block_for_exhausted_pdb, closed), MOVE)

    def check_without_pdbs(self, pod: Pod) -> DrainabilityStatus | None:
        """The status by every rule but the last; None: the disruption budgets decide."""
        for rule in _RULES:
            found = rule(self, pod)
            if found is not None:
                return found
        return None

    def block_for_exhausted_pdb(self, pdb: int) -> DrainabilityStatus:
        """The last rule: the budget allows no disruption."""
        return _build_blocked_status(NOT_ENOUGH_PDB, f"disruption budget {self.pdbs.get_name(pdb)} lets no pod go")

    def find_controller(self, pod: Pod, owner: OwnerReference) -> ControllerInfo:
        return self.controllers.get((pod.metadata.namespace, owner.kind, owner.name), UNKNOWN)


MOVE: Final = DrainabilityStatus(outcome=DrainOutcome.MOVE)
_SKIP: Final = DrainabilityStatus(outcome=DrainOutcome.SKIP)
_LET_GO: Final = DrainabilityStatus(outcome=DrainOutcome.LET_GO)


def _build_blocked_status(code: str, why: str) -> DrainabilityStatus:
    return DrainabilityStatus(outcome=DrainOutcome.BLOCK, code=code, message=why)


# ---- the rules; None: the rule does not apply


def _check_mirror(_: DrainRules, pod: Pod) -> DrainabilityStatus | None:
    return _SKIP if is_mirror_pod(pod) else None


def _check_overdue(rules: DrainRules, pod: Pod) -> DrainabilityStatus | None:
    return _SKIP if is_overdue(pod, rules.now) else None


def _check_controller(rules: DrainRules, pod: Pod) -> DrainabilityStatus | None:
    owner = find_controller(pod.metadata)
    if owner is None:
        return None
    known = rules.find_controller(pod, owner)
    if not known.exists:
        return _build_blocked_status(CONTROLLER_NOT_FOUND, f"its {owner.kind} {owner.name} does not exist")
    least = rules.options.min_replica_count
    if owner.kind in _COUNTED and known.replicas is not None and known.replicas < least:
        why = f"its {owner.kind} {owner.name} has {known.replicas} replicas, less than {least}"
        return _build_blocked_status(MIN_REPLICAS_REACHED, why)
    return None


def _check_daemon(_: DrainRules, pod: Pod) -> DrainabilityStatus | None:
    return _LET_GO if is_daemon_pod(pod) else None


def _check_safe_to_evict(_: DrainRules, pod: Pod) -> DrainabilityStatus | None:
    return MOVE if pod.metadata.annotations.get(SAFE_TO_EVICT) == "true" else None


def _check_terminal(_: DrainRules, pod: Pod) -> DrainabilityStatus | None:
    return _LET_GO if pod.status.phase in _ENDED else None


def _check_on_completion(_: DrainRules, pod: Pod) -> DrainabilityStatus | None:
    if pod.metadata.annotations.get(SAFE_TO_EVICT) != ON_COMPLETION:
        return None
    return DrainabilityStatus(
        outcome=DrainOutcome.WAIT, code=WAITS_FOR_COMPLETION, message="it may go only when it has completed"
    )


def _check_replicated(rules: DrainRules, pod: Pod) -> DrainabilityStatus | None:
    owner = find_controller(pod.metadata)
    if owner is None:
        return _build_blocked_status(NOT_REPLICATED, "it has no controller that would make it again")
    if owner.kind in _REPLICATING or not rules.options.skip_custom_controllers:
        return None
    return _build_blocked_status(NOT_REPLICATED, f"its controller is a {owner.kind}")


def _check_system(rules: DrainRules, pod: Pod) -> DrainabilityStatus | None:
    if pod.metadata.namespace != KUBE_SYSTEM or not rules.options.skip_system_pods or rules.pdbs.find_matching(pod):
        return None
    created = pod.metadata.creation_timestamp
    if created is not None and add_seconds(created, rules.options.system_pod_timeout_s) < rules.now:
        return None
    return _build_blocked_status(SYSTEM_POD, "it is a young system pod without a disruption budget")


def _check_unsafe_to_evict(_: DrainRules, pod: Pod) -> DrainabilityStatus | None:
    if pod.metadata.annotations.get(SAFE_TO_EVICT) != "false":
        return None
    return _build_blocked_status(NOT_SAFE_TO_EVICT, 'it is annotated safe-to-evict "false"')


def _check_local_storage(rules: DrainRules, pod: Pod) -> DrainabilityStatus | None:
    if not rules.options.skip_local_storage:
        return None
    listed = pod.metadata.annotations.get(SAFE_LOCAL_VOLUMES, "")
    safe = {name.strip() for name in listed.split(",")}
    at_risk = [name for name in list_local_volumes(pod) if name not in safe]
    return _build_blocked_status(LOCAL_STORAGE, f"it has local storage ({', '.join(at_risk)})") if at_risk else None


_RULES: Final[tuple[Callable[[DrainRules, Pod], DrainabilityStatus | None], ...]] = (
    _check_mirror,
    _check_overdue,
    _check_controller,
    _check_daemon,
    _check_safe_to_evict,
    _check_terminal,
    _check_on_completion,
    _check_replicated,
    _check_system,
    _check_unsafe_to_evict,
    _check_local_storage,
)
