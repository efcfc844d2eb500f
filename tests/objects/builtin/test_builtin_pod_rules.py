"""Rules of pods and their parts: each wrong pod, and the sentences it earns."""

from __future__ import annotations

from typing import Any

import pytest

from plimsoll.objects.builtin import check_create, default
from tests.objects.builtin.recordings import a_container, a_pod, a_workload

Json = dict[str, Any]


def complaints(obj: Json) -> list[str]:
    verdict = check_create(obj)
    assert verdict.decode_problems == []
    return [error.text for error in verdict.errors]


def with_container(**fields: Any) -> Json:
    return a_pod(containers=[a_container(**fields)], volumes=[{"name": "v", "emptyDir": {}}])


C = "spec.containers[0]"


@pytest.mark.parametrize(
    ("pod", "expected"),
    [
        (
            with_container(image=" nginx"),
            [f'{C}.image: Invalid value: " nginx": must not have leading or trailing whitespace'],
        ),
        (
            with_container(terminationMessagePolicy="Nope"),
            [
                (
                    f'{C}.terminationMessagePolicy: Unsupported value: "Nope": supported values: "File", '
                    '"FallbackToLogsOnError"'
                )
            ],
        ),
        (
            with_container(ports=[{"containerPort": 80, "name": "A"}, {"containerPort": 0}]),
            [
                (
                    f'{C}.ports[0].name: Invalid value: "A": must contain only alpha-numeric characters (a-z, 0-9), '
                    "and hyphens (-)"
                ),
                f'{C}.ports[0].name: Invalid value: "A": must contain at least one letter (a-z)',
                f"{C}.ports[1].containerPort: Required value",
            ],
        ),
        (
            with_container(ports=[{"containerPort": 1, "hostPort": 9}, {"containerPort": 2, "hostPort": 9}]),
            [f'{C}.ports[1].hostPort: Duplicate value: "TCP//9"'],
        ),
        (
            with_container(env=[{"name": "a=b"}, {}]),
            [
                (
                    f'{C}.env[0].name: Invalid value: "a=b": a valid environment variable name must consist only of '
                    "printable ASCII characters other than '='"
                ),
                f"{C}.env[1].name: Required value",
            ],
        ),
        (
            with_container(env=[{"name": "A", "valueFrom": {}}]),
            [
                (
                    f'{C}.env[0].valueFrom: Invalid value: "": must specify one of: `fieldRef`, `resourceFieldRef`, '
                    "`configMapKeyRef` or `secretKeyRef`"
                )
            ],
        ),
        (
            with_container(env=[{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "spec.nope"}}}]),
            [
                (
                    f'{C}.env[0].valueFrom.fieldRef.fieldPath: Invalid value: "spec.nope": error converting fieldPath: '
                    "field label not supported: spec.nope"
                )
            ],
        ),
        (
            with_container(envFrom=[{}]),
            [f'{C}.envFrom: Invalid value: "": must specify one of: `configMapRef` or `secretRef`'],
        ),
        (
            with_container(volumeMounts=[{"name": "v", "mountPath": "/a"}, {"name": "v", "mountPath": "/a"}]),
            [f'{C}.volumeMounts[1].mountPath: Invalid value: "/a": must be unique'],
        ),
        (
            with_container(volumeMounts=[{"name": "v", "mountPath": "/a", "subPath": "/x/../y"}]),
            [
                f'{C}.volumeMounts.subPath: Invalid value: "/x/../y": must be a relative path',
                f"{C}.volumeMounts.subPath: Invalid value: \"/x/../y\": must not contain '..'",
            ],
        ),
        (
            with_container(livenessProbe={"successThreshold": 2}),
            [
                f"{C}.livenessProbe: Required value: must specify a handler type",
                f"{C}.livenessProbe.successThreshold: Invalid value: 2: must be 1",
            ],
        ),
        (
            with_container(readinessProbe={"exec": {}, "tcpSocket": {"port": 0}, "periodSeconds": -1}),
            [
                f"{C}.readinessProbe.exec.command: Required value",
                f"{C}.readinessProbe.tcpSocket: Forbidden: may not specify more than 1 handler type",
                f"{C}.readinessProbe.periodSeconds: Invalid value: -1: must be greater than or equal to 0",
            ],
        ),
        (
            with_container(lifecycle={"preStop": {"sleep": {"seconds": 99}}}),
            [
                (
                    f"{C}.lifecycle.preStop.sleep: Invalid value: 99: must be non-negative and less than "
                    "terminationGracePeriodSeconds (30)"
                )
            ],
        ),
        (
            with_container(resources={"requests": {"hugepages-2Mi": "3Mi"}, "limits": {"hugepages-2Mi": "3Mi"}}),
            [
                (
                    f'{C}.resources.limits[hugepages-2Mi]: Invalid value: "3Mi": 3Mi is not positive integer '
                    "multiple of "
                    "hugepages-2Mi"
                ),
                (
                    f'{C}.resources.requests[hugepages-2Mi]: Invalid value: "3Mi": 3Mi is not positive integer '
                    "multiple of "
                    "hugepages-2Mi"
                ),
                f"{C}.resources: Forbidden: HugePages require cpu or memory",
            ],
        ),
        (
            with_container(resources={"limits": {"a.com/x": 2}, "requests": {"a.com/x": 1}}),
            [f'{C}.resources.requests: Invalid value: "1": must be equal to a.com/x limit of 2'],
        ),
        (
            with_container(resources={"claims": [{"name": "gpu"}]}),
            [
                (
                    f'{C}.resources.claims[0]: Not found: "gpu": must be one of the names in pod.spec.resourceClaims '
                    "which "
                    "is empty"
                )
            ],
        ),
        (
            with_container(securityContext={"runAsUser": -1, "procMount": "Unmasked"}),
            [
                f"{C}.securityContext.runAsUser: Invalid value: -1: must be between 0 and 4294967295, inclusive",
                (
                    f'{C}.securityContext.procMount: Invalid value: "Unmasked": `hostUsers` must be false to use '
                    "`Unmasked`"
                ),
            ],
        ),
        (
            with_container(restartPolicy="Always"),
            [f"{C}.restartPolicy: Forbidden: may not be set for non-init containers"],
        ),
    ],
)
def test_a_container(pod: Json, expected: list[str]):
    assert complaints(pod) == expected


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        (
            {"volumes": [{"name": "a", "emptyDir": {}, "hostPath": {"path": "/x"}}]},
            ["spec.volumes[0].hostPath: Forbidden: may not specify more than 1 volume type"],
        ),
        (
            {"volumes": [{"name": "a"}, {"name": "a"}]},
            ['spec.volumes[1].name: Duplicate value: "a"'],
        ),
        (
            {"volumes": [{"name": "a", "configMap": {"name": "x", "defaultMode": 0o1777}}]},
            [
                (
                    "spec.volumes[0].configMap.defaultMode: Invalid value: 1023: must be a number between 0 and 0777 "
                    "(octal), both inclusive"
                )
            ],
        ),
        (
            {"volumes": [{"name": "a", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}}]},
            [
                (
                    "spec.volumes[0].ephemeral.volumeClaimTemplate.spec.accessModes: Required value: at least 1 access "
                    "mode is required"
                ),
                "spec.volumes[0].ephemeral.volumeClaimTemplate.spec.resources[storage]: Required value",
            ],
        ),
        (
            {"initContainers": [a_container(name="i", livenessProbe={"exec": {"command": ["x"]}})]},
            [
                (
                    "spec.initContainers[0].livenessProbe: Forbidden: may not be set for init containers without "
                    "restartPolicy=Always"
                )
            ],
        ),
        ({"initContainers": [a_container()]}, ['spec.initContainers[0].name: Duplicate value: "c"']),
        (
            {"nodeSelector": {"a b": "c"}, "dnsPolicy": "None"},
            [
                (
                    'spec.nodeSelector: Invalid value: "a b": name part must consist of alphanumeric characters, '
                    "'-', '_' "
                    "or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or "
                    "'123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
                ),
                "spec.dnsConfig: Required value: must provide `dnsConfig` when `dnsPolicy` is None",
            ],
        ),
        (
            {"tolerations": [{"operator": "Equal"}, {"key": "a", "operator": "Exists", "tolerationSeconds": 3}]},
            [
                (
                    'spec.tolerations[0].operator: Invalid value: "Equal": operator must be Exists when `key` is '
                    "empty, "
                    'which means "match all values and all keys"'
                ),
                (
                    "spec.tolerations[1].effect: Invalid value: \"\": effect must be 'NoExecute' when "
                    "`tolerationSeconds` "
                    "is set"
                ),
            ],
        ),
        (
            {"schedulingGates": [{"name": "a"}, {"name": "a"}], "nodeName": "n"},
            [
                'spec.schedulingGates[1]: Duplicate value: "a"',
                "spec.nodeName: Forbidden: cannot be set until all schedulingGates have been cleared",
            ],
        ),
        (
            {"overhead": {"cpu": "-1"}},
            ['spec.overhead.limits[cpu]: Invalid value: "-1": must be greater than or equal to 0'],
        ),
        (
            {"preemptionPolicy": "X"},
            ['spec.preemptionPolicy: Unsupported value: "X": supported values: "PreemptLowerPriority", "Never"'],
        ),
        (
            {"activeDeadlineSeconds": 0},
            ["spec.activeDeadlineSeconds: Invalid value: 0: must be between 1 and 2147483647, inclusive"],
        ),
        ({"os": {"name": "bsd"}}, ['spec.os: Unsupported value: "bsd": supported values: "linux", "windows"']),
        (
            {"hostNetwork": True, "containers": [a_container(ports=[{"containerPort": 1, "hostPort": 2}])]},
            [
                (
                    "spec.containers[0].ports[0].hostPort: Invalid value: 2: must match `containerPort` when "
                    "`hostNetwork` "
                    "is true"
                )
            ],
        ),
        (
            {"resources": {"limits": {"cpu": "1"}}, "containers": [a_container(resources={"limits": {"cpu": "2"}})]},
            [
                (
                    'spec.resources.requests[cpu]: Invalid value: "0": must be greater than or equal to aggregate '
                    "container "
                    "requests of 2"
                ),
                (
                    'spec.resources.containers[0][cpu].limits: Invalid value: "2": must be less than or equal to '
                    "pod limits "
                    "of 1"
                ),
            ],
        ),
        (
            {"ephemeralContainers": [a_container(name="e")]},
            ["spec.ephemeralContainers: Forbidden: cannot be set on create"],
        ),
        (
            {
                "topologySpreadConstraints": [
                    {"maxSkew": 1, "topologyKey": "z", "whenUnsatisfiable": "ScheduleAnyway", "minDomains": 2}
                ]
            },
            [
                (
                    "spec.topologySpreadConstraints[0].minDomains: Invalid value: 2: can only use minDomains if "
                    "whenUnsatisfiable=DoNotSchedule, not ScheduleAnyway"
                )
            ],
        ),
    ],
)
def test_a_pod(spec: Json, expected: list[str]):
    assert complaints(a_pod(**spec)) == expected


def test_a_negative_grace_period_is_corrected_without_a_word():
    pod = a_pod(terminationGracePeriodSeconds=-5)
    assert complaints(pod) == []
    assert default(pod)["spec"]["terminationGracePeriodSeconds"] == 1


def test_a_template_may_have_what_a_pod_may_not():
    assert (
        complaints(
            a_workload(
                "Deployment",
                template={"metadata": {"labels": {"app": "x"}}, "spec": {"containers": [a_container(image=" x")]}},
            )
        )
        == []
    )


def test_labels_of_a_template_are_judged_under_a_shorter_path():
    deployment = a_workload("Deployment")
    deployment["spec"]["template"]["metadata"]["labels"]["k"] = "!"
    [complaint] = complaints(deployment)
    assert complaint.startswith('spec.template.labels: Invalid value: "!": a valid label must be')


@pytest.mark.parametrize(
    ("image", "policy"),
    [
        ("nginx", "Always"),
        ("nginx:latest", "Always"),
        ("nginx:1.27", "IfNotPresent"),
        ("registry.example.com:5000/a/b", "Always"),
        ("registry.example.com:5000/a/b:1", "IfNotPresent"),
        ("nginx@sha256:00", "IfNotPresent"),
        ("Not An Image", "IfNotPresent"),
    ],
)
def test_the_pull_policy_follows_the_tag(image: str, policy: str):
    assert default(a_pod(containers=[a_container(image=image)]))["spec"]["containers"][0]["imagePullPolicy"] == policy


@pytest.mark.parametrize(
    ("resources", "qos"),
    [
        ({}, "BestEffort"),
        ({"requests": {"cpu": "1"}}, "Burstable"),
        ({"limits": {"cpu": "1"}}, "Burstable"),
        ({"limits": {"cpu": "1", "memory": "1Gi"}}, "Guaranteed"),
        ({"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "500m"}}, "Burstable"),
    ],
)
def test_the_quality_of_service(resources: Json, qos: str):
    assert default(a_pod(containers=[a_container(resources=resources)]))["status"]["qosClass"] == qos
