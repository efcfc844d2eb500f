"""The words that people and Cluster API write on objects for an autoscaler: annotations, labels, prefixes. Pure.

Names under the group of Cluster API change with `CAPI_GROUP`; the others are fixed.
"""

from __future__ import annotations

from typing import Final

from plimsoll.core.values import Value

CAPACITY_PREFIX: Final = "capacity.cluster-autoscaler.kubernetes.io/"
NAP_TEMPLATE: Final = "autoscaling.x-k8s.io/nap-template"
"""On a MachineDeployment with no replicas: it is a machine type that groups are made of."""
NAP_SYNCED_LABELS: Final = "autoscaling.x-k8s.io/nap-synced-labels"
"""Beside it: further labels that this Cluster API brings from machines to nodes; keys or domains, or `*`."""
NAP_MADE_OF: Final = "autoscaling.x-k8s.io/nap-made-of"
"""On what was made: the template's name."""
NAP_MAX_SIZE: Final = "autoscaling.x-k8s.io/nap-max-size"
MARK_VALUE: Final = "plimsoll"
"""Tells our own deletion marks from those of others, whose meaning we do not know."""

FAILED_PREFIX: Final = "failed-machine-"
PENDING_PREFIX: Final = "pending-machine-"
# What Cluster API brings from the labels of a Machine to its Node by itself.
_PROPAGATED: Final = ("node-restriction.kubernetes.io", "node.cluster.x-k8s.io")
_ROLE: Final = "node-role.kubernetes.io"


class Keys(Value):
    """Names that stand under the group of Cluster API."""

    group: str

    @property
    def min_size(self) -> str:
        return f"{self.group}/cluster-api-autoscaler-node-group-min-size"

    @property
    def max_size(self) -> str:
        return f"{self.group}/cluster-api-autoscaler-node-group-max-size"

    @property
    def delete_machine(self) -> str:
        return f"{self.group}/delete-machine"

    @property
    def paused(self) -> str:
        return f"{self.group}/paused"

    @property
    def options(self) -> str:
        return f"{self.group}/autoscaling-options-"

    @property
    def machine(self) -> str:
        """On nodes: the name of their Machine."""
        return f"{self.group}/machine"

    @property
    def cluster_namespace(self) -> str:
        """On nodes: where their Machine is."""
        return f"{self.group}/cluster-namespace"

    @property
    def cluster_name(self) -> str:
        return f"{self.group}/cluster-name"

    @property
    def deployment_name(self) -> str:
        return f"{self.group}/deployment-name"


def is_propagated(key: str) -> bool:
    """Whether a label of a Machine comes to its Node."""
    domain, slash, _ = key.partition("/")
    if not slash:
        return False
    return domain == _ROLE or any(domain == one or domain.endswith(f".{one}") for one in _PROPAGATED)


def is_synced(key: str, declared: str) -> bool:
    """The same, with what people say of their Cluster API (`--additional-sync-machine-labels`)."""
    words = [word.strip() for word in declared.split(",") if word.strip()]
    domain, slash, _ = key.partition("/")
    return is_propagated(key) or "*" in words or key in words or (bool(slash) and domain in words)
