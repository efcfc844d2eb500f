"""The result of reconciling one TidbClusterAutoScaler.

Conditions, Events, metrics, the journal and the sentence on a terminal are all derived from a `ReconcileResult`, so
that they agree.
"""

from __future__ import annotations

from datetime import datetime  # noqa: TC003 - msgspec reads annotations at run time
from enum import Enum

from plimsoll.core.plans import Reason, Result
from plimsoll.core.values import Value
from plimsoll.objects.api.meta import ObjectReference  # noqa: TC001 - as above
from plimsoll.objects.api.tidb import GroupScalingStatus  # noqa: TC001 - as above
from plimsoll.tidb.model.components import Component  # noqa: TC001 - as above
from plimsoll.tidb.model.field_problem import FieldProblem  # noqa: TC001 - msgspec reads annotations at run time
from plimsoll.tidb.model.planner_answer import CLUSTER_NOT_VISIBLE, NoAnswer
from plimsoll.tidb.model.reconcile_types import Act, CreateGroup, Decision, RaiseBase, Remove


def get_target_cluster(act: Act, *, base: str) -> str:
    """The TidbCluster that an act changes; empty for a cluster that is yet to be created."""
    match act:
        case RaiseBase():
            return base
        case CreateGroup():
            return ""
        case _:
            return act.group


class ActResult(Value):
    """The outcome of an act. `cluster` is the TidbCluster that it changed or created."""

    act: Act
    cluster: str
    result: Result = Result.DONE
    reason: Reason | None = None
    """Set for every outcome except a plain success."""
    is_blocked: bool = False
    """A scale-in that is not safe now, or whose safety is unknown."""
    is_underway: bool = False

    @property
    def is_done(self) -> bool:
        return self.result is Result.DONE


class ComponentResult(Value):
    """The result for one component.

    `is_queried`: a planner or an external service was called. `no_answer`: it gave no usable answer.
    """

    component: Component
    decision: Decision = Decision()
    done: tuple[ActResult, ...] = ()
    status: dict[str, GroupScalingStatus] = {}
    clusters: dict[str, str] = {}
    """Names of the groups' TidbClusters, by key."""
    is_queried: bool = False
    is_external: bool = False
    no_answer: NoAnswer | None = None
    older_autoscaler: str = ""
    """The older autoscaler that scales this component instead."""
    unschedulable: tuple[str, ...] = ()
    """Groups whose pods have been unschedulable for longer than the grace period."""
    problem: str = ""
    """Why the component could not be reconciled to the end."""


class Phase(Enum):
    """How far a reconcile came."""

    ACTED = "acted"
    NO_BASE = "no base cluster"
    INVALID = "invalid"
    UNREADABLE = "unreadable"
    DELETED = "being deleted"


class ReconcileResult(Value):
    """The result for one autoscaler."""

    autoscaler: ObjectReference
    generation: int
    at: datetime
    phase: Phase = Phase.ACTED
    base: str = ""
    """NAMESPACE/NAME of the cluster that is scaled."""
    problems: tuple[FieldProblem, ...] = ()
    warnings: tuple[str, ...] = ()
    components: tuple[ComponentResult, ...] = ()
    pause: Reason | None = None
    """The dry run or pause that prevented actions."""
    message: str = ""
    """The progress of a deletion."""
    is_released: bool = False
    """Nothing of the autoscaler is left: it is gone or about to be."""
    is_starting: bool = False
    """The cluster is new and has not started up yet."""

    @property
    def done(self) -> tuple[ActResult, ...]:
        return tuple(act_done for component in self.components for act_done in component.done)

    @property
    def is_underway(self) -> bool:
        """Whether a change is in progress that should be checked again soon."""
        return any(act_done.is_underway for act_done in self.done)

    @property
    def needs_retry(self) -> bool:
        """Whether to reconcile again at once.

        That is so if an object was changed meanwhile, or if the last group of a deleted autoscaler is gone.
        """
        if self.phase is Phase.DELETED and any(
            isinstance(act_done.act, Remove) and act_done.is_done for act_done in self.done
        ):
            return True
        return any(act_done.result is Result.OVERTAKEN for act_done in self.done)

    @property
    def awaits_cluster(self) -> bool:
        """Whether advice is missing only because the cluster has not started up yet."""
        failed = [
            component_result
            for component_result in self.components
            if component_result.problem or component_result.no_answer is not None
        ]
        is_blind = all(
            component_result.no_answer is not None
            and component_result.no_answer.code in CLUSTER_NOT_VISIBLE
            and not component_result.problem
            for component_result in failed
        )
        return self.is_starting and bool(failed) and is_blind

    @property
    def failures(self) -> tuple[str, ...]:
        """Problems that call for a retry before the next regular reconcile."""
        return tuple(
            f"{result.component}: {result.problem or (result.no_answer.problem if result.no_answer else '')}"
            for result in self.components
            if result.problem or result.no_answer is not None
        )
