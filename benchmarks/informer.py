"""Informers over TLS: syncing a cluster's pods and following their changes, against the official Python client.

Server and client are processes of their own on the same machine; seconds of the processor and memory are the client's.
The official client is measured with its own informer, on as many pods as it can take in a few seconds, and scaled: its
cost is linear. A stall is by how much a timer on the informer's event loop came late while it synced.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from typing import TYPE_CHECKING, Any, Final

from benchmarks.informer_server import server_of_pods

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.informer_server import PodServer

    Figures = dict[str, float]

SIZES: Final = (20_000, 100_000)
OFFICIAL_PODS: Final = 4_000
EVENTS: Final = 8_000
OFFICIAL_EVENTS: Final = 2_000
ROUNDS: Final = 2

LESS_CPU: Final = 20
LESS_MEMORY: Final = 8
LONGEST_STALL_MS: Final = 100

_WORST: Final = ("peak_mib", "stall_ms", "stall_cpu_ms")


def rows() -> Iterator[dict[str, Any]]:
    with tempfile.TemporaryDirectory() as directory:
        kept, official = 0, dict[Any, Any]()
        for count in SIZES:
            with server_of_pods(directory, kept=kept, count=count) as server:
                official = official or summed_up(server, "official-sync", OFFICIAL_PODS)
                yield from syncs(server, count, official)
                if not kept:
                    yield from watches(server)
            kept = count


def row(name: str, value: float, unit: str, *, target: str = "", met: bool | None = None, note: str = "") -> Any:
    return {"name": name, "value": value, "unit": unit, "target": target, "met": met, "note": note}


def measured(server: PodServer, what: str, count: int) -> Figures:
    """The figures of a process that does it. Logs come before them on the same stream."""
    command = [sys.executable, "-m", "benchmarks.informer_clients", what, server.kubeconfig, str(count)]
    reported = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True).stdout
    found: Figures = json.loads(reported.splitlines()[-1])
    return found


def summed_up(server: PodServer, what: str, count: int) -> Figures:
    """The least time of the rounds, but the highest peak and the longest stall: those are bounds."""
    rounds = [measured(server, what, count) for _ in range(ROUNDS)]
    return {key: (max if key in _WORST else min)(figures[key] for figures in rounds) for key in rounds[0]}


def syncs(server: PodServer, count: int, official: Figures) -> Iterator[dict[str, Any]]:
    served_s = server.server.cpu_s()
    ours = summed_up(server, "plimsoll-sync", count)
    served_s = (server.server.cpu_s() - served_s) / ROUNDS
    name, scale = f"sync of {count:,} pods", count / OFFICIAL_PODS
    scaled = f"extrapolated from {OFFICIAL_PODS:,} pods"
    yield row(f"{name}: wall", ours["wall_s"], "s", note=f"{served_s:.1f} s of the server's processor")
    yield row(f"{name}: CPU", ours["cpu_s"], "s", note=f"{ours['cpu_s'] / count * 1e6:.0f} µs a pod")
    yield row(f"{name}: peak memory", ours["peak_mib"], "MiB", note=f"{ours['peak_mib'] / count * 1024:.1f} KiB a pod")
    yield stall(f"{name}: longest stall", ours)
    yield row(f"{name}, official client: CPU", official["cpu_s"] * scale, "s", note=scaled)
    yield row(f"{name}, official client: peak memory", official["peak_mib"] * scale, "MiB", note=scaled)
    yield ratio(f"{name}: less CPU", official["cpu_s"] * scale / ours["cpu_s"], LESS_CPU)
    yield ratio(f"{name}: less memory", official["peak_mib"] * scale / ours["peak_mib"], LESS_MEMORY)


def watches(server: PodServer) -> Iterator[dict[str, Any]]:
    """Events that lie in the server's history, so that no write is in the figure."""
    ours = summed_up(server, "plimsoll-watch", EVENTS)
    theirs = summed_up(server, "official-watch", OFFICIAL_EVENTS)
    rate, their_rate = EVENTS / ours["wall_s"], OFFICIAL_EVENTS / theirs["wall_s"]
    each_s, their_each_s = ours["cpu_s"] / EVENTS, theirs["cpu_s"] / OFFICIAL_EVENTS
    reported = f"{each_s * 1e6:.0f} µs of the processor each: decoded, cached, told to a handler"
    yield row("watch of pods", rate, "events/s", note=reported)
    yield stall("watch of pods: longest stall", ours)
    reported = f"{their_each_s * 1e6:.0f} µs of the processor each: decoded, nothing more"
    yield row("watch of pods, official client", their_rate, "events/s", note=reported)
    yield row("watch of pods: less CPU", their_each_s / each_s, "times", note="than the official client")


def stall(name: str, ours: Figures) -> Any:
    value = ours["stall_ms"]
    note = f"at most {ours['stall_cpu_ms']:.0f} ms of our processor time between two timers"
    return row(name, value, "ms", target=f"<= {LONGEST_STALL_MS}", met=value <= LONGEST_STALL_MS, note=note)


def ratio(name: str, value: float, target: int) -> Any:
    return row(name, value, "times", target=f">= {target}", met=value >= target, note="than the official client")
