"""Fifty pods on a cluster without machines, and their end: groups are made, grown, emptied and deleted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.e2e.nodes.live_clusters import autoscaling

if TYPE_CHECKING:
    from tests.e2e.nodes.live_clusters import Cluster


def test_fifty_pods_get_machines_of_new_groups_and_give_them_back(cluster: Cluster):
    with autoscaling(cluster, cluster.as_account("fifty")) as autoscaler:
        cluster.deploy("fifty", 50)
        cluster.until(lambda: cluster.running("fifty") == 50, "fifty pods run")
        groups = cluster.items("nodegroups")
        assert groups
        assert all(group["spec"]["autoprovisioned"] for group in groups)
        assert len(cluster.names("nodes")) == sum(group["spec"]["target"] for group in groups)
        cluster.scale("fifty", 0)
        cluster.until(lambda: not cluster.names("nodes"), "no node is left")
        cluster.until(lambda: not cluster.names("nodegroups"), "no group is left")
        assert autoscaler.process.poll() is None, autoscaler.stated
