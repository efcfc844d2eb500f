"""PodDisruptionBudget, PriorityClass and LimitRange."""

# ruff: noqa: D101 - a struct means what the API type of the same name means; docstrings only where that surprises

from plimsoll.core.values import Int64, Wire
from plimsoll.objects.api.meta import Condition, IntOrString, LabelSelector, ResourceList, Time, WireObject


class PodDisruptionBudgetSpec(Wire):
    """An empty selector covers every pod of the namespace, an absent one none."""

    min_available: IntOrString | None = None
    max_unavailable: IntOrString | None = None
    selector: LabelSelector | None = None
    unhealthy_pod_eviction_policy: str = ""


class PodDisruptionBudgetStatus(Wire):
    """`disrupted_pods`: evictions that were granted and not observed yet, by pod name."""

    observed_generation: Int64 = 0
    disruptions_allowed: Int64 = 0
    current_healthy: Int64 = 0
    desired_healthy: Int64 = 0
    expected_pods: Int64 = 0
    disrupted_pods: dict[str, Time] = {}
    conditions: tuple[Condition, ...] = ()


class PodDisruptionBudget(WireObject):
    spec: PodDisruptionBudgetSpec = PodDisruptionBudgetSpec()
    status: PodDisruptionBudgetStatus = PodDisruptionBudgetStatus()


class PriorityClass(WireObject):
    value: Int64 = 0
    global_default: bool = False
    preemption_policy: str = ""
    description: str = ""


class LimitRangeItem(Wire):
    type: str = ""
    min: ResourceList = {}
    max: ResourceList = {}
    default: ResourceList = {}
    default_request: ResourceList = {}
    max_limit_request_ratio: ResourceList = {}


class LimitRangeSpec(Wire):
    limits: tuple[LimitRangeItem, ...] = ()


class LimitRange(WireObject):
    spec: LimitRangeSpec = LimitRangeSpec()
