"""The commands of the page about the TiDB autoscaler to the end: scale-out, dry run, scale-in, `why`, deletion.

It takes some minutes in real time, because metrics of an instance count two minutes after its start. The load is as
the page says how to change it: hot at once, and idle as soon as the group runs.
"""

from __future__ import annotations

import json
import re
import shlex
from typing import TYPE_CHECKING

from tests.e2e.up.documented_commands import DocumentedCommand, read_commands
from tests.e2e.up.newcomers import Newcomer, is_typed, read_page
from tests.e2e.up.up_processes import named, needs_kubectl, running

if TYPE_CHECKING:
    from pathlib import Path

    from tests.e2e.up.up_processes import UpProcess

needs_kubectl()

PAGE = read_page("docs/tidb-autoscaler.md")
SHORT_TIMES = "--scale-down-unneeded-time=20s --scale-down-delay-after-add=10s --scale-down-delay-after-delete=0s"
HOT = "seconds, tikv_cores, tidb_cores, storage_gib, hot_instances, hot_share\n0, 2.7, 0.4, 3, 1, 0.6667\n"
IDLE = "seconds, tikv_cores, tidb_cores, storage_gib, hot_instances, hot_share\n0, 0.3, 0.1, 3, 0, 0\n"
PATIENCE_S = 400


def set_load(newcomer: Newcomer, curve: str) -> None:
    patch = json.dumps({"data": {"repeat": "false", "curve.csv": curve}})
    answer = newcomer.run(f"kubectl patch configmap load -n breathing --type=merge -p {shlex.quote(patch)}")
    assert answer.code == 0, answer


def read_steps(up: UpProcess) -> list[DocumentedCommand]:
    """The commands of "Try it", with the ports of this `up`."""
    section = PAGE.split("\n## Try it\n")[1].split("\n## ")[0]
    ports = {
        "http://127.0.0.1:12379": named(up.screen, r"PD at (http://\S+?:\d+)"),
        "http://127.0.0.1:9092": named(up.screen, r"TiDB planner at (http://\S+?:\d+)"),
    }
    for address, here in ports.items():
        section = section.replace(address, here)
    return [documented for documented in read_commands(section) if is_typed(documented.command)]


def test_the_page_to_the_end(tmp_path: Path):
    with running(tmp_path / "data") as up:
        newcomer = Newcomer(tmp_path / "folder", up.data)
        assert newcomer.run(f"plimsoll nodes configure {SHORT_TIMES}").code == 0
        apply, *steps = read_steps(up)
        assert len(steps) == 7, steps
        newcomer.compare(apply)
        set_load(newcomer, HOT)
        for documented in steps[:4]:
            newcomer.compare(documented, patience_s=PATIENCE_S)
        set_load(newcomer, IDLE)
        for documented in steps[4:]:
            newcomer.compare(documented, patience_s=PATIENCE_S)
        up.until(lambda: "auto-" not in newcomer.run(steps[-1].command).out, "the group is gone")
        up.until(lambda: "node/nodeauto" not in newcomer.run(steps[-1].command).out, "and its machines")
        [delete_all] = re.findall(
            r"^kubectl delete tidbclusterautoscalers .*$", read_page("docs/uninstall.md"), re.MULTILINE
        )
        [delete] = re.findall(r"`(kubectl delete namespace breathing)`", PAGE)
        for command in (delete_all, delete):
            answer = newcomer.run(command)
            assert answer.code == 0, answer
        assert newcomer.run("kubectl get tidbclusters,tidbclusterautoscalers -A -o name").out == ""
