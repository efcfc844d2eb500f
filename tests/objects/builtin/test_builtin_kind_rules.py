"""Rules of the other kinds: each wrong object, and the sentences it earns."""

from __future__ import annotations

from typing import Any

import pytest

from plimsoll.objects.builtin import check_create
from plimsoll.objects.builtin.validation.cron import find_schedule_problem
from tests.objects.builtin.recordings import a_container, a_job, a_template, a_workload, an_object

Json = dict[str, Any]

RBAC = "rbac.authorization.k8s.io/v1"


def complaints(obj: Json) -> list[str]:
    verdict = check_create(obj)
    assert verdict.decode_problems == []
    return [error.text for error in verdict.errors]


def a_service(**spec: Any) -> Json:
    return an_object("v1", "Service", spec={"ports": [{"port": 80}], **spec})


def a_volume(**spec: Any) -> Json:
    return an_object(
        "v1", "PersistentVolume", spec={"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], **spec}
    )


@pytest.mark.parametrize(
    ("obj", "expected"),
    [
        (
            a_workload("Deployment", selector={}),
            ["spec.selector: Invalid value: {}: empty selector is invalid for deployment"],
        ),
        (
            a_workload("Deployment", progressDeadlineSeconds=5, minReadySeconds=5),
            ["spec.progressDeadlineSeconds: Invalid value: 5: must be greater than minReadySeconds"],
        ),
        (
            a_workload("Deployment", strategy={"type": "Recreate", "rollingUpdate": {}}),
            ["spec.strategy.rollingUpdate: Forbidden: may not be specified when strategy `type` is 'Recreate'"],
        ),
        (
            a_workload("Deployment", strategy={"type": "Foo"}),
            [
                (
                    'spec.strategy: Unsupported value: {"Type":"Foo","RollingUpdate":null}: supported values: '
                    '"Recreate", '
                    '"RollingUpdate"'
                )
            ],
        ),
        (
            a_workload("Deployment", strategy={"rollingUpdate": {"maxUnavailable": "101%", "maxSurge": "x"}}),
            [
                (
                    'spec.strategy.rollingUpdate.maxSurge: Invalid value: "x": a valid percent string must be a '
                    "numeric "
                    "string followed by an ending '%' (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')"
                ),
                'spec.strategy.rollingUpdate.maxUnavailable: Invalid value: "101%": must not be greater than 100%',
            ],
        ),
        (
            a_workload("Deployment", template=a_template(activeDeadlineSeconds=5)),
            [
                (
                    "spec.template.spec.activeDeadlineSeconds: Forbidden: activeDeadlineSeconds in ReplicaSet is not "
                    "Supported"
                )
            ],
        ),
        (
            a_workload("DaemonSet", updateStrategy={"rollingUpdate": {"maxUnavailable": 0}}),
            ["spec.updateStrategy.rollingUpdate.maxUnavailable: Required value: cannot be 0 when maxSurge is 0"],
        ),
        (
            a_workload("DaemonSet", updateStrategy={"rollingUpdate": {"maxSurge": 1}}),
            [
                (
                    "spec.updateStrategy.rollingUpdate.maxSurge: Invalid value: 1: may not be set when "
                    "maxUnavailable is "
                    "non-zero"
                )
            ],
        ),
        (
            a_workload("StatefulSet", persistentVolumeClaimRetentionPolicy={"whenDeleted": "Keep"}),
            [
                (
                    'spec.persistentVolumeClaimRetentionPolicy.whenDeleted: Unsupported value: "Keep": supported '
                    "values: "
                    '"Retain", "Delete"'
                )
            ],
        ),
        (
            a_job(completionMode="Indexed", parallelism=1),
            ["spec.completions: Required value: when completion mode is Indexed"],
        ),
        (
            a_job(backoffLimitPerIndex=1),
            ["spec.backoffLimitPerIndex: Invalid value: 1: requires indexed completion mode"],
        ),
        (
            a_job(selector={"matchLabels": {"a": "b"}}),
            ['spec.selector: Invalid value: {"matchLabels":{"a":"b"}}: `selector` not auto-generated'],
        ),
        (
            a_job(template={"spec": {"restartPolicy": "Sometimes", "containers": [a_container()]}}),
            [
                (
                    'spec.template.spec.restartPolicy: Unsupported value: "Sometimes": supported values: "Always", '
                    '"OnFailure", "Never"'
                ),
                (
                    'spec.template.spec.restartPolicy: Unsupported value: "Sometimes": supported values: "OnFailure", '
                    '"Never"'
                ),
            ],
        ),
        (
            an_object("policy/v1", "PodDisruptionBudget", spec={"minAvailable": "200%"}),
            ['spec.minAvailable: Invalid value: "200%": must not be greater than 100%'],
        ),
        (
            an_object("v1", "Node", spec={"taints": [{"key": "a", "effect": "NoSchedule"}] * 2}),
            [
                (
                    "metadata.taints[1]: Duplicate value: "
                    '{"Key":"a","Value":"","Effect":"NoSchedule","TimeAdded":null}: '
                    "taints must be unique by key and effect pair"
                )
            ],
        ),
        (
            an_object("v1", "Node", status={"capacity": {"pods": "1.5", "cpu": "-1"}}, spec={"podCIDRs": ["x"]}),
            [
                'status.capacity.pods: Invalid value: "1500m": must be an integer',
                'status.capacity.cpu: Invalid value: "-1": must be greater than or equal to 0',
                'status.allocatable.pods: Invalid value: "1500m": must be an integer',
                'status.allocatable.cpu: Invalid value: "-1": must be greater than or equal to 0',
                'spec.podCIDRs[0]: Invalid value: "x": must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)',
            ],
        ),
        (a_service(ports=[]), ["spec.ports: Required value"]),
        (
            a_service(type="ExternalName", ports=[]),
            ["spec.externalName: Required value"],
        ),
        (
            a_service(clusterIP="nope"),
            [
                (
                    'spec.clusterIPs[0]: Invalid value: "nope": must be a valid IP address, (e.g. 10.9.8.7 or '
                    "2001:db8::ffff)"
                )
            ],
        ),
        (
            a_service(ports=[{"port": 80, "nodePort": 30000}]),
            ["spec.ports[0].nodePort: Forbidden: may not be used when `type` is 'ClusterIP'"],
        ),
        (
            a_service(type="NodePort", clusterIP="None"),
            ["spec.clusterIPs[0]: Invalid value: \"None\": may not be set to 'None' for NodePort services"],
        ),
        (
            a_service(externalIPs=["127.0.0.1"], loadBalancerClass="a/b"),
            [
                (
                    'spec.externalIPs[0]: Invalid value: "127.0.0.1": may not be in the loopback range (127.0.0.0/8, '
                    "::1/128)"
                ),
                "spec.loadBalancerClass: Forbidden: may only be used when `type` is 'LoadBalancer'",
            ],
        ),
        (
            an_object("v1", "ConfigMap", data={"a/b": "", "k": ""}, binaryData={"k": ""}),
            [
                (
                    'data[a/b]: Invalid value: "a/b": a valid config key must consist of alphanumeric characters, '
                    "'-', "
                    "'_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is "
                    "'[-._a-zA-Z0-9]+')"
                ),
                'data[k]: Invalid value: "k": duplicate of key present in binaryData',
            ],
        ),
        (
            an_object("v1", "Secret", type="kubernetes.io/tls", stringData={"tls.crt": "x"}),
            ["data[tls.key]: Required value"],
        ),
        (
            an_object("v1", "Secret", type="kubernetes.io/dockerconfigjson", data={".dockerconfigjson": "e30="}),
            [],
        ),
        (a_volume(), ["spec: Required value: must specify a volume type"]),
        (
            a_volume(local={"path": "/x"}),
            ["spec.nodeAffinity: Required value: Local volume requires node affinity"],
        ),
        (
            a_volume(hostPath={"path": "/"}, persistentVolumeReclaimPolicy="Recycle"),
            ["spec.persistentVolumeReclaimPolicy: Forbidden: may not be 'recycle' for a hostPath mount of '/'"],
        ),
        (an_object("storage.k8s.io/v1", "StorageClass"), ["provisioner: Required value"]),
        (
            an_object("scheduling.k8s.io/v1", "PriorityClass", metadata={"name": "system-x"}, value=1),
            [
                (
                    "metadata.name: Forbidden: priority class names with 'system-' prefix are reserved for system "
                    "use only. "
                    "error: system-x is not a known system priority class"
                )
            ],
        ),
        (
            an_object(RBAC, "Role", rules=[{"verbs": ["get"], "nonResourceURLs": ["/x"]}, {}]),
            [
                'rules[0].nonResourceURLs: Invalid value: ["/x"]: namespaced rules cannot apply to non-resource URLs',
                "rules[1].verbs: Required value: verbs must contain at least one value",
                "rules[1].apiGroups: Required value: resource rules must supply at least one api group",
                "rules[1].resources: Required value: resource rules must supply at least one resource",
            ],
        ),
        (
            an_object(
                RBAC, "ClusterRoleBinding", roleRef={"kind": "Role", "name": "r"}, subjects=[{"kind": "X", "name": "n"}]
            ),
            [
                'roleRef.kind: Unsupported value: "Role": supported values: "ClusterRole"',
                'subjects[0].kind: Unsupported value: "X": supported values: "ServiceAccount", "User", "Group"',
            ],
        ),
        (
            an_object("v1", "LimitRange", spec={"limits": [{"type": "Pod", "min": {"cpu": "2"}, "max": {"cpu": "1"}}]}),
            ['spec.limits[0].min[cpu]: Invalid value: "2": min value 2 is greater than max value 1'],
        ),
        (
            an_object("v1", "ResourceQuota", spec={"hard": {"storage": "1"}, "scopes": ["Nope"]}),
            [
                'spec.hard[storage]: Invalid value: "storage": must be a standard resource for quota',
                'spec.scopes: Invalid value: ["Nope"]: unsupported scope',
            ],
        ),
    ],
)
def test_a_wrong_object(obj: Json, expected: list[str]):
    assert complaints(obj) == expected


def test_a_stateful_set_mounts_what_it_claims():
    workload = a_workload(
        "StatefulSet",
        template=a_template(containers=[a_container(volumeMounts=[{"name": "data", "mountPath": "/d"}])]),
        volumeClaimTemplates=[{"metadata": {"name": "data"}, "spec": {}}],
    )
    assert complaints(workload) == []


@pytest.mark.parametrize(
    ("api_version", "kind", "name", "is_fine"),
    [
        ("v1", "Service", "1a", False),
        ("v1", "Pod", "1a.b", True),
        ("apps/v1", "StatefulSet", "a.b", False),
        (RBAC, "Role", "system:Anything goes", True),
        (RBAC, "Role", "a/b", False),
        ("policy/v1", "PodDisruptionBudget", "Upper", True),
        ("v1", "Namespace", "kube-system", True),
    ],
)
def test_names_follow_the_rule_of_their_kind(api_version: str, kind: str, name: str, is_fine: bool):
    verdict = check_create({"apiVersion": api_version, "kind": kind, "metadata": {"name": name}})
    assert ("metadata.name" not in [error.path for error in verdict.errors]) is is_fine


def test_the_name_of_a_cron_job_leaves_room_for_its_jobs():
    job = {"restartPolicy": "Never", "containers": [a_container()]}
    cron = an_object(
        "batch/v1", "CronJob", spec={"schedule": "* * * * *", "jobTemplate": {"spec": {"template": {"spec": job}}}}
    )
    assert complaints(cron) == []
    cron["metadata"]["name"] = "x" * 53
    assert complaints(cron) == [f'metadata.name: Invalid value: "{"x" * 53}": must be no more than 52 characters']


@pytest.mark.parametrize(
    ("schedule", "problem"),
    [
        ("*/5 0-6,22 1 jan-mar SUN", None),
        ("@hourly", None),
        ("@often", "unrecognized descriptor: @often"),
        ("* * *", "expected exactly 5 fields, found 3: [* * *]"),
        ("60 * * * *", "end of range (60) above maximum (59): 60"),
        ("5-1 * * * *", "beginning of range (5) beyond end of range (1): 5-1"),
        ("* * 0 * *", "beginning of range (0) below minimum (1): 0"),
        ("*/0 * * * *", "step of range should be a positive number: */0"),
        ("x * * * *", 'failed to parse int from x: strconv.Atoi: parsing "x": invalid syntax'),
        ("TZ=UTC * * * * *", "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"),
    ],
)
def test_schedules(schedule: str, problem: str | None):
    assert find_schedule_problem(schedule) == problem


@pytest.mark.parametrize(
    ("metadata", "expected"),
    [
        (
            {"finalizers": ["mine"]},
            [
                (
                    'metadata.finalizers[0]: Invalid value: "mine": name is neither a standard finalizer name nor '
                    "is it "
                    "fully qualified"
                )
            ],
        ),
        (
            {"ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "p"}]},
            ['metadata.ownerReferences.uid: Invalid value: "": must not be empty'],
        ),
        ({"generation": -1}, ["metadata.generation: Invalid value: -1: must be greater than or equal to 0"]),
        ({"namespace": "a.b"}, ['metadata.namespace: Invalid value: "a.b": must not contain dots']),
        ({"annotations": {"Example.COM/Key": "x"}}, []),
    ],
)
def test_metadata(metadata: Json, expected: list[str]):
    assert complaints({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", **metadata}}) == expected


def test_sizes():
    half = "x" * (600 * 1024)
    assert complaints(an_object("v1", "ConfigMap", data={"a": half, "b": half})) == [
        "[]: Too long: may not be more than 1048576 bytes"
    ]
    assert complaints(an_object("v1", "Secret", stringData={"a": half, "b": half})) == [
        "data: Too long: may not be more than 1048576 bytes"
    ]
    big = an_object("v1", "ConfigMap")
    big["metadata"]["annotations"] = {"a": "x" * (256 * 1024)}
    assert complaints(big) == ["metadata.annotations: Too long: may not be more than 262144 bytes"]
