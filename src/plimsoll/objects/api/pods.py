"""Pods and pod templates, as far as scheduling, draining, workload controllers and the simulated kubelet read them.

Environment, probes, security contexts, commands and mounts are left out: they make two thirds of a real pod and decide
nothing here. Kinds that are copied from (PodTemplate) keep their raw bytes beside this view, see `decoding`.
"""

# ruff: noqa: D101 - a struct means what the API type of the same name means; docstrings only where that surprises

from plimsoll.core.values import Int64, Wire
from plimsoll.objects.api.affinity import Affinity, Toleration, TopologySpreadConstraint
from plimsoll.objects.api.meta import ObjectMeta, ResourceList, Time, WireObject
from plimsoll.objects.api.storage import Volume


class ResourceClaim(Wire):
    name: str = ""
    request: str = ""


class ResourceRequirements(Wire):
    requests: ResourceList = {}
    limits: ResourceList = {}
    claims: tuple[ResourceClaim, ...] = ()


class ContainerPort(Wire):
    """`protocol` empty means TCP, `host_ip` empty means every address."""

    name: str = ""
    container_port: Int64 = 0
    host_port: Int64 = 0
    host_ip: str = ""
    protocol: str = ""


class Container(Wire):
    """`restart_policy` Always makes an init container a sidecar; elsewhere it is empty."""

    name: str = ""
    image: str = ""
    image_pull_policy: str = ""
    ports: tuple[ContainerPort, ...] = ()
    resources: ResourceRequirements = ResourceRequirements()
    restart_policy: str = ""


class PodSchedulingGate(Wire):
    name: str = ""


class PodReadinessGate(Wire):
    condition_type: str = ""


class PodResourceClaim(Wire):
    name: str = ""
    resource_claim_name: str = ""
    resource_claim_template_name: str = ""


class PodOS(Wire):
    name: str = ""


class PodSpec(Wire):
    """`resources` absent (None) leaves the need of the pod to its containers; `priority` absent is not priority 0."""

    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()
    resources: ResourceRequirements | None = None
    overhead: ResourceList = {}
    volumes: tuple[Volume, ...] = ()
    node_name: str = ""
    node_selector: dict[str, str] = {}
    affinity: Affinity | None = None
    tolerations: tuple[Toleration, ...] = ()
    topology_spread_constraints: tuple[TopologySpreadConstraint, ...] = ()
    scheduling_gates: tuple[PodSchedulingGate, ...] = ()
    resource_claims: tuple[PodResourceClaim, ...] = ()
    readiness_gates: tuple[PodReadinessGate, ...] = ()
    scheduler_name: str = ""
    priority: Int64 | None = None
    priority_class_name: str = ""
    preemption_policy: str = ""
    runtime_class_name: str = ""
    service_account_name: str = ""
    os: PodOS | None = None
    host_network: bool = False
    hostname: str = ""
    subdomain: str = ""
    restart_policy: str = ""
    active_deadline_seconds: Int64 | None = None
    termination_grace_period_seconds: Int64 | None = None


class PodCondition(Wire):
    type: str = ""
    status: str = ""
    last_transition_time: Time | None = None
    reason: str = ""
    message: str = ""
    observed_generation: Int64 = 0


class ContainerStateWaiting(Wire):
    reason: str = ""
    message: str = ""


class ContainerStateRunning(Wire):
    started_at: Time | None = None


class ContainerStateTerminated(Wire):
    exit_code: Int64 = 0
    reason: str = ""
    message: str = ""
    started_at: Time | None = None
    finished_at: Time | None = None


class ContainerState(Wire):
    waiting: ContainerStateWaiting | None = None
    running: ContainerStateRunning | None = None
    terminated: ContainerStateTerminated | None = None


class ContainerStatus(Wire):
    """`allocated_resources` and `resources` say what an in-place resize has granted so far."""

    name: str = ""
    ready: bool = False
    started: bool | None = None
    restart_count: Int64 = 0
    state: ContainerState = ContainerState()
    last_state: ContainerState = ContainerState()
    allocated_resources: ResourceList = {}
    resources: ResourceRequirements | None = None
    image: str = ""
    image_id: str = ""
    container_id: str = ""


class PodIP(Wire):
    ip: str = ""


class PodStatus(Wire):
    phase: str = ""
    conditions: tuple[PodCondition, ...] = ()
    reason: str = ""
    message: str = ""
    nominated_node_name: str = ""
    host_ip: str = ""
    pod_ip: str = ""
    pod_ips: tuple[PodIP, ...] = ()
    start_time: Time | None = None
    init_container_statuses: tuple[ContainerStatus, ...] = ()
    container_statuses: tuple[ContainerStatus, ...] = ()
    qos_class: str = ""
    resize: str = ""
    observed_generation: Int64 = 0


class Pod(WireObject):
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()


class PodTemplateSpec(Wire):
    metadata: ObjectMeta = ObjectMeta()
    spec: PodSpec = PodSpec()


class PodTemplate(WireObject):
    template: PodTemplateSpec = PodTemplateSpec()


def is_pod_ready(pod: Pod) -> bool:
    """Whether the Ready condition is True. A pod without the condition is not ready."""
    # A plain loop: workload controllers check all pods of a set in every pass.
    for condition in pod.status.conditions:
        if condition.type == "Ready":
            return condition.status == "True"
    return False
