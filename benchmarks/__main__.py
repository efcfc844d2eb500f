"""The runner: `make bench`, `make bench-kafka`, or `python -m benchmarks decode virtual_time` for some.

A module offers `rows()`, which yields `Row`-shaped dicts. The table goes to the terminal as rows come in, all of it
with the machine's description to .benchmarks/latest.json.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import platform
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

SUBJECTS = {
    "decode": "decoding pods, against the official client and plain json",
    "feasible": "the reference scheduling rules",
    "virtual_time": "timers of the virtual loop",
    "cluster_hours": "hours of a simulated cluster in virtual time",
    "storage": "the API server's store: writes, reads, watches, memory, growth",
    "apiserver": "the API server over TLS: creates, gets, lists, watches, memory, growth",
    "heavy_requests": "/livez of the API server during the heaviest requests, against an idle server",
    "churn": "memory of the API server after many short-lived workloads",
    "informer": "informers over TLS: sync and watch of pods, against the official client",
    "planning": "plans of growth and removal: time, dense passes, cost over the bound, memory",
    "planning_rules": "plans for pods with rules about each other: time, cost over the bound and the floor",
    "autoscaler": "one turn of the node autoscaler: cold, after a change, with many pending pods",
    "autoscaler_rules": "turns of the node autoscaler with pods under rules: cold, idle, after small changes",
    "requests": "ProvisioningRequests: the largest one, a batch of checks, many small ones",
    "kafka": "plans for Kafka clusters: time, moves and bytes over the bound",
    "kafka_brokers": "a live Kafka cluster: description, proposal, movements, cost of the engine",
    "kafka_operator": "the Kafka operator with nothing to do: calls, writes, and time against a list",
    "fleet": "the fleet manager: counting 100,000 Kafkas, planning with the counts, requests",
    "fleet_clusters": "clusters of a fleet in one process: an idle hour of 1 and of 5, memory, time to the first node",
    "fleet_chain": "a request for a Kafka until it is ready, by stage, with and without a reserve; J01",
    "console": "the map of the console: filling, encoding and changing 5,000 nodes and 50,000 pods",
    "lease": "leader election: how long no process leads after a kill and after a graceful stop",
    "up_cluster": "plimsoll up with 1,000 nodes and 10,000 pods: memory, pods bound, latency",
}
SEPARATE = {"kafka_brokers"}
"""Subjects with a target of their own (`make bench-kafka`): five real brokers, and a quarter of an hour."""
RESULTS = Path(".benchmarks/latest.json")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Measure and compare.")
    parser.add_argument(
        "subjects",
        nargs="*",
        metavar="SUBJECT",
        help=f"of {', '.join(SUBJECTS)}; if none, all but {', '.join(SEPARATE)}",
    )
    asked = parser.parse_args().subjects or [name for name in SUBJECTS if name not in SEPARATE]
    if unknown := [name for name in asked if name not in SUBJECTS]:
        parser.error(f"no such subject: {', '.join(unknown)} (there are {', '.join(SUBJECTS)})")
    print(f"{'measurement':<58}{'value':>14} {'unit':<14}{'target':<14}met")
    results = [row for name in asked for row in measure(name)]
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps({"machine": machine(), "rows": results}, indent=2) + "\n")
    print(f"\nwritten to {RESULTS}")
    missed = [row["name"] for row in results if row["met"] is False]
    if missed:
        print(f"{len(missed)} below target: {', '.join(missed)}")
    return 1 if missed else 0


def measure(subject: str) -> list[dict[str, Any]]:
    print(f"-- {subject}: {SUBJECTS[subject]}", flush=True)
    rows = []
    for row in importlib.import_module(f"benchmarks.{subject}").rows():
        rows.append({"subject": subject, **row})
        print(line(row), flush=True)
    return rows


def line(row: dict[str, Any]) -> str:
    met = {True: "yes", False: "NO", None: ""}[row["met"]]
    value = f"{row['value']:,.0f}" if abs(row["value"]) >= 1000 else f"{row['value']:.3g}"
    note = f"  ({row['note']})" if row["note"] else ""
    return f"{row['name']:<58}{value:>14} {row['unit']:<14}{row['target'] or '':<14}{met}{note}"


def machine() -> dict[str, Any]:
    return {
        "at": datetime.now(tz=UTC).isoformat(timespec="seconds"),
        "python": platform.python_version(),
        "cores": os.cpu_count(),
        "processor": platform.machine(),
    }


if __name__ == "__main__":
    sys.exit(main())
