"""Pods of a Kafka cluster as brokers and controllers: their ids, racks and log directories. Pure.

A pod is a broker of the Kafka in its label `strimzi.io/cluster` if its label `strimzi.io/broker-role` is "true" and its
name ends with the node id, as Strimzi names pods. `strimzi.io/controller-role` says the same of controllers.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from plimsoll.core.errors import InvalidInput
from plimsoll.core.quantity import Quantity
from plimsoll.core.values import Value
from plimsoll.kube.informer.events import Key
from plimsoll.local.kafka.brokers import DEFAULT_DISK_BYTES
from plimsoll.objects.api.pods import is_pod_ready

if TYPE_CHECKING:
    from plimsoll.objects.api.pods import Pod

CLUSTER_LABEL: Final = "strimzi.io/cluster"
POOL_LABEL: Final = "strimzi.io/pool-name"
BROKER_LABEL: Final = "strimzi.io/broker-role"
CONTROLLER_LABEL: Final = "strimzi.io/controller-role"
ZONE_LABEL: Final = "topology.kubernetes.io/zone"
_PERSISTENT: Final = "persistent-claim"
_ID: Final = re.compile(r"-(0|[1-9][0-9]{0,9})\Z")
_LARGEST_ID: Final = 2**31 - 1
_MOST_VOLUMES: Final = 100
_LARGEST_DISK_BYTES: Final = 2**60


class BrokerPod(Value):
    """A pod that is a broker. `is_ready`: the broker runs."""

    id: int
    pool: str
    node: str
    is_ready: bool


def read_cluster_key(pod: Pod) -> Key | None:
    """Read the key of the Kafka whose broker the pod is; None: it is not a broker."""
    labels = pod.metadata.labels
    cluster = labels.get(CLUSTER_LABEL, "")
    return Key(pod.metadata.namespace, cluster) if cluster and labels.get(BROKER_LABEL) == "true" else None


def read_node_cluster(pod: Pod) -> Key | None:
    """Read the key of the Kafka whose broker or controller the pod is; None: it is neither."""
    labels = pod.metadata.labels
    cluster = labels.get(CLUSTER_LABEL, "")
    is_node = "true" in (labels.get(BROKER_LABEL), labels.get(CONTROLLER_LABEL))
    return Key(pod.metadata.namespace, cluster) if cluster and is_node else None


def read_broker_pod(pod: Pod) -> BrokerPod | None:
    """The node that a pod is; None: its name has no node id."""
    found = _ID.search(pod.metadata.name)
    number = int(found[1]) if found is not None else -1
    if not 0 <= number <= _LARGEST_ID:
        return None
    return BrokerPod(
        id=number,
        pool=pod.metadata.labels.get(POOL_LABEL, ""),
        node=pod.spec.node_name,
        is_ready=is_pod_ready(pod) and pod.metadata.deletion_timestamp is None,
    )


def read_log_dirs(storage: Any, broker: int) -> dict[str, int]:
    """The log directories of a broker with this `storage`: path → bytes. What cannot be read is one large disk."""
    written = storage if isinstance(storage, dict) else {}
    volumes = written.get("volumes") if written.get("type") == "jbod" else None
    if not isinstance(volumes, list):
        return {_build_path("data", broker): _read_size(written)}
    paths = {}
    for index, volume in enumerate(volumes[:_MOST_VOLUMES]):
        fields = volume if isinstance(volume, dict) else {}
        number = fields.get("id", index)
        name = f"data-{number if isinstance(number, int) and 0 <= number <= _LARGEST_ID else index}"
        paths[_build_path(name, broker)] = _read_size(fields)
    return paths or {_build_path("data", broker): DEFAULT_DISK_BYTES}


def read_topology_key(rack: Any) -> str:
    """The label of nodes that `spec.kafka.rack` names."""
    key = rack.get("topologyKey") if isinstance(rack, dict) else None
    return key if isinstance(key, str) and key else ZONE_LABEL


def keeps_data(storage: Any) -> bool:
    """Whether volumes outlive their pod."""
    written = storage if isinstance(storage, dict) else {}
    volumes = written.get("volumes")
    entries = volumes if written.get("type") == "jbod" and isinstance(volumes, list) else [written]
    return any(isinstance(entry, dict) and entry.get("type") == _PERSISTENT for entry in entries)


def _build_path(volume: str, broker: int) -> str:
    """As Strimzi mounts it."""
    return f"/var/lib/kafka/{volume}/kafka-log{broker}"


def _read_size(volume: dict[str, Any]) -> int:
    try:
        size = Quantity.parse(volume.get("size", volume.get("sizeLimit", ""))).round_up()
    except (InvalidInput, TypeError, AttributeError):
        return DEFAULT_DISK_BYTES
    return min(size, _LARGEST_DISK_BYTES) if size > 0 else DEFAULT_DISK_BYTES
