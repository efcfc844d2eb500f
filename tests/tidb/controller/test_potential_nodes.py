"""`--node-count=potential`: nodes that the node autoscaler may still add count as if they were there."""

from __future__ import annotations

import pytest

from tests.tidb.controller.scaled_worlds import EmbeddedServer, ScaledWorld

STATUS = """\
autoscalerStatus: Running
nodeGroups:
- name: workers
  health: {cloudProviderTarget: 3, minSize: 0, maxSize: 8}
- name: full
  health: {cloudProviderTarget: 5, minSize: 0, maxSize: 5}
- name: odd
  health: {maxSize: many}
"""


@pytest.mark.parametrize(
    ("potential", "status", "counted"),
    [(False, STATUS, 10), (True, STATUS, 15), (True, "[", 10), (True, None, 10)],
    ids=["ready", "potential", "unreadable status", "no status"],
)
def test_what_is_counted(potential: bool, status: str | None, counted: int) -> None:
    with ScaledWorld(EmbeddedServer, potential_nodes=potential) as world:
        assert isinstance(world.server, EmbeddedServer)
        if status is not None:
            body = {"metadata": {"name": "cluster-autoscaler-status"}, "data": {"status": status}}
            world.server.world.made("/api/v1/namespaces/kube-system/configmaps", body)
        world.autoscaler().cluster().once()
        assert [one["node_count"] for one in world.planner.asked] == [counted]
