"""The journal of `plimsoll up`: asked while it is written, after kill -9, and at the next start; and record, replay."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

from plimsoll.core.plans import Ref
from plimsoll.journal.entries import Entry, Query
from plimsoll.journal.journal_file import JOURNAL_FILE, JournalFile
from tests.e2e.up.up_processes import REPOSITORY, UpProcess, needs_kubectl, running

if TYPE_CHECKING:
    from pathlib import Path

needs_kubectl()

TOO_LARGE = """
apiVersion: v1
kind: Pod
metadata: {name: too-large}
spec:
  containers:
  - {name: c, image: nginx, resources: {requests: {cpu: "5000"}}}
"""


def plimsoll(*words: str | Path, code: int = 0) -> str:
    command = [sys.executable, "-m", "plimsoll", *map(str, words)]
    ended = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False, timeout=120)
    assert ended.returncode == code, ended
    return ended.stdout


def entries(data: Path) -> dict[int, Entry]:
    if not (data / JOURNAL_FILE).exists():
        return {}
    journal = JournalFile(data / JOURNAL_FILE, read_only=True)
    try:
        return {entry.number: entry for entry in journal.list_entries(Query(limit=None))}
    finally:
        journal.close()


def is_reported(up: UpProcess, name: str) -> bool:
    return any(
        Ref(kind="pod", namespace="default", name=name) in entry.list_subjects() for entry in entries(up.data).values()
    )


def test_killed_while_it_decides_it_loses_nothing_it_reported(tmp_path: Path):
    data = tmp_path / "data"
    with running(data, "--nodes", "1") as up:
        up.kubectl("apply", "-f", "-", stdin=TOO_LARGE)
        up.kubectl("create", "deployment", "web", "--image=nginx", "--replicas=30")
        up.kubectl("set", "resources", "deployment", "web", "--requests=cpu=2")
        up.until(lambda: is_reported(up, "too-large"), "the pod that fits nowhere is told of")
        up.until(lambda: any(entry.plan.actions for entry in entries(data).values()), "nodes were asked for")
        seen = entries(data)
        up.die()
        after = entries(data)
        assert after.items() >= seen.items()
        assert "no node can be added for it" in plimsoll("why", "pod/too-large", "--data", data)
    with running(data) as up:
        up.until(lambda: len(entries(data)) > len(after), "it goes on writing where it was")
        assert entries(data).items() >= after.items()


def test_everything_can_be_asked_of_a_running_cluster(tmp_path: Path):
    with running(tmp_path / "data", "--nodes", "1") as up:
        cluster = ["--kubeconfig", str(up.data / "kubeconfig")]
        up.kubectl("apply", "-f", "-", stdin=TOO_LARGE)
        up.until(lambda: is_reported(up, "too-large"), "the pod that fits nowhere is told of")

        def last_plan() -> bool:
            maps = json.loads(up.kubectl("get", "configmaps", "-n", "kube-system", "-o", "json"))["items"]
            named = {config_map["metadata"]["name"]: config_map.get("data", {}) for config_map in maps}
            return "pod_default_too-large" in named.get("plimsoll-nodes-last-plans", {})

        up.until(last_plan, "the last plans are in the cluster")
        assert "stays unschedulable" in plimsoll("why", "pod/too-large", *cluster)

        recording = tmp_path / "recording.json.gz"
        plimsoll("record", *cluster, "--out", recording)
        assert json.loads(plimsoll("replay", recording, "-o", "json"))["same"] is True

        plimsoll("pause", *cluster, "--reason", "a test")
        plimsoll("nodes", "configure", *cluster, "--max-cpu=100", "--scan-interval=1s")

        def status() -> dict[str, Any]:
            found: dict[str, Any] = json.loads(plimsoll("nodes", "status", *cluster, "-o", "json"))
            return found

        up.until(lambda: (status()["options"] or {}).get("max-cpu") == 100, "the new limit is in force")
        reported = status()
        assert reported["paused"] == "a test"
        assert [group["name"] for group in reported["groups"]] == ["workers"]
        assert reported["problems"] == []
        plimsoll("resume", *cluster)
        assert status()["paused"] == ""
