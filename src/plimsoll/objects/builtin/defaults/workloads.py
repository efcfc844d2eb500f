"""Defaults of workloads, from Deployments to CronJobs. The functions change their argument."""

from __future__ import annotations

from typing import Any, Final

from plimsoll.objects.builtin.defaults import pods

Json = dict[str, Any]

_MOST: Final = 2**31 - 1


def default_deployment(obj: Json) -> None:
    spec = obj["spec"]
    pods.default_template(spec.setdefault("template", {}))
    spec.setdefault("replicas", 1)
    spec.setdefault("revisionHistoryLimit", 10)
    spec.setdefault("progressDeadlineSeconds", 600)
    strategy = spec.setdefault("strategy", {})
    strategy["type"] = strategy.get("type") or "RollingUpdate"
    if strategy["type"] == "RollingUpdate":
        rolling = strategy.setdefault("rollingUpdate", {})
        rolling.setdefault("maxUnavailable", "25%")
        rolling.setdefault("maxSurge", "25%")


def default_replica_set(obj: Json) -> None:
    pods.default_template(obj["spec"].setdefault("template", {}))
    obj["spec"].setdefault("replicas", 1)


def default_replication_controller(obj: Json) -> None:
    spec = obj["spec"]
    if "template" not in spec:
        return
    pods.default_template(spec["template"])
    labels = spec["template"].get("metadata", {}).get("labels")
    if labels is not None:
        if not spec.get("selector"):
            spec["selector"] = dict(labels)
        if not obj.setdefault("metadata", {}).get("labels"):
            obj["metadata"]["labels"] = dict(labels)


def default_daemon_set(obj: Json) -> None:
    spec = obj["spec"]
    pods.default_template(spec.setdefault("template", {}))
    spec.setdefault("revisionHistoryLimit", 10)
    strategy = spec.setdefault("updateStrategy", {})
    strategy["type"] = strategy.get("type") or "RollingUpdate"
    if strategy["type"] == "RollingUpdate":
        rolling = strategy.setdefault("rollingUpdate", {})
        rolling.setdefault("maxUnavailable", 1)
        rolling.setdefault("maxSurge", 0)


def default_stateful_set(obj: Json) -> None:
    spec = obj["spec"]
    pods.default_template(spec.setdefault("template", {}))
    spec.setdefault("replicas", 1)
    spec.setdefault("revisionHistoryLimit", 10)
    spec["podManagementPolicy"] = spec.get("podManagementPolicy") or "OrderedReady"
    strategy = spec.setdefault("updateStrategy", {})
    if not strategy.get("type"):
        strategy["type"] = "RollingUpdate"
        strategy.setdefault("rollingUpdate", {})
    if strategy["type"] == "RollingUpdate" and "rollingUpdate" in strategy:
        strategy["rollingUpdate"].setdefault("partition", 0)
    retention = spec.setdefault("persistentVolumeClaimRetentionPolicy", {})
    for field in ("whenDeleted", "whenScaled"):
        retention[field] = retention.get(field) or "Retain"
    for claim in spec.get("volumeClaimTemplates", []):
        claim["apiVersion"], claim["kind"] = "v1", "PersistentVolumeClaim"
        claim.setdefault("spec", {}).setdefault("volumeMode", "Filesystem")
        status = claim.setdefault("status", {})
        status["phase"] = status.get("phase") or "Pending"


def default_job(obj: Json) -> None:
    spec = obj["spec"]
    pods.default_template(spec.setdefault("template", {}))
    if "completions" not in spec and "parallelism" not in spec:
        spec["completions"] = spec["parallelism"] = 1
    spec.setdefault("parallelism", 1)
    spec.setdefault("backoffLimit", _MOST if "backoffLimitPerIndex" in spec else 6)
    spec.setdefault("completionMode", "NonIndexed")
    spec.setdefault("suspend", False)
    spec.setdefault("manualSelector", False)
    spec.setdefault("podReplacementPolicy", "Failed" if "podFailurePolicy" in spec else "TerminatingOrFailed")
    labels = spec["template"].get("metadata", {}).get("labels")
    if labels and not obj.get("metadata", {}).get("labels"):
        obj.setdefault("metadata", {})["labels"] = dict(labels)


def default_cron_job(obj: Json) -> None:
    spec = obj["spec"]
    spec["concurrencyPolicy"] = spec.get("concurrencyPolicy") or "Allow"
    spec.setdefault("suspend", False)
    spec.setdefault("successfulJobsHistoryLimit", 3)
    spec.setdefault("failedJobsHistoryLimit", 1)
    pods.default_template(spec.setdefault("jobTemplate", {}).setdefault("spec", {}).setdefault("template", {}))
