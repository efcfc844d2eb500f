"""A management cluster gives a kubeconfig that does not work: the cluster says so, and everything else goes on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from plimsoll.fleet.model.provided import CallFailed, FailureKind, SetupOrder, name_cluster
from plimsoll.fleet.model.statuses import ClusterStatus
from tests.fleet.providers.capi_worlds import build_kubeconfig
from tests.fleet.workers.cluster_lives import ROW_A, UNITS, ClusterApiWorld, Lives

if TYPE_CHECKING:
    from plimsoll.fleet.model.clusters import Cluster


def find_new(lives: Lives) -> Cluster | None:
    return next((row for row in lives.list_rows() if row.id != ROW_A), None)


@pytest.mark.parametrize(
    ("text", "named"),
    [("<html>Bad gateway</html>", "must be a mapping"), (build_kubeconfig("nowhere", token="hush"), "no route")],
)
def test_a_cluster_without_a_usable_kubeconfig_waits_and_goes_on_with_one(text: str, named: str):
    with Lives(ClusterApiWorld) as lives:
        lives.add_ready(ROW_A, used=UNITS)
        assert isinstance(lives.provider, ClusterApiWorld)
        world = lives.provider.world
        world.data_planes.kubeconfig = lambda _cluster_id: text
        lives.tick_until(lambda: (row := find_new(lives)) is not None and named in row.status_details)
        lives.tick(10)
        row = find_new(lives)
        assert row is not None
        assert row.status is ClusterStatus.PROVISIONED
        assert name_cluster(row.id) in row.status_details
        assert "hush" not in row.status_details
        found = lives.run.run_until(world.build_provider().read_setup(row, SetupOrder()))
        assert isinstance(found, CallFailed)
        assert found.kind is not FailureKind.UNREACHABLE, "the other clusters of the provider would wait"
        ready = lives.find_row(ROW_A)
        assert ready is not None
        assert (ready.status, ready.status_details) == (ClusterStatus.READY, "")

        world.data_planes.kubeconfig = build_kubeconfig
        usable = build_kubeconfig(world.data_planes.made[-1])
        lives.run.run_until(world.set_kubeconfig(usable, name=name_cluster(row.id)))
        lives.tick_until(lambda: (row := find_new(lives)) is not None and row.status is ClusterStatus.READY)
        row = find_new(lives)
        assert row is not None
        assert row.status_details == ""
        assert lives.provider.count_created() == 2
