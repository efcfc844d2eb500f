"""Storage: volumes of pods, claims, persistent volumes, storage classes, and the attachment limits of nodes.

A volume source has only the fields that decide where a pod may run: ids that must not be attached twice, drivers whose
attachments are counted, and fields that make data local to a node. Config maps, secrets and the like can be mounted
anywhere, so such a volume is only a name.
"""

# ruff: noqa: D101 - a struct means what the API type of the same name means; docstrings only where that surprises

from typing import Final

from plimsoll.core.values import Int64, Wire
from plimsoll.objects.api.affinity import NodeSelector
from plimsoll.objects.api.meta import (
    LabelSelector,
    ObjectMeta,
    ObjectReference,
    Quantity,
    ResourceList,
    Time,
    WireObject,
)


class VolumeResourceRequirements(Wire):
    requests: ResourceList = {}
    limits: ResourceList = {}


class PersistentVolumeClaimSpec(Wire):
    """An absent `storage_class_name` means the default class, an empty one no class."""

    access_modes: tuple[str, ...] = ()
    resources: VolumeResourceRequirements = VolumeResourceRequirements()
    storage_class_name: str | None = None
    volume_mode: str = ""
    volume_name: str = ""
    selector: LabelSelector | None = None


class PersistentVolumeClaimCondition(Wire):
    type: str = ""
    status: str = ""
    last_transition_time: Time | None = None
    reason: str = ""
    message: str = ""


class PersistentVolumeClaimStatus(Wire):
    phase: str = ""
    access_modes: tuple[str, ...] = ()
    capacity: ResourceList = {}
    conditions: tuple[PersistentVolumeClaimCondition, ...] = ()


class PersistentVolumeClaim(WireObject):
    spec: PersistentVolumeClaimSpec = PersistentVolumeClaimSpec()
    status: PersistentVolumeClaimStatus = PersistentVolumeClaimStatus()


class PersistentVolumeClaimTemplate(Wire):
    metadata: ObjectMeta = ObjectMeta()
    spec: PersistentVolumeClaimSpec = PersistentVolumeClaimSpec()


class PersistentVolumeClaimVolumeSource(Wire):
    claim_name: str = ""
    read_only: bool = False


class EphemeralVolumeSource(Wire):
    """A claim of one pod, named `<pod>-<volume>`."""

    volume_claim_template: PersistentVolumeClaimTemplate | None = None


class EmptyDirVolumeSource(Wire):
    """`medium` Memory is not local storage: its loss with the node is expected."""

    medium: str = ""
    size_limit: Quantity | None = None


class HostPathVolumeSource(Wire):
    path: str = ""
    type: str = ""


class ProjectedVolumeSource(Wire):
    """Only its presence matters: the equivalence of pods ignores projected volumes, because their names are random."""


class CSIVolumeSource(Wire):
    driver: str = ""
    read_only: bool = False


class AWSElasticBlockStoreVolumeSource(Wire):
    volume_id: str = ""
    partition: Int64 = 0
    read_only: bool = False


class GCEPersistentDiskVolumeSource(Wire):
    pd_name: str = ""
    partition: Int64 = 0
    read_only: bool = False


class AzureDiskVolumeSource(Wire):
    disk_name: str = ""
    disk_uri: str = ""
    read_only: bool = False


class CinderVolumeSource(Wire):
    volume_id: str = ""
    read_only: bool = False


class VsphereVirtualDiskVolumeSource(Wire):
    volume_path: str = ""


class ISCSIVolumeSource(Wire):
    target_portal: str = ""
    iqn: str = ""
    lun: Int64 = 0
    read_only: bool = False


class RBDVolumeSource(Wire):
    monitors: tuple[str, ...] = ()
    pool: str = ""
    image: str = ""
    read_only: bool = False


class Volume(Wire):
    """A volume of a pod: one source is set, or none if it is of a kind that does not matter for placement."""

    name: str = ""
    persistent_volume_claim: PersistentVolumeClaimVolumeSource | None = None
    ephemeral: EphemeralVolumeSource | None = None
    empty_dir: EmptyDirVolumeSource | None = None
    host_path: HostPathVolumeSource | None = None
    projected: ProjectedVolumeSource | None = None
    csi: CSIVolumeSource | None = None
    aws_elastic_block_store: AWSElasticBlockStoreVolumeSource | None = None
    gce_persistent_disk: GCEPersistentDiskVolumeSource | None = None
    azure_disk: AzureDiskVolumeSource | None = None
    cinder: CinderVolumeSource | None = None
    vsphere_volume: VsphereVirtualDiskVolumeSource | None = None
    iscsi: ISCSIVolumeSource | None = None
    rbd: RBDVolumeSource | None = None


class CSIPersistentVolumeSource(Wire):
    driver: str = ""
    volume_handle: str = ""
    read_only: bool = False


class CinderPersistentVolumeSource(Wire):
    volume_id: str = ""
    read_only: bool = False


class LocalVolumeSource(Wire):
    path: str = ""


class VolumeNodeAffinity(Wire):
    required: NodeSelector | None = None


class PersistentVolumeSpec(Wire):
    access_modes: tuple[str, ...] = ()
    capacity: ResourceList = {}
    claim_ref: ObjectReference | None = None
    node_affinity: VolumeNodeAffinity | None = None
    persistent_volume_reclaim_policy: str = ""
    storage_class_name: str = ""
    volume_mode: str = ""
    csi: CSIPersistentVolumeSource | None = None
    local: LocalVolumeSource | None = None
    host_path: HostPathVolumeSource | None = None
    aws_elastic_block_store: AWSElasticBlockStoreVolumeSource | None = None
    gce_persistent_disk: GCEPersistentDiskVolumeSource | None = None
    azure_disk: AzureDiskVolumeSource | None = None
    cinder: CinderPersistentVolumeSource | None = None
    vsphere_volume: VsphereVirtualDiskVolumeSource | None = None


class PersistentVolumeStatus(Wire):
    phase: str = ""
    reason: str = ""
    message: str = ""


class PersistentVolume(WireObject):
    spec: PersistentVolumeSpec = PersistentVolumeSpec()
    status: PersistentVolumeStatus = PersistentVolumeStatus()


class TopologySelectorLabelRequirement(Wire):
    key: str = ""
    values: tuple[str, ...] = ()


class TopologySelectorTerm(Wire):
    match_label_expressions: tuple[TopologySelectorLabelRequirement, ...] = ()


# Either makes a class the default; the older name is still accepted.
DEFAULT_CLASS_ANNOTATIONS: Final = (
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
)


class StorageClass(WireObject):
    provisioner: str = ""
    parameters: dict[str, str] = {}
    reclaim_policy: str = ""
    volume_binding_mode: str = ""
    allowed_topologies: tuple[TopologySelectorTerm, ...] = ()
    allow_volume_expansion: bool = False


class VolumeNodeResources(Wire):
    """`count` absent means that the driver sets no limit; 0 means that nothing can be attached."""

    count: Int64 | None = None


class CSINodeDriver(Wire):
    name: str = ""
    node_id: str = ""
    topology_keys: tuple[str, ...] = ()
    allocatable: VolumeNodeResources | None = None


class CSINodeSpec(Wire):
    drivers: tuple[CSINodeDriver, ...] = ()


class CSINode(WireObject):
    spec: CSINodeSpec = CSINodeSpec()
