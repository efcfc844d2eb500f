"""Whatever the API server and the provider answer, no live instance is deleted and no pod evicted for it."""

from __future__ import annotations

from tests.nodes.faults.audited_clusters import AuditedCluster, owned


def test_without_faults_only_the_empty_node_is_removed():
    with AuditedCluster() as cluster:
        cluster.minutes(2)
        cluster.take({"apply": [owned("more", 2, cpu="2600m")]})
        cluster.minutes(3)
        outcome = cluster.outcome()
        assert cluster.audit.wrongful == []
        assert {name: group["target"] for name, group in outcome["nodeGroups"].items()} == {
            "g": 6,
            "bare": 2,
            "spare": 0,
        }
        assert None not in outcome["pods"].values()
