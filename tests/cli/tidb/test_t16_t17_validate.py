"""Acceptance scenarios T16 and T17, and every check V01 to V16, through `plimsoll tidb validate`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import yaml

from tests.cli.runner import plimsoll
from tests.cli.tidb.tidb_commands import autoscaler, cluster, run_validate

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.runner import CommandResult

    Json = dict[str, Any]

SMALL = {"cpu": "1", "memory": "2Gi", "storage": "10Gi", "count": 3}
CPU = {"cpu": {"max_threshold": 0.8, "min_threshold": 0.2}}
ENDPOINT = {"host": "advice.prod.svc", "port": 80, "path": "/replicas"}


def tikv(*, resources: Json | None = None, rules: Json | None = None, **more: Any) -> Json:
    """A valid component with changes."""
    return {"resources": resources or {"storage_small": SMALL}, "rules": CPU if rules is None else rules, **more}


def rule(**changes: Any) -> Json:
    return {"cpu": {**CPU["cpu"], **changes}}


def external(**changes: Any) -> Json:
    endpoint = {**ENDPOINT, **changes.pop("endpoint", {})}
    return {"external": {"endpoint": endpoint, "maxReplicas": 3, **changes}}


def lines(ended: CommandResult) -> list[str]:
    assert ended.returncode == (1 if ended.stdout else 0), ended.stderr
    return ended.stdout.splitlines()


def test_a_valid_autoscaler_gives_no_line(tmp_path: Path):
    ended = run_validate(tmp_path, autoscaler(tikv=tikv(), tidb={"rules": CPU}), cluster())
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")


def test_t16_defaulting(tmp_path: Path):
    given = autoscaler(tikv={"rules": {"cpu": {"max_threshold": 0.8}}})
    ended = run_validate(tmp_path, given, cluster(), arguments=("--show-defaulted",))
    assert ended.returncode == 0
    effective = yaml.safe_load(ended.stdout)
    assert effective == {
        **given,
        "spec": {
            "cluster": {"name": "db", "namespace": "prod"},
            "tikv": {
                "rules": {"cpu": {"max_threshold": 0.8, "min_threshold": 0.1, "resource_types": ["default_tikv"]}},
                "resources": {"default_tikv": {"cpu": "4", "memory": "16Gi", "storage": "100Gi"}},
                "scaleInIntervalSeconds": 500,
                "scaleOutIntervalSeconds": 300,
            },
        },
    }


def test_t16_reserved_types_do_not_count_as_types(tmp_path: Path):
    limit = {"default_homogeneous_tikv": {"count": 5}}
    given = autoscaler(tikv={"rules": {"cpu": {"max_threshold": 0.8}}, "resources": limit})
    shown = run_validate(tmp_path, given, cluster(), arguments=("--show-defaulted",))
    found = yaml.safe_load(shown.stdout)["spec"]["tikv"]
    assert found["resources"].keys() == {"default_homogeneous_tikv", "default_tikv"}
    assert found["rules"]["cpu"]["resource_types"] == ["default_tikv"]


def test_t16_types_of_a_rule_are_sorted_and_shown_once(tmp_path: Path):
    types = ["storage_small", "a", "storage_small", "default_homogeneous_tikv"]
    given = autoscaler(tikv=tikv(resources={"storage_small": SMALL, "a": SMALL}, rules=rule(resource_types=types)))
    shown = run_validate(tmp_path, given, cluster(), arguments=("--show-defaulted",))
    found = yaml.safe_load(shown.stdout)["spec"]["tikv"]["rules"]["cpu"]["resource_types"]
    assert found == ["a", "default_homogeneous_tikv", "storage_small"]


def test_t16_with_an_external_endpoint_only_intervals_have_defaults(tmp_path: Path):
    shown = run_validate(tmp_path, autoscaler(tikv=external()), cluster(), arguments=("--show-defaulted",))
    assert yaml.safe_load(shown.stdout)["spec"]["tikv"] == {
        **external(),
        "scaleInIntervalSeconds": 500,
        "scaleOutIntervalSeconds": 300,
    }


NO_STORAGE = {"cpu": "1", "memory": "2Gi"}
BOTH_RULES = {**CPU, "storage": {"max_threshold": 0.8}}

CHECKS: list[tuple[str, Json, Json, list[str]]] = [
    (
        "V01",
        {"tikv": {"rules": rule(resource_types=["default_homogeneous_tikv"])}},
        cluster(tikv=None),
        ["spec.tikv: the TidbCluster has no spec.tikv", "spec.tikv.resources: no resources provided for tikv in"],
    ),
    ("V02", {"tikv": tikv(rules={})}, cluster(), ["spec.tikv.rules: no rules defined for component"]),
    (
        "V03",
        {"tidb": {"rules": {"storage": CPU["cpu"]}}},
        cluster(),
        ["spec.tidb.rules.storage: unknown resource type"],
    ),
    ("V03", {"tikv": tikv(rules={"memory": CPU["cpu"]})}, cluster(), ["spec.tikv.rules.memory: unknown resource type"]),
    (
        "V04",
        {"tikv": tikv(resources={"x": NO_STORAGE, "storage_small": SMALL})},
        cluster(),
        ["spec.tikv.resources.x.storage: resource x defined for tikv does not have storage"],
    ),
    (
        "V04",
        {"tikv": tikv(resources={"x": {**SMALL, "storage": 0}, "storage_small": SMALL})},
        cluster(),
        ["spec.tikv.resources.x.storage: resource x defined for tikv does not have storage"],
    ),
    (
        "V05",
        {"tikv": tikv(rules=rule(max_threshold=2))},
        cluster(),
        ["spec.tikv.rules.cpu.max_threshold: max_threshold (2) should be between 0 and 1"],
    ),
    (
        "V05",
        {"tikv": tikv(rules=rule(max_threshold=1.0))},
        cluster(),
        ["spec.tikv.rules.cpu.max_threshold: max_threshold (1) should be between 0 and 1"],
    ),
    (
        "V05",
        {"tikv": tikv(rules={"cpu": {"min_threshold": 0.1}})},
        cluster(),
        ["spec.tikv.rules.cpu.max_threshold: Required value"],
    ),
    (
        "V06",
        {"tikv": tikv(rules=rule(min_threshold=-0.1))},
        cluster(),
        ["spec.tikv.rules.cpu.min_threshold: min_threshold (-0.1) should be between 0 and 1"],
    ),
    (
        "V07",
        {"tikv": tikv(rules=rule(min_threshold=0.8))},
        cluster(),
        ["spec.tikv.rules.cpu.min_threshold: min_threshold (0.8) > max_threshold (0.8)"],
    ),
    (
        "V08",
        {"tikv": tikv(resources={"x": NO_STORAGE})},
        cluster(),
        [
            "spec.tikv.resources.x.storage: resource x defined for tikv does not have storage",
            "spec.tikv.rules.cpu.resource_types: no resources provided for rule",
        ],
    ),
    (
        "V09",
        {"tikv": tikv(rules=rule(resource_types=["nope"]))},
        cluster(),
        ["spec.tikv.rules.cpu.resource_types: unknown resource nope"],
    ),
    ("V10", {"tikv": tikv(resources={"-x": SMALL})}, cluster(), ["spec.tikv.resources.-x: must match"]),
    ("V10", {"tidb": tikv(resources={"x" * 43: SMALL})}, cluster(), [f"spec.tidb.resources.{'x' * 43}: must have at"]),
    (
        "V11",
        {"tikv": tikv(resources={"x": {**SMALL, "cpu": "one", "memory": 0, "count": -1}})},
        cluster(),
        [
            "spec.tikv.resources.x.count: -1 is less than 0",
            "spec.tikv.resources.x.cpu: 'one': quantities must match",
            "spec.tikv.resources.x.memory: 0 is not more than 0",
        ],
    ),
    (
        "V11",
        {"tidb": tikv(resources={"x": {"storage": "-1Gi"}}, scaleInIntervalSeconds=-1, scaleOutIntervalSeconds=-2)},
        cluster(),
        [
            "spec.tidb.resources.x.cpu: Required value",
            "spec.tidb.resources.x.memory: Required value",
            "spec.tidb.resources.x.storage: -1Gi is less than 0",
            "spec.tidb.scaleInIntervalSeconds: -1 is less than 0",
            "spec.tidb.scaleOutIntervalSeconds: -2 is less than 0",
        ],
    ),
    (
        "V12",
        {"tidb": external(endpoint={"host": "", "port": 65536, "path": "replicas"}, maxReplicas=-1)},
        cluster(),
        [
            "spec.tidb.external.endpoint.host: must not be empty",
            "spec.tidb.external.endpoint.path: must start with /",
            "spec.tidb.external.endpoint.port: 65536 is not between 1 and 65535",
            "spec.tidb.external.maxReplicas: -1 is less than 0",
        ],
    ),
    (
        "V13",
        {"tikv": tikv(rules=rule(max_threshold=float("nan"), min_threshold=float("-inf")))},
        cluster(),
        ["spec.tikv.rules.cpu.max_threshold: max_threshold (nan)", "spec.tikv.rules.cpu.min_threshold: min_threshold"],
    ),
    ("V14", {"tikv": tikv()}, cluster(tikv=None), ["spec.tikv: the TidbCluster has no spec.tikv"]),
    (
        "V14",
        {"tikv": tikv(rules=BOTH_RULES)},
        cluster(tikv={"replicas": 3}),
        [
            "spec.tikv: the TidbCluster has no spec.tikv.requests.cpu",
            "spec.tikv: the TidbCluster has no spec.tikv.requests.storage",
        ],
    ),
    (
        "V15",
        {"tikv": tikv(rules=rule(resource_type="storage_small"))},
        cluster(),
        ["spec.tikv.rules.cpu.resource_type: use resource_types"],
    ),
    (
        "V16",
        {"cluster": {"name": "db", "namespace": "other"}, "tikv": tikv()},
        {**cluster(), "metadata": {"name": "db", "namespace": "other"}},
        ["spec.cluster.namespace: namespace other does not allow autoscalers of prod"],
    ),
    (
        "V16",
        {"tidb": external(endpoint={"tlsSecret": {"name": "certificate", "namespace": "other"}})},
        cluster(),
        ["spec.tidb.external.endpoint.tlsSecret.namespace: namespace other does not allow autoscalers of prod"],
    ),
]


@pytest.mark.parametrize(("code", "spec", "base", "expected"), CHECKS, ids=[code for code, *_ in CHECKS])
def test_each_check(tmp_path: Path, code: str, spec: Json, base: Json, expected: list[str]):
    found = lines(run_validate(tmp_path, autoscaler(**spec), base))
    assert len(found) == len(expected), found
    assert all(line.startswith(start) for line, start in zip(found, expected, strict=True)), found


def test_t17_all_errors_at_once_in_order(tmp_path: Path):
    resources = {"storage_small": SMALL, "flat": NO_STORAGE}
    rules = {
        "cpu": {"max_threshold": 2, "resource_types": ["nope"]},
        "storage": {"max_threshold": 0.8, "min_threshold": 0.8},
    }
    given = autoscaler(tikv=tikv(resources=resources, rules=rules), tidb={"rules": {"storage": {"max_threshold": 0.8}}})
    fields = [line.partition(": ")[0] for line in lines(run_validate(tmp_path, given, cluster()))]
    assert fields == [
        "spec.tidb.rules.storage",
        "spec.tikv.resources.flat.storage",
        "spec.tikv.rules.cpu.max_threshold",
        "spec.tikv.rules.cpu.resource_types",
        "spec.tikv.rules.storage.min_threshold",
    ]


def test_reserved_types_need_no_size(tmp_path: Path):
    odd = {"count": 4, "cpu": "nothing"}
    given = autoscaler(tikv=tikv(resources={"storage_small": SMALL, "default_homogeneous_tikv": odd}))
    assert lines(run_validate(tmp_path, given, cluster())) == []


def test_a_base_cluster_without_memory_will_do(tmp_path: Path):
    base = cluster(tidb={"replicas": 2, "requests": {"cpu": 4}})
    assert lines(run_validate(tmp_path, autoscaler(tidb={"rules": CPU}), base)) == []


def test_a_namespace_may_let_autoscalers_of_others_in(tmp_path: Path):
    given = autoscaler(cluster={"name": "db", "namespace": "other"}, tikv=tikv())
    base = {**cluster(), "metadata": {"name": "db", "namespace": "other"}}
    annotations = {"autoscaler.tidb.pingcap.com/allow-from": "team, prod"}
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "other", "annotations": annotations}}
    assert lines(run_validate(tmp_path, given, base, namespace)) == []
    namespace["metadata"] = {"name": "other", "annotations": {"autoscaler.tidb.pingcap.com/allow-from": "production"}}
    assert len(lines(run_validate(tmp_path, given, base, namespace))) == 1


def test_resources_of_the_whole_are_ignored_with_a_warning(tmp_path: Path):
    ended = run_validate(tmp_path, autoscaler(resources=[{"resource_type": "x"}], tikv=tikv()), cluster())
    assert (ended.returncode, ended.stdout) == (0, "")
    assert ended.stderr.startswith("warning: spec.resources: ignored")


def test_thresholds_that_lie_close_together_are_a_warning(tmp_path: Path):
    ended = run_validate(tmp_path, autoscaler(tikv=tikv(rules=rule(min_threshold=0.7))), cluster())
    assert (ended.returncode, ended.stdout) == (0, "")
    assert "spec.tikv.rules.cpu: thresholds 0.7 and 0.8 lie close together" in ended.stderr
    assert run_validate(tmp_path, autoscaler(tikv=tikv(rules=rule(min_threshold=0.6))), cluster()).stderr == ""


def test_what_has_another_shape_is_reported_by_the_schema(tmp_path: Path):
    found = lines(run_validate(tmp_path, autoscaler(tikv=tikv(rules=rule(max_threshold="high"))), cluster()))
    assert len(found) == 1
    assert found[0].startswith("spec.tikv.rules.cpu.max_threshold: ")


def test_unknown_fields_are_errors(tmp_path: Path):
    found = lines(run_validate(tmp_path, autoscaler(tikv=tikv(minReplicas=1)), cluster()))
    assert found == ["spec.tikv.minReplicas: unknown field"]


def test_a_status_is_not_judged(tmp_path: Path):
    given = {**autoscaler(tikv=tikv()), "status": {"tikv": {"g": {"currentReplicas": 3}}}}
    assert lines(run_validate(tmp_path, given, cluster())) == []


@pytest.mark.parametrize(
    ("given", "others", "complaint"),
    [
        ("{", [cluster()], "tac.yaml: line"),
        (cluster(), [cluster()], "tac.yaml: has 0 TidbClusterAutoScalers"),
        (autoscaler(), [autoscaler()], "--tc: has no TidbCluster db; found none"),
        (autoscaler(), [{**cluster(), "spec": {"tikv": {"replicas": "3"}}}], "tc.yaml: spec.tikv.replicas"),
        (autoscaler(cluster={"name": "other"}), [cluster()], "has no TidbCluster other; found prod/db"),
    ],
    ids=["unreadable", "another kind", "no cluster", "odd cluster", "another cluster"],
)
def test_what_cannot_be_used_ends_with_2(tmp_path: Path, given: Any, others: list[Json], complaint: str):
    ended = run_validate(tmp_path, given, *others)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert complaint in ended.stderr


@pytest.mark.parametrize("others", [[cluster()], [autoscaler()]], ids=["another cluster", "no cluster"])
def test_what_needs_no_cluster_is_reported_without_one(tmp_path: Path, others: list[Json]):
    given = autoscaler(cluster={"name": "db", "namespace": "other"}, tikv=tikv(rules=rule(max_threshold=2)))
    found = lines(run_validate(tmp_path, given, *others))
    assert found[0] == "spec.cluster.namespace: namespace other does not allow autoscalers of prod"
    assert found[1].startswith("spec.tikv.rules.cpu.max_threshold: ")
    assert len(found) == 2


# ---- plimsoll validate


def judge(*objects: Json) -> CommandResult:
    return plimsoll("validate", "-f", "-", stdin="---\n".join(map(yaml.safe_dump, objects)))


def test_plimsoll_validate_judges_autoscalers_too():
    good = autoscaler(tikv={"rules": {"cpu": {"max_threshold": 0.8}}})
    assert judge(good).stdout == "TidbClusterAutoScaler/prod/as1 valid\n"
    ended = judge(autoscaler(tikv=tikv(rules=rule(max_threshold=2))))
    assert (ended.returncode, ended.stdout.split(": ")[0]) == (1, "spec.tikv.rules.cpu.max_threshold")


def test_plimsoll_validate_asks_the_cluster_if_it_is_given_along():
    ended = judge(autoscaler(tikv=tikv()), cluster(tikv=None))
    assert ended.returncode == 1
    assert "spec.tikv: the TidbCluster has no spec.tikv" in ended.stdout
    assert "TidbCluster/prod/db valid" in ended.stdout


def test_plimsoll_validate_reports_the_schema_first():
    ended = judge(autoscaler(tikv=tikv(scaleInInterval=3)))
    assert (ended.returncode, ended.stdout) == (1, "spec.tikv.scaleInInterval: unknown field\n")
