"""The table of this package: which rules validate which built-in kind.

A kind without an entry is decoded, and only its metadata is validated. `objects.schema` validates
CustomResourceDefinitions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from plimsoll.core.names import (
    find_dns1035_label_problems,
    find_dns1123_label_problems,
    find_path_segment_problems,
    find_subdomain_problems,
)
from plimsoll.core.values import Value
from plimsoll.objects.builtin.validation import (
    core,
    jobs,
    leases,
    nodes,
    pdbs,
    pods,
    priority_classes,
    quotas,
    rbac,
    services,
    storage,
    workloads,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from plimsoll.objects.schema.field_errors import FieldError

Json = dict[str, Any]

NOT_OURS: Final = frozenset({("apiextensions.k8s.io/v1", "CustomResourceDefinition")})
_RBAC: Final = "rbac.authorization.k8s.io/v1"


def _accept_object(_obj: Json) -> list[FieldError]:
    return []


def _accept_update(_new: Json, _old: Json) -> list[FieldError]:
    return []


class KindRules(Value):
    """The rules of a kind: names, creation and updates.

    `spec_first`: the API server validates metadata only if there are no other errors. `update` adds to `valid`, which
    also applies to updated objects; `create` replaces `valid` where creation has more rules.
    """

    namespaced: bool = True
    name_rule: Callable[[str], list[str]] = find_subdomain_problems
    valid: Callable[[Json], list[FieldError]] = _accept_object
    create: Callable[[Json], list[FieldError]] | None = None
    update: Callable[[Json, Json], list[FieldError]] = _accept_update
    spec_first: bool = False
    # A pod's update rules ask for a valid pod themselves, in their own order.
    update_is_all: bool = False


_RULES: Final[dict[tuple[str, str], KindRules]] = {
    ("v1", "Pod"): KindRules(valid=pods.validate_new_pod, update=pods.validate_pod_update, update_is_all=True),
    ("v1", "PodTemplate"): KindRules(valid=pods.validate_pod_template_create),
    ("v1", "ReplicationController"): KindRules(valid=workloads.validate_controller),
    ("apps/v1", "Deployment"): KindRules(
        valid=workloads.validate_deployment, update=workloads.validate_selector_update
    ),
    ("apps/v1", "ReplicaSet"): KindRules(
        valid=workloads.validate_replica_set, update=workloads.validate_selector_update
    ),
    ("apps/v1", "DaemonSet"): KindRules(valid=workloads.validate_daemon_set, update=workloads.validate_selector_update),
    ("apps/v1", "StatefulSet"): KindRules(
        name_rule=find_dns1123_label_problems,
        valid=workloads.validate_stateful_set,
        update=workloads.validate_stateful_set_update,
    ),
    ("apps/v1", "ControllerRevision"): KindRules(
        valid=workloads.validate_revision, update=workloads.validate_revision_update
    ),
    ("batch/v1", "Job"): KindRules(valid=jobs.validate_job, update=jobs.validate_job_update),
    ("batch/v1", "CronJob"): KindRules(valid=jobs.validate_cron_job, create=jobs.validate_cron_job_create),
    ("v1", "Service"): KindRules(
        name_rule=find_dns1035_label_problems, valid=services.validate_service, update=services.validate_service_update
    ),
    ("v1", "ConfigMap"): KindRules(valid=core.validate_config_map, update=core.validate_config_map_update),
    ("v1", "Secret"): KindRules(valid=core.validate_secret, update=core.validate_secret_update),
    ("v1", "Namespace"): KindRules(
        namespaced=False, name_rule=find_dns1123_label_problems, create=core.validate_namespace
    ),
    ("v1", "Node"): KindRules(namespaced=False, valid=nodes.validate_node, update=nodes.validate_node_update),
    ("v1", "PersistentVolume"): KindRules(
        namespaced=False, valid=storage.validate_volume, update=storage.validate_volume_update
    ),
    ("v1", "PersistentVolumeClaim"): KindRules(valid=storage.validate_claim, update=storage.validate_claim_update),
    ("v1", "LimitRange"): KindRules(valid=quotas.validate_limit_range),
    ("v1", "ResourceQuota"): KindRules(valid=quotas.validate_quota, update=quotas.validate_quota_update),
    ("storage.k8s.io/v1", "StorageClass"): KindRules(
        namespaced=False, valid=storage.validate_class, update=storage.validate_class_update
    ),
    ("storage.k8s.io/v1", "CSINode"): KindRules(namespaced=False, valid=storage.validate_csi_node),
    ("storage.k8s.io/v1", "CSIDriver"): KindRules(namespaced=False),
    ("storage.k8s.io/v1", "VolumeAttachment"): KindRules(namespaced=False),
    ("scheduling.k8s.io/v1", "PriorityClass"): KindRules(
        namespaced=False,
        valid=priority_classes.validate_priority_class,
        update=priority_classes.validate_priority_class_update,
    ),
    ("policy/v1", "PodDisruptionBudget"): KindRules(
        name_rule=find_path_segment_problems, valid=pdbs.validate_budget, spec_first=True
    ),
    ("coordination.k8s.io/v1", "Lease"): KindRules(valid=leases.validate_lease, update=leases.validate_lease_update),
    (_RBAC, "Role"): KindRules(name_rule=find_path_segment_problems, valid=rbac.validate_role),
    (_RBAC, "ClusterRole"): KindRules(
        namespaced=False, name_rule=find_path_segment_problems, valid=rbac.validate_cluster_role
    ),
    (_RBAC, "RoleBinding"): KindRules(
        name_rule=find_path_segment_problems, valid=rbac.validate_role_binding, update=rbac.validate_binding_update
    ),
    (_RBAC, "ClusterRoleBinding"): KindRules(
        namespaced=False,
        name_rule=find_path_segment_problems,
        valid=rbac.validate_cluster_role_binding,
        update=rbac.validate_binding_update,
    ),
    ("v1", "Event"): KindRules(name_rule=find_path_segment_problems),
    ("events.k8s.io/v1", "Event"): KindRules(name_rule=find_path_segment_problems),
}
# Requests in the form of objects: they are answered, not stored, and need no name.
REVIEWS: Final = frozenset(
    {
        ("authentication.k8s.io/v1", "TokenReview"),
        ("authentication.k8s.io/v1", "TokenRequest"),
        ("authentication.k8s.io/v1", "SelfSubjectReview"),
        ("authorization.k8s.io/v1", "SelfSubjectAccessReview"),
        ("authorization.k8s.io/v1", "SubjectAccessReview"),
        ("authorization.k8s.io/v1", "LocalSubjectAccessReview"),
        ("authorization.k8s.io/v1", "SelfSubjectRulesReview"),
        ("autoscaling/v1", "Scale"),
        ("policy/v1", "Eviction"),
        ("v1", "Binding"),
    }
)


def find_rules(api_version: str, kind: str) -> KindRules:
    return _RULES.get((api_version, kind), KindRules())
