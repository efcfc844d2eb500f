"""An API server with a cluster's worth of real-sized pods, for what reads them.

The pods are written into the data directory before the server starts: through the API a hundred thousand would take
minutes, and how they came there is not what is measured. The last of them stay in the server's history, so that a watch
that begins before them gets thousands of events as fast as it takes them.

    python -m benchmarks.informer_server DIRECTORY FROM TO     write the pods of these numbers
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
from contextlib import aclosing, contextmanager
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from benchmarks.https_clients import Server, apiserver
from benchmarks.real_pods import real_sized_pod
from plimsoll.local.apiserver.storage import Key, Put, SqliteDriver, Store
from plimsoll.runtime.clocks import RealClock

if TYPE_CHECKING:
    from collections.abc import Iterator

_IN_ONE_WRITE: Final = 500


class PodServer(NamedTuple):
    """One that runs; pods are numbered from 0 on, in the order of their resource versions."""

    server: Server
    kubeconfig: str


@contextmanager
def server_of_pods(directory: str, *, kept: int, count: int) -> Iterator[PodServer]:
    """A server on a directory that holds the first `kept` pods already."""
    command = [sys.executable, "-m", "benchmarks.informer_server", directory, str(kept), str(count)]
    subprocess.run(command, check=True)
    with apiserver(directory) as server:
        yield PodServer(server, f"{directory}/kubeconfig")


async def write_pods(directory: str, numbers: range) -> None:
    async with aclosing(Store.open(SqliteDriver(directory), clock=RealClock())) as store:
        for batch in _batches(numbers):
            pods = [_stored_pod(number) for number in batch]
            keys = [Key("pods", pod["metadata"]["namespace"], pod["metadata"]["name"]) for pod in pods]
            await store.update_all(keys, lambda _, pods=pods: [Put(pod) for pod in pods])  # type: ignore[misc]


def _batches(numbers: range) -> Iterator[range]:
    for start in range(0, len(numbers), _IN_ONE_WRITE):
        yield numbers[start : start + _IN_ONE_WRITE]


def _stored_pod(number: int) -> dict[str, Any]:
    return {"kind": "Pod", "apiVersion": "v1", **real_sized_pod(number)}


if __name__ == "__main__":
    asyncio.run(write_pods(sys.argv[1], range(int(sys.argv[2]), int(sys.argv[3]))))
