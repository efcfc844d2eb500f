"""The permissions that the fleet manager needs in a management cluster of Cluster API, each with its reason.

Nothing is needed in the cluster that it runs in: leases, pause and journal are rows of its database.
"""

from __future__ import annotations

from typing import Final

from plimsoll.kube.diagnosis.requirements import CustomResource, Requirements, declare_permissions
from plimsoll.objects.api.cluster_api import CLUSTER_API_GROUP

FLEET: Final = Requirements(
    controller="fleet",
    permissions=(
        *declare_permissions(
            CLUSTER_API_GROUP,
            (
                "clusters",
                ("get", "list", "create", "patch", "delete"),
                "to make clusters, to bound their pools, to see their state, and to delete them",
            ),
        ),
        *declare_permissions(
            "",
            ("secrets", ("get",), "to reach clusters: a Secret named after the cluster holds its kubeconfig"),
            ("namespaces", ("get", "create", "patch"), "to make the namespace of a region"),
        ),
    ),
    custom_resources=(
        CustomResource(
            plural="clusters", group=CLUSTER_API_GROUP, versions=("v1beta2", "v1beta1"), source="Cluster API"
        ),
    ),
)
