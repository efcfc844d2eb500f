from __future__ import annotations

import json
from pathlib import Path

from tests.kube.diagnosis.examinations import ADMIN, GUEST, DiagnosedCluster, found

PINGCAP = ("tidbclusters", "tidbclusterautoscalers")


def test_a_missing_definition_is_a_failure_for_a_controller_that_was_asked_for():
    with DiagnosedCluster() as cluster:
        examination = cluster.examined("tidb")
    finding = found(examination, "definitions.tidb")
    assert finding.level == "fail"
    assert finding.message == "missing: tidbclusterautoscalers.pingcap.com, tidbclusters.pingcap.com"
    ours, theirs = finding.fix.splitlines()
    assert ours.endswith("crds/tidbclusterautoscalers.yaml")
    assert theirs == "install TiDB Operator, which provides pingcap.com"


def test_a_missing_definition_is_a_warning_if_the_controller_was_not_requested():
    with DiagnosedCluster() as cluster:
        examination = cluster.examined()
    assert found(examination, "definitions.tidb").level == "warn"
    assert examination.is_healthy


def test_definitions_that_are_served_in_a_good_version_will_do_whoever_asks():
    with DiagnosedCluster() as cluster:
        for plural in PINGCAP:
            cluster.define(plural, "pingcap.com", "v1alpha1")
        for token in (ADMIN, GUEST):  # a guest sees them in discovery only
            assert found(cluster.examined("tidb", token=token), "definitions.tidb").level == "ok"


def test_one_of_several_versions_is_enough():
    with DiagnosedCluster() as cluster:
        for plural in ("kafkas", "kafkanodepools"):
            cluster.define(plural, "kafka.strimzi.io", "v1beta2")
        cluster.define("strimzipodsets", "core.strimzi.io", "v1beta2")
        cluster.define("managedkafkas", "managedkafka.bf2.org", "v1alpha1")
        assert found(cluster.examined("fleet-agent"), "definitions.fleet-agent").level == "ok"


def test_another_version_will_not_do():
    with DiagnosedCluster() as cluster:
        cluster.define(PINGCAP[0], "pingcap.com", "v1alpha1")
        cluster.define(PINGCAP[1], "pingcap.com", "v2")
        finding = found(cluster.examined("tidb"), "definitions.tidb")
    assert finding.level == "fail"
    assert finding.message == "served in v2, not in v1alpha1: tidbclusterautoscalers.pingcap.com"


def test_a_definition_whose_names_are_taken_is_not_established():
    with DiagnosedCluster() as cluster:
        cluster.define("tidbclusters", "pingcap.com", "v1alpha1")
        crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
        rival = cluster.ask("GET", f"{crds}/tidbclusters.pingcap.com")
        del rival["metadata"], rival["status"]
        rival["metadata"] = {"name": "tidbclusterautoscalers.pingcap.com"}
        rival["spec"]["names"] |= {"plural": "tidbclusterautoscalers"}
        cluster.made(crds, rival)
        cluster.run.advance_by(10)
        finding = found(cluster.examined("tidb"), "definitions.tidb")
    assert finding.level == "fail"
    assert finding.message.startswith("its names clash (")
    assert finding.message.endswith("): tidbclusterautoscalers.pingcap.com")


def test_our_own_definition_is_installed_from_the_file_that_is_named():
    with DiagnosedCluster() as cluster:
        finding = found(cluster.examined("requests"), "definitions.requests")
        assert finding.level == "fail"
        named = Path(finding.fix.removeprefix("kubectl apply -f "))
        crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
        cluster.ask("POST", crds, named.read_bytes(), content="application/yaml")
        cluster.run.advance_by(10)
        mended = found(cluster.examined("requests"), "definitions.requests")
    assert mended.level == "ok"
    assert "provisioningclasses.autoscaling.x-k8s.io" in mended.message
    assert json.dumps(mended.details)


def test_a_controller_without_custom_resources_has_nothing_to_say_about_them():
    with DiagnosedCluster() as cluster:
        checks = [finding.check for finding in cluster.examined("nodes", "kubelet").findings]
    assert not [check for check in checks if check.startswith("definitions.")]
