"""Decoding a cluster's pods: CPU and memory of Plimsoll, of plain `json.loads`, and of the official Python client.

Every measurement runs in a process of its own, which makes the list, notes what it takes by then, and decodes. The
slow ones are measured on fewer pods and scaled: a hundred thousand would take minutes and gigabytes.

    python -m benchmarks.decode plimsoll 20000     one measurement, as JSON
"""

from __future__ import annotations

import gc
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from benchmarks.real_pods import real_sized_pod
from plimsoll.objects.api.pods import Pod
from plimsoll.objects.codec.decoding import decode_list

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SIZES: Final = (20_000, 100_000)
LONGEST: Final = {"json": 20_000, "official": 2_000}
FASTER_TARGET: Final = 40
SMALLER_TARGET: Final = 10


def rows() -> Iterator[dict[str, Any]]:
    """One row a figure, for the benchmark runner."""
    for count in SIZES:
        ours = measured("plimsoll", count)
        plain = _scaled("json", count)
        theirs = _scaled("official", count)
        yield from _figures(f"{count:,} pods, Plimsoll", ours, note=f"{ours['bytes'] / 2**20:.0f} MiB of JSON")
        yield from _figures(f"{count:,} pods, json.loads", plain, note=_reported("json", count))
        yield from _figures(f"{count:,} pods, official client", theirs, note=_reported("official", count))
        faster, smaller = theirs["cpu_s"] / ours["cpu_s"], theirs["peak_mib"] / ours["peak_mib"]
        yield _ratio(f"{count:,} pods: faster than the official client", faster, FASTER_TARGET)
        yield _ratio(f"{count:,} pods: smaller than the official client", smaller, SMALLER_TARGET)


def _scaled(decoder: str, count: int) -> dict[str, float]:
    """Figures for a list that would take too long or too much, from a shorter one: both decoders are linear."""
    sample = min(count, LONGEST[decoder])
    found = measured(decoder, sample)
    return {key: found[key] * count / sample for key in ("cpu_s", "peak_mib")}


def _reported(decoder: str, count: int) -> str:
    return f"extrapolated from {LONGEST[decoder]:,} pods" if LONGEST[decoder] < count else ""


def measured(decoder: str, count: int) -> dict[str, float]:
    """CPU seconds and peak memory above the baseline, from a fresh process."""
    command = [sys.executable, "-m", "benchmarks.decode", decoder, str(count)]
    found: dict[str, float] = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
    return found


def pod_list(count: int) -> bytes:
    """A PodList as an API server answers it. By way of a file, so that making it leaves no peak behind."""
    with tempfile.TemporaryFile() as file:
        file.write(b'{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"123456789"},"items":[')
        for index in range(count):
            file.write(b"," if index else b"")
            file.write(json.dumps(real_sized_pod(index), separators=(",", ":")).encode())
        file.write(b"]}")
        file.seek(0)
        return file.read()


def _figures(name: str, found: dict[str, float], *, note: str = "") -> Iterator[dict[str, Any]]:
    yield {"name": f"{name}: CPU", "value": found["cpu_s"], "unit": "s", "target": None, "met": None, "note": note}
    memory = {"name": f"{name}: memory", "value": found["peak_mib"], "unit": "MiB"}
    yield {**memory, "target": None, "met": None, "note": note}


def _ratio(name: str, value: float, target: int) -> dict[str, Any]:
    reported = {"name": name, "value": value, "unit": "times"}
    return {**reported, "target": f">= {target}", "met": value >= target, "note": ""}


def _measure(decoder: str, count: int) -> dict[str, float]:
    decode = _DECODERS[decoder]()
    decode(pod_list(1))
    data = pod_list(count)
    gc.collect()
    before_kib = _peak_kib()
    started = time.process_time()
    result = decode(data)
    spent = time.process_time() - started
    peak_kib = _peak_kib() - before_kib
    assert result is not None
    return {"cpu_s": spent, "peak_mib": peak_kib / 1024, "bytes": len(data)}


def _peak_kib() -> int:
    """Not `getrusage`: its figure starts at what the parent had when it started us."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM:"))


def _plimsoll() -> Callable[[bytes], Any]:
    def decode(data: bytes) -> Any:
        found = decode_list(Pod, data)
        assert not found.bad
        assert not found.problem
        return found

    return decode


def _official() -> Callable[[bytes], Any]:
    from kubernetes import client  # noqa: PLC0415 - half a second and 60 MiB that the others must not pay

    api = client.ApiClient()
    return lambda data: api.deserialize(data.decode(), "V1PodList", "application/json")


_DECODERS: Final[dict[str, Callable[[], Callable[[bytes], Any]]]] = {
    "plimsoll": _plimsoll,
    "json": lambda: json.loads,
    "official": _official,
}


if __name__ == "__main__":
    print(json.dumps(_measure(sys.argv[1], int(sys.argv[2]))))
