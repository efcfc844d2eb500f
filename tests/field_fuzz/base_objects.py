"""A plain valid object of each kind that a controller watches; one field of it is then made extreme."""

from __future__ import annotations

from typing import Any, Final

Json = dict[str, Any]

NAMESPACE: Final = "fuzz"
_LABELS: Final = {"app": "fuzz"}


def _pod_spec(**more: Any) -> Json:
    resources = {"requests": {"cpu": "100m", "memory": "64Mi"}}
    return {"containers": [{"name": "c", "image": "app", "resources": resources}], **more}


def _template(**more: Any) -> Json:
    return {"metadata": {"labels": _LABELS}, "spec": _pod_spec(**more)}


def _workload(**more: Any) -> Json:
    return {"spec": {"replicas": 1, "selector": {"matchLabels": _LABELS}, "template": _template(), **more}}


BASE_OBJECTS: Final[dict[str, Json]] = {
    "pods": {"spec": _pod_spec()},
    "nodes": {
        "spec": {},
        "status": {
            "capacity": {"cpu": "4", "memory": "8Gi", "pods": "110"},
            "allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110"},
            "conditions": [
                {
                    "type": "Ready",
                    "status": "True",
                    "lastHeartbeatTime": "2026-01-01T00:00:00Z",
                    "lastTransitionTime": "2026-01-01T00:00:00Z",
                }
            ],
        },
    },
    "podtemplates": {"template": _template()},
    "namespaces": {},
    "configmaps": {"data": {}},
    "limitranges": {"spec": {"limits": [{"type": "Container"}]}},
    "persistentvolumeclaims": {
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    },
    "persistentvolumes": {
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "capacity": {"storage": "1Gi"},
            "csi": {"driver": "example.com", "volumeHandle": "a"},
            "persistentVolumeReclaimPolicy": "Retain",
        }
    },
    "storageclasses": {"provisioner": "example.com/none"},
    "csinodes": {"spec": {"drivers": [{"name": "example.com", "nodeID": "a", "allocatable": {"count": 3}}]}},
    "replicationcontrollers": {"spec": {"replicas": 1, "selector": _LABELS, "template": _template()}},
    "services": {"spec": {"selector": _LABELS, "ports": [{"port": 80}]}},
    "deployments": _workload(),
    "replicasets": _workload(),
    "statefulsets": _workload(serviceName="s"),
    "daemonsets": {"spec": {"selector": {"matchLabels": _LABELS}, "template": _template()}},
    "controllerrevisions": {"revision": 1, "data": {}},
    "jobs": {"spec": {"template": _template(restartPolicy="Never")}},
    "poddisruptionbudgets": {"spec": {"maxUnavailable": 1, "selector": {"matchLabels": _LABELS}}},
    "priorityclasses": {"value": 10},
    "leases": {"spec": {"holderIdentity": "a", "leaseDurationSeconds": 15}},
    "provisioningrequests": {
        "spec": {
            "provisioningClassName": "best-effort-atomic-scale-up.autoscaling.x-k8s.io",
            "podSets": [{"count": 1, "podTemplateRef": {"name": "template"}}],
        }
    },
    "tidbclusters": {
        "spec": {
            "version": "v7.5.0",
            "pd": {"replicas": 1, "requests": {"cpu": "100m", "storage": "1Gi"}},
            "tikv": {"replicas": 1, "requests": {"cpu": "100m", "storage": "1Gi"}},
            "tidb": {"replicas": 1, "requests": {"cpu": "100m"}},
        }
    },
    "tidbclusterautoscalers": {
        "spec": {
            "cluster": {"name": "db"},
            "tikv": {
                "rules": {"cpu": {"max_threshold": 0.8, "min_threshold": 0.2}},
                "resources": {"small": {"cpu": "1", "memory": "1Gi", "storage": "1Gi", "count": 2}},
            },
        }
    },
    "kafkas": {
        "spec": {
            "kafka": {"version": "4.3.1"},
            "cruiseControl": {"autoRebalance": [{"mode": "add-brokers"}, {"mode": "remove-brokers"}]},
        }
    },
    "kafkanodepools": {"spec": {"replicas": 1, "roles": ["broker"], "storage": {"type": "ephemeral"}}},
    "kafkarebalances": {"spec": {"mode": "full"}},
    "kafkarebalancesettings": {"spec": {"goals": ["RackAwareGoal"], "skipHardGoalCheck": True}},
    "strimzipodsets": {
        "spec": {
            "selector": {"matchLabels": _LABELS},
            "pods": [{"metadata": {"name": "fuzzed", "labels": _LABELS}, "spec": _pod_spec()}],
        }
    },
    "nodegroups": {"spec": {"min": 0, "max": 1, "target": 0, "machineType": "n1-standard-1"}},
    "clouds": {"spec": {"zones": ["local-a"]}},
    "machines": {"spec": {"group": "none", "machineType": "n1-standard-1"}},
}
