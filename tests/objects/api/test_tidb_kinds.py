"""TidbClusterAutoScalers and TidbClusters: our table and structs against our definitions."""

from __future__ import annotations

from typing import Any

import pytest

from plimsoll.objects.api.tidb import TIDB_RESOURCES, TidbCluster, TidbClusterAutoScaler
from plimsoll.objects.codec.decoding import convert_object
from plimsoll.objects.custom_kinds import OUR_KINDS
from plimsoll.objects.schema.api import compile_definition
from plimsoll.objects.validation import list_shipped_definitions

DEFINITIONS = {manifest.body["spec"]["names"]["kind"]: manifest.body for manifest in list_shipped_definitions()}
AUTOSCALER = {
    "apiVersion": "pingcap.com/v1alpha1",
    "kind": "TidbClusterAutoScaler",
    "metadata": {"name": "as1", "namespace": "prod"},
    "spec": {
        "cluster": {"name": "db", "namespace": "prod", "clusterDomain": "cluster.local"},
        "resources": ["anything"],
        "tikv": {
            "rules": {"cpu": {"max_threshold": 0.8, "min_threshold": 0, "resource_types": ["a"], "resource_type": "a"}},
            "resources": {"a": {"cpu": 1, "memory": "2Gi", "storage": "10Gi", "count": 3}},
            "scaleInIntervalSeconds": 500,
            "scaleOutIntervalSeconds": 300,
        },
        "tidb": {
            "external": {
                "endpoint": {"host": "h", "port": 80, "path": "/", "tlsSecret": {"name": "s", "namespace": "prod"}},
                "maxReplicas": 3,
            }
        },
    },
}
STATUS = {
    "observedGeneration": 2,
    "conditions": [
        {
            "type": "Valid",
            "status": "True",
            "reason": "Valid",
            "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }
    ],
    "tikv": {
        "pd-auto-scaling-tikv-a": {
            "lastAutoScalingTimestamp": "2026-01-01T00:00:00Z",
            "replicas": 1,
            "desiredReplicas": 2,
            "lastDirection": "Out",
            "reason": "heterogeneous_out",
            "omittedCount": 1,
        }
    },
}


def version(kind: str) -> Any:
    return compile_definition(DEFINITIONS[kind]).get_version("v1alpha1")


@pytest.mark.parametrize("resource", TIDB_RESOURCES, ids=lambda kind: kind.kind)
def test_the_table_says_what_the_definition_says(resource: Any):
    spec = DEFINITIONS[resource.kind]["spec"]
    names = spec["names"]
    assert (spec["scope"], resource.namespaced) == ("Namespaced", True)
    assert (resource.group, resource.version) == (spec["group"], spec["versions"][0]["name"])
    assert (resource.plural, resource.singular, resource.list_kind) == (
        names["plural"],
        names["singular"],
        names["listKind"],
    )
    assert resource.short_names == tuple(names["shortNames"])


@pytest.mark.parametrize(("name", "kind"), [("ta", "TidbClusterAutoScaler"), ("tc", "TidbCluster")])
def test_they_are_found_by_their_short_names(name: str, kind: str):
    found = OUR_KINDS.find_by_name(name)
    assert found is not None
    assert found.kind == kind


def test_the_schema_of_autoscalers_knows_every_field_and_keeps_it():
    admission = version("TidbClusterAutoScaler").admit_create(AUTOSCALER)
    assert (admission.errors, admission.unknown_fields) == ((), ())
    assert admission.object["spec"] == AUTOSCALER["spec"]


def test_the_schema_of_autoscalers_keeps_every_field_of_their_status():
    judged = version("TidbClusterAutoScaler")
    assert judged.has_status
    shown = judged.present({**AUTOSCALER, "status": STATUS})
    assert shown["status"] == STATUS


def test_autoscalers_are_decoded_with_their_mixed_spelling():
    found = convert_object(TidbClusterAutoScaler, {**AUTOSCALER, "status": STATUS})
    assert isinstance(found, TidbClusterAutoScaler)
    assert found.spec.cluster.cluster_domain == "cluster.local"
    tikv, tidb = found.spec.tikv, found.spec.tidb
    assert tikv is not None
    assert tidb is not None
    rule = tikv.rules["cpu"]
    assert (rule.max_threshold, rule.min_threshold, rule.resource_types, rule.resource_type) == (0.8, 0, ("a",), "a")
    assert (tikv.scale_in_interval_seconds, tikv.scale_out_interval_seconds) == (500, 300)
    assert tidb.external is not None
    assert tidb.external.endpoint.tls_secret is not None
    assert (tidb.external.max_replicas, tidb.external.endpoint.tls_secret.name) == (3, "s")
    group = found.status.tikv["pd-auto-scaling-tikv-a"]
    assert group.last_auto_scaling_timestamp is not None
    assert (group.replicas, group.desired_replicas, group.omitted_count) == (1, 2, 1)


def test_a_cluster_keeps_what_the_schema_does_not_know_and_its_status():
    """The operator writes the status with the rest, as there is no subresource of it."""
    body = {
        "apiVersion": "pingcap.com/v1alpha1",
        "kind": "TidbCluster",
        "metadata": {"name": "db", "namespace": "prod"},
        "spec": {
            "version": "v8.5.0",
            "enablePVReclaim": True,
            "tlsCluster": {"enabled": True},
            "cluster": {"name": "other", "odd": {"a": 1}},
            "tikv": {
                "replicas": 3,
                "requests": {"cpu": 4, "storage": "100Gi"},
                "config": "[server]\n",
                "storageClassName": "fast",
            },
        },
        "status": {
            "tikv": {
                "phase": "Normal",
                "bootStrapped": True,
                "statefulSet": {"replicas": 3},
                "stores": {"1": {"id": "1", "podName": "db-tikv-0", "ip": "x", "leaderCount": 5, "state": "Up"}},
                "tombstoneStores": {},
            }
        },
    }
    judged = version("TidbCluster")
    admission = judged.admit_create(body)
    assert (admission.errors, admission.unknown_fields, judged.has_status) == ((), (), False)
    assert (admission.object["spec"], admission.object["status"]) == (body["spec"], body["status"])
    found = convert_object(TidbCluster, body)
    assert isinstance(found, TidbCluster)
    assert found.is_heterogeneous
    assert (found.spec.enable_pv_reclaim, found.spec.tls_cluster.enabled) == (True, True)
    tikv = found.status.tikv
    assert tikv.stateful_set is not None
    assert (tikv.phase, tikv.boot_strapped, tikv.stateful_set.replicas) == ("Normal", True, 3)
    assert tikv.stores["1"].pod_name == "db-tikv-0"
    assert tikv.stores["1"].leader_count == 5
