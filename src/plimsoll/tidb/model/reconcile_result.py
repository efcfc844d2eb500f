"""What came of one pass over a TidbClusterAutoScaler: the words between acting and telling.

Everything that conditions, events, metrics, the journal and the sentence on a terminal say stands in a
`ReconcileResult`, so that no two of them tell different stories.
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
from plimsoll.tidb.model.planner_answer import BLIND, NoAnswer
from plimsoll.tidb.model.reconcile_types import Act, CreateGroup, Decided, RaiseBase, Remove


def cluster_of(act: Act, *, base: str) -> str:
    """The TidbCluster that an act is about; nothing, of one that is yet to be made."""
    match act:
        case RaiseBase():
            return base
        case CreateGroup():
            return ""
        case _:
            return act.group


class ActDone(Value):
    """What became of an act. `cluster` is the TidbCluster it was about, or that it made."""

    act: Act
    cluster: str
    result: Result = Result.DONE
    reason: Reason | None = None
    """Given for everything but a plain success."""
    is_blocked: bool = False
    """A scale-in that is not safe now, or of which nobody can say whether it is."""
    is_underway: bool = False

    @property
    def is_done(self) -> bool:
        return self.result is Result.DONE


class ComponentResult(Value):
    """Of one component. `asked`: a planner, or an external service, was asked; `no_answer`: in vain."""

    component: Component
    decided: Decided = Decided()
    done: tuple[ActDone, ...] = ()
    status: dict[str, GroupScalingStatus] = {}
    clusters: dict[str, str] = {}
    """Names of the TidbClusters that stand for groups, by key."""
    asked: bool = False
    is_external: bool = False
    no_answer: NoAnswer | None = None
    rival: str = ""
    """The older autoscaler that scales it instead."""
    waiting: tuple[str, ...] = ()
    """Groups whose pods have found no node for longer than the grace."""
    problem: str = ""
    """Why it could not be brought to its end."""


class Phase(Enum):
    """How far a pass came."""

    ACTED = "acted"
    NO_BASE = "no base cluster"
    INVALID = "invalid"
    DELETED = "being deleted"


class ReconcileResult(Value):
    """`about` is the autoscaler."""

    about: ObjectReference
    generation: int
    at: datetime
    standing: Phase = Phase.ACTED
    base: str = ""
    """NAMESPACE/NAME of the cluster that is scaled."""
    problems: tuple[FieldProblem, ...] = ()
    warnings: tuple[str, ...] = ()
    components: tuple[ComponentResult, ...] = ()
    brake: Reason | None = None
    """What kept it from acting."""
    told: str = ""
    """Of a deletion: how far it is."""
    is_released: bool = False
    """Nothing of it is left; it is gone, or about to be."""
    is_starting: bool = False
    """The cluster is new and has not come up yet."""

    @property
    def done(self) -> tuple[ActDone, ...]:
        return tuple(act_done for component in self.components for act_done in component.done)

    @property
    def is_underway(self) -> bool:
        """Something wants to be looked at again soon."""
        return any(act_done.is_underway for act_done in self.done)

    @property
    def wants_another(self) -> bool:
        """All of it is to be looked at anew, now: somebody wrote to what was to be changed, or the last is done."""
        if self.standing is Phase.DELETED and any(
            isinstance(act_done.act, Remove) and act_done.is_done for act_done in self.done
        ):
            return True
        return any(act_done.result is Result.OVERTAKEN for act_done in self.done)

    @property
    def awaits_cluster(self) -> bool:
        """There is no advice, and no trouble either: the planner cannot say anything before the cluster is up."""
        failed = [
            component_result
            for component_result in self.components
            if component_result.problem or component_result.no_answer is not None
        ]
        is_blind = all(
            component_result.no_answer is not None
            and component_result.no_answer.code in BLIND
            and not component_result.problem
            for component_result in failed
        )
        return self.is_starting and bool(failed) and is_blind

    @property
    def failures(self) -> tuple[str, ...]:
        """What asks for another try, sooner than the next regular pass."""
        return tuple(
            f"{result.component}: {result.problem or (result.no_answer.problem if result.no_answer else '')}"
            for result in self.components
            if result.problem or result.no_answer is not None
        )
