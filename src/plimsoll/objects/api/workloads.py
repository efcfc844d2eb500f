"""Workloads: Deployment, ReplicaSet, StatefulSet, DaemonSet, ReplicationController, Job, ControllerRevision.

The simulated controllers run them; the node autoscaler reads the owners of pods and the templates of daemon sets. A
selector may be absent (None) although the API requires it: a missing selector must not select everything.
"""

# ruff: noqa: D101 - a struct means what the API type of the same name means; docstrings only where that surprises

from plimsoll.core.values import Int64, Wire
from plimsoll.objects.api.meta import IntOrString, Json, LabelSelector, Time, WireObject
from plimsoll.objects.api.pods import PodTemplateSpec
from plimsoll.objects.api.storage import PersistentVolumeClaim


class DeploymentCondition(Wire):
    type: str = ""
    status: str = ""
    last_update_time: Time | None = None
    last_transition_time: Time | None = None
    reason: str = ""
    message: str = ""


class RollingUpdateDeployment(Wire):
    max_unavailable: IntOrString | None = None
    max_surge: IntOrString | None = None


class DeploymentStrategy(Wire):
    type: str = ""
    rolling_update: RollingUpdateDeployment | None = None


class DeploymentSpec(Wire):
    replicas: Int64 | None = None
    selector: LabelSelector | None = None
    template: PodTemplateSpec = PodTemplateSpec()
    strategy: DeploymentStrategy = DeploymentStrategy()
    min_ready_seconds: Int64 = 0
    progress_deadline_seconds: Int64 | None = None
    revision_history_limit: Int64 | None = None
    paused: bool = False


class DeploymentStatus(Wire):
    observed_generation: Int64 = 0
    replicas: Int64 = 0
    updated_replicas: Int64 = 0
    ready_replicas: Int64 = 0
    available_replicas: Int64 = 0
    unavailable_replicas: Int64 = 0
    terminating_replicas: Int64 | None = None
    collision_count: Int64 | None = None
    conditions: tuple[DeploymentCondition, ...] = ()


class Deployment(WireObject):
    spec: DeploymentSpec = DeploymentSpec()
    status: DeploymentStatus = DeploymentStatus()


class ReplicaSetCondition(Wire):
    type: str = ""
    status: str = ""
    last_transition_time: Time | None = None
    reason: str = ""
    message: str = ""


class ReplicaSetSpec(Wire):
    replicas: Int64 | None = None
    selector: LabelSelector | None = None
    template: PodTemplateSpec = PodTemplateSpec()
    min_ready_seconds: Int64 = 0


class ReplicaSetStatus(Wire):
    observed_generation: Int64 = 0
    replicas: Int64 = 0
    fully_labeled_replicas: Int64 = 0
    ready_replicas: Int64 = 0
    available_replicas: Int64 = 0
    terminating_replicas: Int64 | None = None
    conditions: tuple[ReplicaSetCondition, ...] = ()


class ReplicaSet(WireObject):
    spec: ReplicaSetSpec = ReplicaSetSpec()
    status: ReplicaSetStatus = ReplicaSetStatus()


class ReplicationControllerSpec(Wire):
    """Older than label selectors: its selector is a plain map of labels."""

    replicas: Int64 | None = None
    selector: dict[str, str] = {}
    template: PodTemplateSpec | None = None
    min_ready_seconds: Int64 = 0


class ReplicationControllerStatus(Wire):
    observed_generation: Int64 = 0
    replicas: Int64 = 0
    ready_replicas: Int64 = 0
    available_replicas: Int64 = 0


class ReplicationController(WireObject):
    spec: ReplicationControllerSpec = ReplicationControllerSpec()
    status: ReplicationControllerStatus = ReplicationControllerStatus()


class StatefulSetOrdinals(Wire):
    start: Int64 = 0


class StatefulSetPersistentVolumeClaimRetentionPolicy(Wire):
    when_deleted: str = ""
    when_scaled: str = ""


class RollingUpdateStatefulSetStrategy(Wire):
    partition: Int64 = 0
    max_unavailable: IntOrString | None = None


class StatefulSetUpdateStrategy(Wire):
    type: str = ""
    rolling_update: RollingUpdateStatefulSetStrategy | None = None


class StatefulSetCondition(Wire):
    type: str = ""
    status: str = ""
    last_transition_time: Time | None = None
    reason: str = ""
    message: str = ""


class StatefulSetSpec(Wire):
    replicas: Int64 | None = None
    selector: LabelSelector | None = None
    template: PodTemplateSpec = PodTemplateSpec()
    service_name: str = ""
    pod_management_policy: str = ""
    update_strategy: StatefulSetUpdateStrategy = StatefulSetUpdateStrategy()
    ordinals: StatefulSetOrdinals | None = None
    volume_claim_templates: tuple[PersistentVolumeClaim, ...] = ()
    persistent_volume_claim_retention_policy: StatefulSetPersistentVolumeClaimRetentionPolicy | None = None
    min_ready_seconds: Int64 = 0
    revision_history_limit: Int64 | None = None


class StatefulSetStatus(Wire):
    observed_generation: Int64 = 0
    replicas: Int64 = 0
    ready_replicas: Int64 = 0
    current_replicas: Int64 = 0
    updated_replicas: Int64 = 0
    available_replicas: Int64 = 0
    current_revision: str = ""
    update_revision: str = ""
    collision_count: Int64 | None = None
    conditions: tuple[StatefulSetCondition, ...] = ()


class StatefulSet(WireObject):
    spec: StatefulSetSpec = StatefulSetSpec()
    status: StatefulSetStatus = StatefulSetStatus()


class RollingUpdateDaemonSet(Wire):
    max_unavailable: IntOrString | None = None
    max_surge: IntOrString | None = None


class DaemonSetUpdateStrategy(Wire):
    type: str = ""
    rolling_update: RollingUpdateDaemonSet | None = None


class DaemonSetCondition(Wire):
    type: str = ""
    status: str = ""
    last_transition_time: Time | None = None
    reason: str = ""
    message: str = ""


class DaemonSetSpec(Wire):
    selector: LabelSelector | None = None
    template: PodTemplateSpec = PodTemplateSpec()
    update_strategy: DaemonSetUpdateStrategy = DaemonSetUpdateStrategy()
    min_ready_seconds: Int64 = 0
    revision_history_limit: Int64 | None = None


class DaemonSetStatus(Wire):
    observed_generation: Int64 = 0
    desired_number_scheduled: Int64 = 0
    current_number_scheduled: Int64 = 0
    updated_number_scheduled: Int64 = 0
    number_ready: Int64 = 0
    number_available: Int64 = 0
    number_unavailable: Int64 = 0
    number_misscheduled: Int64 = 0
    collision_count: Int64 | None = None
    conditions: tuple[DaemonSetCondition, ...] = ()


class DaemonSet(WireObject):
    spec: DaemonSetSpec = DaemonSetSpec()
    status: DaemonSetStatus = DaemonSetStatus()


class ControllerRevision(WireObject):
    """A former template of a stateful or daemon set. `data` is the patch that restores it."""

    data: Json = None
    revision: Int64 = 0


class JobCondition(Wire):
    type: str = ""
    status: str = ""
    last_probe_time: Time | None = None
    last_transition_time: Time | None = None
    reason: str = ""
    message: str = ""


class PodFailurePolicyOnExitCodesRequirement(Wire):
    """Exit codes other than 0 of containers; without a name, of any container."""

    container_name: str | None = None
    operator: str = ""
    values: tuple[Int64, ...] = ()


class PodFailurePolicyOnPodConditionsPattern(Wire):
    type: str = ""
    status: str = "True"


class PodFailurePolicyRule(Wire):
    action: str = ""
    on_exit_codes: PodFailurePolicyOnExitCodesRequirement | None = None
    on_pod_conditions: tuple[PodFailurePolicyOnPodConditionsPattern, ...] = ()


class PodFailurePolicy(Wire):
    rules: tuple[PodFailurePolicyRule, ...] = ()


class SuccessPolicyRule(Wire):
    succeeded_indexes: str | None = None
    succeeded_count: Int64 | None = None


class SuccessPolicy(Wire):
    rules: tuple[SuccessPolicyRule, ...] = ()


class JobSpec(Wire):
    """`completions` absent and `parallelism` set make a work queue: any pod that succeeds ends the job."""

    parallelism: Int64 | None = None
    completions: Int64 | None = None
    completion_mode: str = ""
    backoff_limit: Int64 | None = None
    backoff_limit_per_index: Int64 | None = None
    max_failed_indexes: Int64 | None = None
    pod_failure_policy: PodFailurePolicy | None = None
    success_policy: SuccessPolicy | None = None
    active_deadline_seconds: Int64 | None = None
    ttl_seconds_after_finished: Int64 | None = None
    suspend: bool = False
    managed_by: str = ""
    pod_replacement_policy: str = ""
    manual_selector: bool = False
    selector: LabelSelector | None = None
    template: PodTemplateSpec = PodTemplateSpec()


class UncountedTerminatedPods(Wire):
    """Uids of pods that ended and are not in `succeeded` or `failed` yet: the book that makes counting safe."""

    succeeded: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()


class JobStatus(Wire):
    active: Int64 = 0
    ready: Int64 | None = None
    terminating: Int64 | None = None
    succeeded: Int64 = 0
    failed: Int64 = 0
    completed_indexes: str = ""
    failed_indexes: str | None = None
    uncounted_terminated_pods: UncountedTerminatedPods | None = None
    start_time: Time | None = None
    completion_time: Time | None = None
    conditions: tuple[JobCondition, ...] = ()


class Job(WireObject):
    spec: JobSpec = JobSpec()
    status: JobStatus = JobStatus()
