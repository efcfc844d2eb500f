"""TidbClusterAutoScalers, and the fields of TidbClusters that scaling needs (`pingcap.com/v1alpha1`).

`TIDB_RESOURCES` adds them to a client's table of kinds. Code that copies a TidbCluster uses the raw bytes, not this
partial struct. The spelling is mixed on the wire: thresholds in snake_case, all else in camelCase.
"""

# ruff: noqa: D101 - a struct means what the schema of the same name says; docstrings only where that surprises

from typing import Final

import msgspec

from plimsoll.core.values import Int64, Wire
from plimsoll.objects.api.meta import Condition, Json, Quantity, ResourceList, Time, WireObject
from plimsoll.objects.api.resource import Resource

TIDB_GROUP: Final = "pingcap.com"
TIDB_VERSION: Final = "v1alpha1"


class TidbClusterReference(Wire):
    name: str = ""
    namespace: str = ""
    cluster_domain: str = ""


# ---- TidbClusterAutoScaler


class AutoResource(Wire):
    """The sizes of one resource type. Absent differs from zero, because missing values are reported to the user."""

    cpu: Quantity | None = None
    memory: Quantity | None = None
    storage: Quantity | None = None
    count: Int64 | None = None


class AutoRule(Wire):
    max_threshold: float | None = msgspec.field(name="max_threshold", default=None)
    min_threshold: float | None = msgspec.field(name="min_threshold", default=None)
    resource_types: tuple[str, ...] = msgspec.field(name="resource_types", default=())
    resource_type: Json = msgspec.field(name="resource_type", default=None)
    """The design document's spelling: declared only so that it can be refused."""


class SecretReference(Wire):
    name: str = ""
    namespace: str = ""


class ExternalEndpoint(Wire):
    host: str = ""
    port: Int64 = 0
    path: str = ""
    tls_secret: SecretReference | None = None


class ExternalConfig(Wire):
    endpoint: ExternalEndpoint = ExternalEndpoint()
    max_replicas: Int64 | None = None


class ComponentAutoScaler(Wire):
    rules: dict[str, AutoRule] = {}
    resources: dict[str, AutoResource] = {}
    scale_in_interval_seconds: Int64 | None = None
    scale_out_interval_seconds: Int64 | None = None
    external: ExternalConfig | None = None


class TidbClusterAutoScalerSpec(Wire):
    cluster: TidbClusterReference = TidbClusterReference()
    tikv: ComponentAutoScaler | None = None
    tidb: ComponentAutoScaler | None = None
    resources: Json = None
    """The design document's place for them: ignored, with a warning."""


class GroupScalingStatus(Wire):
    """The state of one group; its cooldown starts at `last_auto_scaling_timestamp`."""

    last_auto_scaling_timestamp: Time | None = None
    replicas: Int64 | None = None
    desired_replicas: Int64 | None = None
    last_direction: str = ""
    reason: str = ""
    omitted_count: Int64 = 0
    """The number of consecutive accepted answers without the group."""
    wanted_direction: str = ""
    wanted_count: Int64 = 0
    """The number of consecutive passes that wanted this direction; present only if more than one is needed."""
    last_reversal_timestamp: Time | None = None
    """When the removal of a store was last cancelled: the store is not removed again at once."""
    cluster: str = ""
    """The TidbCluster of the group: it is read by name where a list lacks it."""


class TidbClusterAutoScalerStatus(Wire):
    conditions: tuple[Condition, ...] = ()
    observed_generation: Int64 = 0
    tikv: dict[str, GroupScalingStatus] = {}
    tidb: dict[str, GroupScalingStatus] = {}


class TidbClusterAutoScaler(WireObject):
    spec: TidbClusterAutoScalerSpec = TidbClusterAutoScalerSpec()
    status: TidbClusterAutoScalerStatus = TidbClusterAutoScalerStatus()


# ---- TidbCluster


class TlsCluster(Wire):
    enabled: bool = False


class TidbComponent(Wire):
    """A component of a cluster. `config` is absent, TOML text or a map."""

    replicas: Int64 = 0
    requests: ResourceList = {}
    limits: ResourceList = {}
    config: Json = None
    node_selector: dict[str, str] = {}


class TidbClusterSpec(Wire):
    version: str = ""
    cluster: TidbClusterReference | None = None
    cluster_domain: str = ""
    tls_cluster: TlsCluster = TlsCluster()
    pv_reclaim_policy: str = ""
    enable_pv_reclaim: bool = msgspec.field(name="enablePVReclaim", default=False)
    paused: bool = False
    pd: TidbComponent | None = None
    tikv: TidbComponent | None = None
    tidb: TidbComponent | None = None
    tiflash: TidbComponent | None = None
    ticdc: TidbComponent | None = None
    pump: TidbComponent | None = None


class StatefulSetSummary(Wire):
    replicas: Int64 = 0
    ready_replicas: Int64 = 0


class TikvStore(Wire):
    id: str = ""
    pod_name: str = ""
    ip: str = ""
    leader_count: Int64 = 0
    state: str = ""
    last_heartbeat_time: Time | None = None


class TidbComponentStatus(Wire):
    """The status of a component; only TiKV has stores. A missing `stateful_set` means unknown, not zero replicas."""

    phase: str = ""
    stateful_set: StatefulSetSummary | None = None
    stores: dict[str, TikvStore] = {}
    tombstone_stores: dict[str, TikvStore] = {}
    boot_strapped: bool = False


class TidbClusterStatus(Wire):
    pd: TidbComponentStatus = TidbComponentStatus()
    tikv: TidbComponentStatus = TidbComponentStatus()
    tidb: TidbComponentStatus = TidbComponentStatus()


class TidbCluster(WireObject):
    spec: TidbClusterSpec = TidbClusterSpec()
    status: TidbClusterStatus = TidbClusterStatus()

    @property
    def is_heterogeneous(self) -> bool:
        """Whether it joins the PD of another cluster instead of having its own."""
        return self.spec.cluster is not None and bool(self.spec.cluster.name)


def _build_resource(struct: type[WireObject], plural: str, short_name: str) -> Resource:
    kind = struct.get_kind_name()
    return Resource(
        group=TIDB_GROUP,
        version=TIDB_VERSION,
        kind=kind,
        plural=plural,
        singular=kind.lower(),
        namespaced=True,
        struct=struct,
        short_names=(short_name,),
    )


TIDB_RESOURCES: Final = (
    _build_resource(TidbClusterAutoScaler, "tidbclusterautoscalers", "ta"),
    _build_resource(TidbCluster, "tidbclusters", "tc"),
)
