"""The fields of Strimzi's resources that rebalancing needs (`kafka.strimzi.io`, `core.strimzi.io`), in version v1.

`KAFKA_RESOURCES` adds them to a client's table of kinds. What users write and may write wrongly is `Json` here and is
read, with the path of the field, in `kafka.wire`: an object with a wrong field stays visible and gets a condition.
"""

# ruff: noqa: D101 - a struct means what the schema of the same name says; docstrings only where that surprises

from typing import Final

import msgspec

from plimsoll.core.values import Int64, Wire
from plimsoll.objects.api.meta import Condition, Json, LabelSelector, Time, WireObject
from plimsoll.objects.api.resource import Resource

KAFKA_GROUP: Final = "kafka.strimzi.io"
POD_SET_GROUP: Final = "core.strimzi.io"
STRIMZI_VERSION: Final = "v1"


# ---- Kafka


class KafkaTemplate(Wire):
    pod: Json = None


class KafkaClusterSpec(Wire):
    """`replicas` and `storage` are fields of v1beta2, for clusters without node pools."""

    version: str = ""
    metadata_version: str = ""
    replicas: Int64 | None = None
    storage: Json = None
    resources: Json = None
    config: Json = None
    listeners: Json = None
    rack: Json = None
    template: KafkaTemplate = KafkaTemplate()


class CruiseControlSpec(Wire):
    auto_rebalance: Json = None
    broker_capacity: Json = None
    config: Json = None


class KafkaSpec(Wire):
    kafka: KafkaClusterSpec = KafkaClusterSpec()
    cruise_control: CruiseControlSpec | None = None


class AutoRebalanceStatus(Wire):
    """The design's view, `status.cruiseControl.autoRebalance`, with the hints that recovery needs."""

    state: str = ""
    add_brokers: tuple[Int64, ...] = msgspec.field(name="add-brokers", default=())
    remove_brokers: tuple[Int64, ...] = msgspec.field(name="remove-brokers", default=())
    running: str = ""
    """The mode of the KafkaRebalance that runs; empty: none."""
    rebalance_uid: str = msgspec.field(name="rebalanceUid", default="")
    leaving_brokers: tuple[Int64, ...] = ()
    requested_brokers: tuple[Int64, ...] = ()
    stopping: bool = False
    moved: bool = False
    attempts: Int64 = 0
    remaining_replicas: Int64 | None = None
    next_retry_time: Time | None = None
    last_transition_time: Time | None = None


class CruiseControlStatus(Wire):
    auto_rebalance: AutoRebalanceStatus | None = None


class AutoRebalanceMode(Wire):
    mode: str = ""
    brokers: tuple[Int64, ...] = ()


class AutoRebalanceSummary(Wire):
    """Strimzi's view, `status.autoRebalance`."""

    state: str = ""
    last_transition_time: Time | None = None
    modes: tuple[AutoRebalanceMode, ...] = ()


class UsedNodePool(Wire):
    name: str = ""


class KafkaStatus(Wire):
    conditions: tuple[Condition, ...] = ()
    observed_generation: Int64 = 0
    kafka_version: str = ""
    kafka_metadata_version: str = ""
    cluster_id: str = msgspec.field(name="clusterId", default="")
    cluster_security: Json = None
    kafka_node_pools: tuple[UsedNodePool, ...] = ()
    registered_node_ids: tuple[Int64, ...] = ()
    """Nodes that are registered in Kafka's metadata; those that left stay here until they are unregistered."""
    cruise_control: CruiseControlStatus | None = None
    auto_rebalance: AutoRebalanceSummary | None = None


class Kafka(WireObject):
    spec: KafkaSpec = KafkaSpec()
    status: KafkaStatus = KafkaStatus()


# ---- KafkaNodePool


class KafkaNodePoolSpec(Wire):
    replicas: Int64 = 0
    roles: tuple[str, ...] = ()
    storage: Json = None
    resources: Json = None
    template: KafkaTemplate = KafkaTemplate()


class KafkaNodePoolStatus(Wire):
    node_ids: tuple[Int64, ...] = msgspec.field(name="nodeIds", default=())
    roles: tuple[str, ...] = ()
    replicas: Int64 = 0
    cluster_id: str = msgspec.field(name="clusterId", default="")
    label_selector: str = ""
    conditions: tuple[Condition, ...] = ()
    observed_generation: Int64 = 0


class KafkaNodePool(WireObject):
    spec: KafkaNodePoolSpec = KafkaNodePoolSpec()
    status: KafkaNodePoolStatus = KafkaNodePoolStatus()


# ---- KafkaRebalance and KafkaRebalanceSettings


class RebalanceProgress(Wire):
    rebalance_progress_config_map: str = ""


class KafkaRebalanceStatus(Wire):
    conditions: tuple[Condition, ...] = ()
    observed_generation: Int64 = 0
    session_id: str = msgspec.field(name="sessionId", default="")
    progress: RebalanceProgress | None = None
    optimization_result: Json = None


class KafkaRebalance(WireObject):
    """A request of a user, or of the cluster reconciler. Its spec is read in `kafka.wire`."""

    spec: Json = None
    status: KafkaRebalanceStatus = KafkaRebalanceStatus()


class KafkaRebalanceSettings(WireObject):
    spec: Json = None


# ---- StrimziPodSet


class StrimziPodSetSpec(Wire):
    selector: LabelSelector = LabelSelector()
    pods: tuple[Json, ...] = ()


class StrimziPodSetStatus(Wire):
    conditions: tuple[Condition, ...] = ()
    observed_generation: Int64 = 0
    pods: Int64 = 0
    ready_pods: Int64 = 0
    current_pods: Int64 = 0


class StrimziPodSet(WireObject):
    spec: StrimziPodSetSpec = StrimziPodSetSpec()
    status: StrimziPodSetStatus = StrimziPodSetStatus()


def _build_resource(struct: type[WireObject], plural: str, short_name: str, *, group: str = KAFKA_GROUP) -> Resource:
    kind = struct.get_kind_name()
    return Resource(
        group=group,
        version=STRIMZI_VERSION,
        kind=kind,
        plural=plural,
        singular=kind.lower(),
        namespaced=True,
        struct=struct,
        short_names=(short_name,),
        categories=("strimzi",),
    )


KAFKA_RESOURCES: Final = (
    _build_resource(Kafka, "kafkas", "k"),
    _build_resource(KafkaNodePool, "kafkanodepools", "knp"),
    _build_resource(KafkaRebalance, "kafkarebalances", "kr"),
    _build_resource(KafkaRebalanceSettings, "kafkarebalancesettings", "krs"),
    _build_resource(StrimziPodSet, "strimzipodsets", "sps", group=POD_SET_GROUP),
)
