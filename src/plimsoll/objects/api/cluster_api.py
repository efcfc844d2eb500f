"""The Cluster API objects that the node autoscaler reads: machines, and the kinds that create them.

Group and version are not fixed (`CAPI_GROUP`, and the version that the management cluster prefers), so the structs are
in no table of kinds: `build_cluster_api_resource` builds a `Resource` for a client. Where v1beta1 and v1beta2 differ, a
struct has the fields of both.
"""

# ruff: noqa: D101 - a struct means what the API type of the same name means; docstrings only where that surprises

from typing import Any, ClassVar, Final

from plimsoll.core.values import Int64, Wire
from plimsoll.objects.api.meta import ObjectReference, Time, WireObject
from plimsoll.objects.api.nodes import Taint
from plimsoll.objects.api.resource import Resource

CLUSTER_API_GROUP: Final = "cluster.x-k8s.io"
MIN_SIZE: Final = "cluster-api-autoscaler-node-group-min-size"
MAX_SIZE: Final = "cluster-api-autoscaler-node-group-max-size"
"""Annotations under the API group: the bounds of a node group, which its autoscaler keeps."""


class TemplateMeta(Wire):
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}


class InfrastructureReference(Wire):
    """A reference, in v1beta1 with `apiVersion`, since v1beta2 with `apiGroup` and its preferred version."""

    api_version: str = ""
    api_group: str = ""
    kind: str = ""
    name: str = ""


class MachineTemplateSpec(Wire):
    infrastructure_ref: InfrastructureReference | None = None
    failure_domain: str = ""
    taints: tuple[Taint, ...] = ()


class MachineTemplate(Wire):
    metadata: TemplateMeta = TemplateMeta()
    spec: MachineTemplateSpec = MachineTemplateSpec()


class ScalableSpec(Wire):
    """The common fields of MachineDeployments, MachineSets and MachinePools, and the instances of a pool."""

    cluster_name: str = ""
    replicas: Int64 | None = None
    template: MachineTemplate = MachineTemplate()
    provider_id_list: tuple[str, ...] = ()


class Scalable(WireObject):
    """Base of the three kinds that can be node groups."""

    spec: ScalableSpec = ScalableSpec()


class MachineDeployment(Scalable):
    pass


class MachineSet(Scalable):
    pass


class MachinePool(Scalable):
    pass


class ClusterApiMachineSpec(Wire):
    cluster_name: str = ""
    provider_id: str = ""


class FailureOfOldKind(Wire):
    failure_reason: str = ""
    failure_message: str = ""


class DeprecatedMachineStatus(Wire):
    v1beta1: FailureOfOldKind = FailureOfOldKind()


class ClusterApiMachineStatus(Wire):
    """Terminal failures; since v1beta2 they are under `deprecated`."""

    node_ref: ObjectReference | None = None
    failure_reason: str = ""
    failure_message: str = ""
    deprecated: DeprecatedMachineStatus = DeprecatedMachineStatus()
    phase: str = ""


class ClusterMachine(WireObject):
    """A Machine; the simulated cloud has a kind of the same name."""

    KIND: ClassVar[str] = "Machine"

    spec: ClusterApiMachineSpec = ClusterApiMachineSpec()
    status: ClusterApiMachineStatus = ClusterApiMachineStatus()

    @property
    def failure(self) -> str:
        """The reason of a permanent failure; empty if there is none."""
        status = self.status
        message = status.failure_message or status.deprecated.v1beta1.failure_message
        return message or status.failure_reason or status.deprecated.v1beta1.failure_reason


class ClusterCondition(Wire):
    """A condition of a Cluster. Only v1beta1 has a severity."""

    type: str = ""
    status: str = ""
    severity: str = ""
    reason: str = ""
    message: str = ""
    last_transition_time: Time | None = None


class ConditionsOfOtherVersion(Wire):
    conditions: tuple[ClusterCondition, ...] = ()


class DeprecatedClusterStatus(Wire):
    v1beta1: ConditionsOfOtherVersion = ConditionsOfOtherVersion()


class ClusterInitialization(Wire):
    infrastructure_provisioned: bool = False
    control_plane_initialized: bool = False


class ReplicaCount(Wire):
    replicas: Int64 | None = None


class WorkloadClusterStatus(Wire):
    """v1beta1 has `controlPlaneReady`, and conditions of the newer form under `v1beta2`. The rest is v1beta2."""

    phase: str = ""
    conditions: tuple[ClusterCondition, ...] = ()
    v1beta2: ConditionsOfOtherVersion = ConditionsOfOtherVersion()
    deprecated: DeprecatedClusterStatus = DeprecatedClusterStatus()
    control_plane_ready: bool = False
    initialization: ClusterInitialization = ClusterInitialization()
    failure_message: str = ""
    failure_domains: Any = None
    """In v1beta1 a map by name, since v1beta2 a list of objects with a name."""
    control_plane: ReplicaCount = ReplicaCount()
    workers: ReplicaCount = ReplicaCount()


class WorkloadCluster(WireObject):
    """A Cluster. Its spec is read from the bytes: lists of machine deployments are written back whole."""

    KIND: ClassVar[str] = "Cluster"

    status: WorkloadClusterStatus = WorkloadClusterStatus()


def build_cluster_api_resource(struct: type[WireObject], *, group: str, version: str) -> Resource:
    kind = struct.get_kind_name()
    return Resource(
        group=group,
        version=version,
        kind=kind,
        plural=f"{kind.lower()}s",
        singular=kind.lower(),
        namespaced=True,
        struct=struct,
    )
