"""Keys of the taints that Cluster Autoscaler sets on nodes."""

from __future__ import annotations

from typing import Final

BEING_DELETED: Final = "ToBeDeletedByClusterAutoscaler"
DELETION_CANDIDATE: Final = "DeletionCandidateOfClusterAutoscaler"
