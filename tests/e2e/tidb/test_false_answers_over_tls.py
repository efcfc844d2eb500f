"""Over TLS, behind a proxy that lies: `plimsoll run tidb` removes no group and lowers no replicas.

A part of the grid of `tests/tidb/lying_world.py`, with the lists and watches of one process. Answers of PD and of the
planner are true.
"""

from __future__ import annotations

import json
import random
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import yaml

from tests.e2e.kube.clusters import cluster_kubeconfig
from tests.e2e.kubeconfigs import ClusterAccess, read_access
from tests.e2e.nodes.recording_proxies import ProxyRecording, recording, run_with_lie
from tests.e2e.tidb.fake_servers import serving
from tests.e2e.tidb.test_run_tidb_live import AutoscalerProcess, TidbNamespace, until
from tests.effort import share_of
from tests.faults.faulty_transport import Read
from tests.faults.lies import METRICS_LIES, Lie
from tests.tidb.autoscaled_clusters import group
from tests.tidb.lying_world import KUBERNETES_READS, WATCHES

if TYPE_CHECKING:
    from pathlib import Path

OTHERS = METRICS_LIES | {Lie.CLOCK_AHEAD, Lie.CLOCK_BEHIND, Lie.LEASE_STOLEN}
"""The clock and the lease of another process cannot be changed from here."""


def choose_cells(count: int) -> list[tuple[Read, Lie]]:
    reads = [Read(*read.split()) for read in (*KUBERNETES_READS, *WATCHES) if not read.startswith("get ")]
    cells = [(read, lie) for read in reads for lie in Lie if lie not in OTHERS]
    return random.Random("over TLS").sample(cells, count)


def write_kubeconfig(folder: Path, access: ClusterAccess, proxy: ProxyRecording) -> Path:
    cluster = {"server": proxy.url, "certificate-authority": str(folder / "proxy-authority.crt")}
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "it", "cluster": cluster}],
        "users": [{"name": "it", "user": {"token": access.token} if access.token else {}}],
        "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it"}}],
        "current-context": "it",
    }
    file = folder / "proxied.kubeconfig"
    file.touch(mode=0o600)
    file.write_text(yaml.safe_dump(document))
    return file


def test_a_part_of_the_grid_removes_nothing(tmp_path: Path) -> None:
    plans: list[dict[str, Any]] = [group(1)]
    with ExitStack() as stack:
        kubeconfig = stack.enter_context(cluster_kubeconfig(tmp_path / "cluster"))
        access = read_access(kubeconfig)
        namespace = stack.enter_context(TidbNamespace(access))
        proxy = stack.enter_context(recording(kubeconfig, tmp_path, as_owner=not access.token))
        proxy.has_faults = True
        planner = stack.enter_context(serving(lambda *_: (200, json.dumps(plans).encode())))
        pd = stack.enter_context(serving(lambda *_: (200, b'{"count":0,"stores":[]}')))
        through = write_kubeconfig(tmp_path, access, proxy)
        autoscaler = stack.enter_context(AutoscalerProcess(through, planner, pd, namespace=namespace.name))
        (name,) = until(namespace.groups, "a group becomes a cluster")
        struck, cells = 0, choose_cells(share_of(60))
        for read, lie in cells:
            struck += run_with_lie(proxy, read, lie)
            replicas = {cluster: namespace.cluster(cluster)["spec"]["tikv"]["replicas"] for cluster in ("db", name)}
            assert replicas == {"db": 3, name: 1}, (read, lie)
        assert namespace.groups() == [name]
        assert "Traceback" not in autoscaler.stop()
    print(f"{len(cells)} cells over TLS, {struck} with falsified answers, 0 with wrongful removals")  # noqa: T201
    assert struck > len(cells) / 3
