"""`examples/tidb/breathing.yaml` in what `plimsoll up` runs: it does what its first lines promise, again and again."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import yaml

from tests.app.test_embedded_tidb import UpTidbCluster

EXAMPLE = Path(__file__).parents[2] / "examples" / "tidb" / "breathing.yaml"
HOME = "breathing"
PATHS = {
    "ConfigMap": f"/api/v1/namespaces/{HOME}/configmaps",
    "TidbCluster": f"/apis/pingcap.com/v1alpha1/namespaces/{HOME}/tidbclusters",
    "TidbClusterAutoScaler": f"/apis/pingcap.com/v1alpha1/namespaces/{HOME}/tidbclusterautoscalers",
}


def _group(world: UpTidbCluster) -> int:
    """How many stores the group has; none without a group."""
    found: list[dict[str, Any]] = world.get(PATHS["TidbCluster"])["items"]
    return sum(manifest["spec"]["tikv"]["replicas"] for manifest in found if "cluster" in manifest["spec"])


def test_the_cluster_breathes_every_twenty_minutes() -> None:
    with UpTidbCluster() as world:
        world.namespace(HOME)
        for manifest in yaml.safe_load_all(EXAMPLE.read_text()):
            if manifest["kind"] in PATHS:
                world.made(PATHS[manifest["kind"]], manifest)
        sizes = [_group(world.after(30)) for _ in range(60)]

    assert sizes[4] == 0
    breaths = [after for before, after in pairwise([0, *sizes]) if after != before]
    assert breaths == [2, 1, 0, 2, 1, 0]
