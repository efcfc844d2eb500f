"""Runs the story of docs/kafka-story.md and writes the page: `make kafka-story`.

It needs what `plimsoll kafka try` needs, and kubectl. A page is written only if nothing was lost and nothing is left.
"""

from __future__ import annotations

import os
import platform
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from plimsoll.kafka.brokers.ports import ConfigResource
from tests.e2e.kafka.admins import FOLLOWER_RATE, LEADER_RATE
from tests.e2e.kafka.record_traffic import RecordTraffic
from tests.e2e.kafka.test_scaling import TOPICS, TriedKafka, create_topics, kill_node
from tests.e2e.timeouts import PATIENCE_S
from tests.e2e.up.up_processes import running_command
from tests.kafka.story_page import PLACE, STORY

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

REPOSITORY: Final = Path(__file__).parents[3]
PAGE: Final = REPOSITORY / "docs" / "kafka-story.md"
DATA: Final = ".plimsoll-kafka"
TRY: Final = "plimsoll kafka try"
_LOOK_S: Final = 0.3


class KafkaStory:
    """A run. `folder` is where the commands run."""

    def __init__(self, kafka: TriedKafka, folder: Path) -> None:
        self._kafka = kafka
        self._folder = folder
        self._traffic = RecordTraffic(kafka.bootstrap, TOPICS)
        self._moved_s: dict[str, float] = {}

    def run(self) -> str:
        create_topics(self._kafka)
        with self._traffic:
            return "".join(self._run_line(line) for line in STORY.splitlines())

    def _run_line(self, line: str) -> str:
        places: dict[str, Callable[[], str]] = {
            "machine": _describe_machine,
            "start_s": lambda: f"{self._kafka.up.ready_after_s:.0f} s",
            "topics": lambda: str(len(TOPICS)),
            "bootstrap": lambda: self._kafka.bootstrap.partition(",")[0],
            "grow": lambda: self._watch("grow", self._is_grown),
            "crash": self._crash,
            "shrink": lambda: self._watch("shrink", self._is_shrunk),
            "figures": self._sum_up,
        }
        shown = PLACE.sub(lambda match: places[match[1]](), line)
        sys.stderr.write(f"{line}\n")
        output = self._run_command(shown.removeprefix("$ ")) if shown.startswith("$ ") else ""
        return f"{shown}\n{output}"

    # ---- commands

    def _run_command(self, command: str) -> str:
        if command == TRY:
            return self._format(self._kafka.up.screen)
        environment = {
            **os.environ,
            "KUBECONFIG": str(self._folder / DATA / "kubeconfig"),
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "NO_COLOR": "1",
        }
        ended = subprocess.run(
            ["sh", "-c", command],
            cwd=self._folder,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE_S,
        )
        assert ended.returncode == 0, f"{command}: {ended.stdout}{ended.stderr}"
        return self._format(ended.stdout)

    def _format(self, output: str) -> str:
        shown = output.replace(f"{self._folder}/", "").strip("\n")
        return "".join(f"{line}".rstrip() + "\n" for line in shown.splitlines())

    # ---- what happens

    def _watch(self, name: str, is_over: Callable[[], bool]) -> str:
        """A table of what changed until the operation is over."""
        began_s = time.monotonic()
        rows: list[tuple[str, ...]] = []
        while True:
            ended = is_over()
            seen = self._look()
            if not rows or seen != rows[-1][1:]:
                rows.append((f"{time.monotonic() - began_s:.0f}", *seen))
            if ended:
                break
            assert time.monotonic() < began_s + PATIENCE_S, rows
            time.sleep(_LOOK_S)
        self._moved_s[name] = time.monotonic() - began_s
        titles = ("s", "state", "broker 3", "its pod", "its replicas", "reassignments", "throttled brokers")
        return _format_table(titles, rows)

    def _look(self) -> tuple[str, ...]:
        kafka = self._kafka
        pod = kafka.find_pod(3)
        registered = kafka.list_registered()
        return (
            kafka.read_state() or "none",
            "registered" if 3 in registered else "not registered",
            "none" if pod is None else "leaves" if "deletionTimestamp" in pod["metadata"] else _read_readiness(pod),
            str(kafka.count_replicas().get(3, 0)),
            str(len(kafka.ask(lambda admin: admin.list_reassignments()))),
            ", ".join(self._list_throttled(registered)) or "none",
        )

    def _list_throttled(self, brokers: list[int]) -> list[str]:
        """The brokers with a rate. One that starts does not answer yet, and has none."""
        resources = [ConfigResource("broker", str(broker)) for broker in brokers]
        rates = (LEADER_RATE, FOLLOWER_RATE)
        found = self._kafka.ask(lambda admin: admin.describe_configs(resources, rates))
        return sorted(
            resource.name
            for resource, entries in found.items()
            if isinstance(entries, dict) and any(entry.is_dynamic and entry.value for entry in entries.values())
        )

    def _is_grown(self) -> bool:
        return bool(self._kafka.count_replicas().get(3)) and self._kafka.read_state() == "Ready"

    def _is_shrunk(self) -> bool:
        return 3 not in self._kafka.list_registered() and self._kafka.read_state() == "Ready"

    def _crash(self) -> str:
        restarts = self._kafka.count_restarts(1)
        began_s = time.monotonic()
        kill_node(self._folder, "my-cluster-brokers-1")
        self._kafka.up.until(lambda: self._kafka.count_restarts(1) == (restarts or 0) + 1, "broker 1 is back")
        return f"it was ready again after {time.monotonic() - began_s:.0f} s."

    def _sum_up(self) -> str:
        traffic, kafka = self._traffic, self._kafka
        traffic.finish()
        unread, disordered, left = traffic.list_unread(), traffic.list_disordered(), kafka.list_leftovers()
        assert (unread, disordered, left, traffic.refused) == ([], [], [], [])
        acknowledged = sum(map(len, traffic.acknowledged.values()))
        rows = [
            ("from `kubectl scale` until replicas are on the fourth broker", f"{self._moved_s['grow']:.0f} s"),
            ("from `kubectl scale` until it is gone and unregistered", f"{self._moved_s['shrink']:.0f} s"),
            ("acknowledged records", f"{acknowledged:,}"),
            ("writes that failed", str(len(traffic.refused))),
            ("acknowledged records that were not read", str(len(unread))),
            ("partitions whose records came in another order", str(len(disordered))),
            ("throttles, cordons and reassignments that are left", str(len(left))),
        ]
        return _format_table(("what", "figure"), rows)


def _describe_machine() -> str:
    load = os.getloadavg()[0]
    cores = f"{os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}"
    return f"The machine: {cores}; its load was {load:.0f} at the beginning, from other work too."


def _read_readiness(pod: dict[str, Any]) -> str:
    statuses = pod.get("status", {}).get("containerStatuses", [])
    return "ready" if statuses and all(status["ready"] for status in statuses) else "starts"


def _format_table(titles: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    lines = [titles, ("---",) * len(titles), *rows]
    table = "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
    return re.sub(r"^\|( ---)", r"|---", table).replace("| --- ", "|---").replace("|--- |", "|---|")


def main() -> None:
    with tempfile.TemporaryDirectory() as directory:
        folder = Path(directory)
        data = folder / DATA
        words = [sys.executable, "-m", "plimsoll", "kafka", "try", "--data", str(data)]
        with running_command(words, data) as up:
            page = KafkaStory(TriedKafka(up), folder).run()
            up.stop()
    PAGE.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
