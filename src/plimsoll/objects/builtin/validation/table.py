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


def _nothing(_obj: Json) -> list[FieldError]:
    return []


def _anything_may_change(_new: Json, _old: Json) -> list[FieldError]:
    return []


class KindRules(Value):
    """The rules of a kind: names, creation and updates.

    `spec_first`: the API server validates metadata only if there are no other errors. `update` adds to `valid`, which
    also applies to updated objects; `create` replaces `valid` where creation has more rules.
    """

    namespaced: bool = True
    name_rule: Callable[[str], list[str]] = find_subdomain_problems
    valid: Callable[[Json], list[FieldError]] = _nothing
    create: Callable[[Json], list[FieldError]] | None = None
    update: Callable[[Json, Json], list[FieldError]] = _anything_may_change
    spec_first: bool = False
    # A pod's update rules ask for a valid pod themselves, in their own order.
    update_is_all: bool = False


_RULES: Final[dict[tuple[str, str], KindRules]] = {
    ("v1", "Pod"): KindRules(valid=pods.create_errors, update=pods.update_errors, update_is_all=True),
    ("v1", "PodTemplate"): KindRules(valid=pods.pod_template_create_errors),
    ("v1", "ReplicationController"): KindRules(valid=workloads.controller_errors),
    ("apps/v1", "Deployment"): KindRules(valid=workloads.deployment_errors, update=workloads.selector_update_errors),
    ("apps/v1", "ReplicaSet"): KindRules(valid=workloads.replica_set_errors, update=workloads.selector_update_errors),
    ("apps/v1", "DaemonSet"): KindRules(valid=workloads.daemon_set_errors, update=workloads.selector_update_errors),
    ("apps/v1", "StatefulSet"): KindRules(
        name_rule=find_dns1123_label_problems,
        valid=workloads.stateful_set_errors,
        update=workloads.stateful_set_update_errors,
    ),
    ("apps/v1", "ControllerRevision"): KindRules(
        valid=workloads.revision_errors, update=workloads.revision_update_errors
    ),
    ("batch/v1", "Job"): KindRules(valid=jobs.job_errors, update=jobs.job_update_errors),
    ("batch/v1", "CronJob"): KindRules(valid=jobs.cron_job_errors, create=jobs.cron_job_create_errors),
    ("v1", "Service"): KindRules(
        name_rule=find_dns1035_label_problems, valid=services.service_errors, update=services.service_update_errors
    ),
    ("v1", "ConfigMap"): KindRules(valid=core.config_map_errors, update=core.config_map_update_errors),
    ("v1", "Secret"): KindRules(valid=core.secret_errors, update=core.secret_update_errors),
    ("v1", "Namespace"): KindRules(
        namespaced=False, name_rule=find_dns1123_label_problems, create=core.namespace_errors
    ),
    ("v1", "Node"): KindRules(namespaced=False, valid=nodes.node_errors, update=nodes.node_update_errors),
    ("v1", "PersistentVolume"): KindRules(
        namespaced=False, valid=storage.volume_errors, update=storage.volume_update_errors
    ),
    ("v1", "PersistentVolumeClaim"): KindRules(valid=storage.claim_errors, update=storage.claim_update_errors),
    ("v1", "LimitRange"): KindRules(valid=quotas.limit_range_errors),
    ("v1", "ResourceQuota"): KindRules(valid=quotas.quota_errors, update=quotas.quota_update_errors),
    ("storage.k8s.io/v1", "StorageClass"): KindRules(
        namespaced=False, valid=storage.class_errors, update=storage.class_update_errors
    ),
    ("storage.k8s.io/v1", "CSINode"): KindRules(namespaced=False, valid=storage.csi_node_errors),
    ("storage.k8s.io/v1", "CSIDriver"): KindRules(namespaced=False),
    ("storage.k8s.io/v1", "VolumeAttachment"): KindRules(namespaced=False),
    ("scheduling.k8s.io/v1", "PriorityClass"): KindRules(
        namespaced=False,
        valid=priority_classes.priority_class_errors,
        update=priority_classes.priority_class_update_errors,
    ),
    ("policy/v1", "PodDisruptionBudget"): KindRules(
        name_rule=find_path_segment_problems, valid=pdbs.budget_errors, spec_first=True
    ),
    ("coordination.k8s.io/v1", "Lease"): KindRules(valid=leases.lease_errors, update=leases.lease_update_errors),
    (_RBAC, "Role"): KindRules(name_rule=find_path_segment_problems, valid=rbac.role_errors),
    (_RBAC, "ClusterRole"): KindRules(
        namespaced=False, name_rule=find_path_segment_problems, valid=rbac.cluster_role_errors
    ),
    (_RBAC, "RoleBinding"): KindRules(
        name_rule=find_path_segment_problems, valid=rbac.role_binding_errors, update=rbac.binding_update_errors
    ),
    (_RBAC, "ClusterRoleBinding"): KindRules(
        namespaced=False,
        name_rule=find_path_segment_problems,
        valid=rbac.cluster_role_binding_errors,
        update=rbac.binding_update_errors,
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


def rules_for(api_version: str, kind: str) -> KindRules:
    return _RULES.get((api_version, kind), KindRules())
