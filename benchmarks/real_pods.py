"""Pods as large as real ones: about 7 KB of JSON each, no two alike.

Half of a real pod is bookkeeping (managedFields), environment, probes and status; all of it is here, because skipping
it is what a decoder is measured by.
"""

from __future__ import annotations

import hashlib
from typing import Any

APPS = 400
NODES = 1_000
NAMESPACES = 60
CREATED = "2026-03-01T08:{minute:02d}:{second:02d}Z"


def real_sized_pod(index: int) -> dict[str, Any]:
    app = f"app-{index % APPS}"
    digest = hashlib.sha256(str(index).encode()).hexdigest()
    created = CREATED.format(minute=index // 60 % 60, second=index % 60)
    node = index % NODES
    names = ("main", "proxy") if index % 3 == 0 else ("main",)
    containers = [_container(name, app, digest) for name in names]
    return {
        "metadata": _metadata(app, digest, index=index, created=created),
        "spec": {
            "volumes": [
                {"name": "data", "emptyDir": {}},
                {"name": "config", "configMap": {"name": f"{app}-config", "defaultMode": 420}},
                _token_volume(digest),
            ],
            "containers": containers,
            "restartPolicy": "Always",
            "terminationGracePeriodSeconds": 30,
            "dnsPolicy": "ClusterFirst",
            "serviceAccountName": app,
            "serviceAccount": app,
            "nodeName": f"node-{node}",
            "securityContext": {"fsGroup": 1000, "runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
            "affinity": _spread_by_anti_affinity(app),
            "schedulerName": "default-scheduler",
            "tolerations": [
                {
                    "key": f"node.kubernetes.io/{key}",
                    "operator": "Exists",
                    "effect": "NoExecute",
                    "tolerationSeconds": 300,
                }
                for key in ("not-ready", "unreachable")
            ],
            "priority": 0,
            "enableServiceLinks": True,
            "preemptionPolicy": "PreemptLowerPriority",
        },
        "status": _status(containers, digest, index=index, created=created),
    }


def _metadata(app: str, digest: str, *, index: int, created: str) -> dict[str, Any]:
    replica_set = f"{app}-{digest[:9]}"
    return {
        "name": f"{replica_set}-{digest[9:14]}",
        "generateName": f"{replica_set}-",
        "namespace": f"team-{index % NAMESPACES}",
        "uid": _uid(digest),
        "resourceVersion": str(10_000_000 + index),
        "creationTimestamp": created,
        "labels": {
            "app.kubernetes.io/name": app,
            "app.kubernetes.io/instance": f"{app}-{index % 7}",
            "app.kubernetes.io/version": f"1.{index % 40}.{index % 9}",
            "pod-template-hash": digest[:9],
        },
        "annotations": {
            "checksum/config": digest,
            "prometheus.io/scrape": "true",
            "prometheus.io/port": "9090",
            "kubectl.kubernetes.io/restartedAt": created,
        },
        "ownerReferences": [
            {
                "apiVersion": "apps/v1",
                "kind": "ReplicaSet",
                "name": replica_set,
                "uid": _uid(digest[16:]),
                "controller": True,
                "blockOwnerDeletion": True,
            }
        ],
        "managedFields": [
            _managed("kube-controller-manager", created, _owned("metadata", "spec")),
            _managed("kubelet", created, _owned("status")),
        ],
    }


def _managed(manager: str, time: str, fields: dict[str, Any]) -> dict[str, Any]:
    entry = {"manager": manager, "operation": "Update", "apiVersion": "v1", "time": time, "fieldsType": "FieldsV1"}
    return {**entry, "fieldsV1": fields}


def _owned(*parts: str) -> dict[str, Any]:
    leaves = {
        "metadata": ("annotations", "generateName", "labels", "ownerReferences"),
        "spec": ("affinity", "containers", "dnsPolicy", "enableServiceLinks", "restartPolicy", "schedulerName"),
        "status": ("conditions", "containerStatuses", "hostIP", "hostIPs", "phase", "podIP", "podIPs", "startTime"),
    }
    inner: dict[str, Any] = {".": {}, 'k:{"name":"main"}': {".": {}, "f:name": {}}}
    return {f"f:{part}": {f"f:{leaf}": inner for leaf in leaves[part]} for part in parts}


def _container(name: str, app: str, digest: str) -> dict[str, Any]:
    probe = {"timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3}
    return {
        "name": name,
        "image": f"registry.example.com/{app}/{name}:{digest[:12]}",
        "args": ["--config=/etc/config/main.yaml", f"--shard={digest[:4]}"],
        "ports": [{"name": "http", "containerPort": 8080, "protocol": "TCP"}],
        "env": [
            {"name": "POD_IP", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "status.podIP"}}},
            {"name": "PASSWORD", "valueFrom": {"secretKeyRef": {"name": f"{app}-secret", "key": "password"}}},
            *({"name": f"SETTING_{number}", "value": digest[number : number + 16]} for number in range(6)),
        ],
        "resources": {"limits": {"memory": "512Mi"}, "requests": {"cpu": f"{len(name) * 50}m", "memory": "256Mi"}},
        "volumeMounts": [
            {"name": "data", "mountPath": "/data"},
            {"name": "config", "readOnly": True, "mountPath": "/etc/config"},
            {
                "name": f"kube-api-access-{digest[:5]}",
                "readOnly": True,
                "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount",
            },
        ],
        "livenessProbe": {"httpGet": {"path": "/healthz", "port": "http", "scheme": "HTTP"}, **probe},
        "readinessProbe": {"httpGet": {"path": "/readyz", "port": "http", "scheme": "HTTP"}, **probe},
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
        "imagePullPolicy": "IfNotPresent",
        "securityContext": {"capabilities": {"drop": ["ALL"]}, "allowPrivilegeEscalation": False},
    }


def _token_volume(digest: str) -> dict[str, Any]:
    namespace = {"path": "namespace", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}}
    return {
        "name": f"kube-api-access-{digest[:5]}",
        "projected": {
            "sources": [
                {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
                {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
                {"downwardAPI": {"items": [namespace]}},
            ],
            "defaultMode": 420,
        },
    }


def _spread_by_anti_affinity(app: str) -> dict[str, Any]:
    term = {"labelSelector": {"matchLabels": {"app.kubernetes.io/name": app}}, "topologyKey": "kubernetes.io/hostname"}
    preferred = [{"weight": 100, "podAffinityTerm": term}]
    return {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}


def _status(containers: list[dict[str, Any]], digest: str, *, index: int, created: str) -> dict[str, Any]:
    address = f"10.{index >> 16 & 255}.{index >> 8 & 255}.{index & 255}"
    host = f"192.168.{index % NODES >> 8}.{index % NODES & 255}"
    types = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")
    return {
        "phase": "Running",
        "conditions": [
            {"type": type_, "status": "True", "lastProbeTime": None, "lastTransitionTime": created} for type_ in types
        ],
        "hostIP": host,
        "hostIPs": [{"ip": host}],
        "podIP": address,
        "podIPs": [{"ip": address}],
        "startTime": created,
        "containerStatuses": [
            {
                "name": container["name"],
                "state": {"running": {"startedAt": created}},
                "lastState": {},
                "ready": True,
                "restartCount": index % 3,
                "image": container["image"],
                "imageID": f"registry.example.com/{container['name']}@sha256:{digest}",
                "containerID": f"containerd://{digest[::-1]}",
                "started": True,
            }
            for container in containers
        ],
        "qosClass": "Burstable",
    }


def _uid(digest: str) -> str:
    return f"{digest[:8]}-{digest[8:12]}-4{digest[13:16]}-8{digest[17:20]}-{digest[20:32]}"
