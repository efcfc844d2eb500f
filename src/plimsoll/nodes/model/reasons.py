"""Reason codes shared across the node autoscaler: planning and actuation set them, reporting and requests read them.

A code with a single reader stays in the module that sets it.
"""

from __future__ import annotations

from typing import Final

# ---- why a loop ended early

CANNOT_SEE: Final = "CannotSee"
"""The cluster or the cloud provider could not be read; `facts["errorType"]` may name the error type for a metric."""
CLUSTER_UNHEALTHY: Final = "ClusterUnhealthy"
LIST_NOT_BELIEVED: Final = "ListNotBelieved"
"""A list misses more than a small share of what was known, and a second read does not agree: nothing shrinks."""
OBJECTS_SET_ASIDE: Final = "ObjectsSetAside"
BAD_OBJECT: Final = "BadObject"
"""An object that cannot be decoded or judged: it is present, and nothing is done with it."""
BAD_FIELD: Final = "FieldIgnored"
"""A field or annotation of an object whose value cannot be used; the object counts as if it were absent."""

# ---- why a pod is not planned for, or gets no node

CONSUMING: Final = "ConsumesProvisioningRequest"
PODS_TOO_NEW: Final = "PodsTooNew"
NOT_WHOLE: Final = "NotAllFit"

# ---- why a node group is not scaled up

IN_BACKOFF: Final = "InBackoff"
NOT_READY: Final = "NotReady"
NO_PRIORITY: Final = "NoPriority"
MAX_SIZE_REACHED: Final = "MaxSizeReached"
MAX_NODES_TOTAL: Final = "MaxNodesTotal"
"""`--max-nodes-total` limits a plan."""
MAX_NODES_REACHED: Final = "MaxNodesTotalReached"
"""The cluster has `--max-nodes-total` nodes already, so nothing is planned."""

# ---- what is worth knowing about a scale-up

NEW_LABEL: Final = "NewNodeLabel"
"""The group is created with a label that no node carries yet."""
ZONE_NOT_AVAILABLE: Final = "ZoneNotAvailable"
"""A zone that its pods should be spread over gets no nodes."""

# ---- what cluster state reports about a node group

SCALE_UP_TIMED_OUT: Final = "ScaleUpTimedOut"
DELETE_UNREGISTERED: Final = "DeleteUnregistered"
MIN_SIZE_ENFORCED: Final = "NodeGroupMinSizeEnforced"

# ---- why a node is not removed

BLOCKED_BY_POD: Final = "BlockedByPod"
WAITS_FOR_COMPLETION: Final = "BlockedByOnCompletionPod"
BELOW_MINIMUM: Final = "MinimalResourceLimitExceeded"
