"""From `POST /kafkas` to `ready` in virtual time, by stage, and what it is made of; the processor time of J01.

The chain is that of the tests: service, simulated OCM, agent, Kafka operator, scheduler and node autoscaler, each with
its own period. The configured delays of a stage are those that no program can shorten: what OCM, machines and pods
take, and one period of each program on the way that polls.
"""

from __future__ import annotations

import logging
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import structlog

from tests.fleet.agent.chain_world import DELAYS, MANAGED, ChainWorld
from tests.fleet.agent.j01_story import J01

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

LIMIT: Final = 1.2
NAME: Final = "orders"
_BROKERS: Final = 3
_WORKER_S: Final = 30.0
_POLL_S: Final = 15.0
_AUTOSCALER_S: Final = 10.0
_BOOT_S: Final = 60.0
_START_S: Final = 5.0
_CLUSTER_S: Final = DELAYS.pending_s + DELAYS.installing_s + DELAYS.addon_s + 2 * _WORKER_S
"""A worker sees twice that the provider has done its part. The first machines boot meanwhile."""
_RUN_S: Final = _POLL_S + _START_S
"""The agent polls, pods start. A request wakes the worker that places it."""


def rows() -> Iterator[dict[str, Any]]:
    logging.disable(logging.WARNING)
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    with tempfile.TemporaryDirectory() as folder:
        yield from measure_empty_region(Path(folder))
        yield from measure_second_kafka(Path(folder), reserved=0)
        yield from measure_second_kafka(Path(folder), reserved=1)
        took_s = measure_j01(Path(folder))
    yield row("J01, whole", took_s, "s", note="processor time; an hour and three quarters of virtual time")


def row(name: str, value: float, unit: str, *, target: str = "", met: bool | None = None, note: str = "") -> Any:
    return {"name": name, "value": value, "unit": unit, "target": target, "met": met, "note": note}


def measure_empty_region(folder: Path) -> Iterator[dict[str, Any]]:
    with ChainWorld(folder) as chain:
        chain.start()
        stages = follow(chain)
    yield from build_rows("POST to ready, no cluster", stages, _CLUSTER_S + _RUN_S)


def measure_second_kafka(folder: Path, *, reserved: int) -> Iterator[dict[str, Any]]:
    """The machines of the pool have brokers of another Kafka, or of the reserve."""
    with ChainWorld(folder, most=18, reserved=reserved) as chain:
        chain.start()
        chain.pass_until(chain.list_ready, minutes=30)
        chain.create_and_wait("first")
        chain.pass_by(900)
        stages = follow(chain)
    if reserved:
        yield from build_rows("POST to ready, reserve of 1", stages, _RUN_S)
    else:
        yield from build_rows("POST to ready, machines to be bought", stages, _RUN_S + _AUTOSCALER_S + _BOOT_S)


def follow(chain: ChainWorld) -> dict[str, float]:
    """How long each stage took."""
    began_s = chain.clock.monotonic_s()
    assert chain.create_kafka(NAME).status == 202
    ended: dict[str, float] = {}
    for stage, has_ended in list_stages(chain):
        chain.pass_until(has_ended, minutes=40, step_s=1)
        ended[stage] = chain.clock.monotonic_s() - began_s
    moments = [0.0, *ended.values()]
    return {stage: moments[number + 1] - moments[number] for number, stage in enumerate(ended)}


def list_stages(chain: ChainWorld) -> list[tuple[str, Callable[[], bool]]]:
    return [
        ("waiting for a cluster", lambda: chain.get_status(NAME) != "accepted"),
        ("waiting for machines", lambda: count_pods(chain, lambda pod: bool(pod["spec"].get("nodeName"))) == _BROKERS),
        ("waiting for brokers", lambda: chain.get_status(NAME) == "ready"),
    ]


def count_pods(chain: ChainWorld, matches: Callable[[dict[str, Any]], bool]) -> int:
    """Brokers of the Kafka that match."""
    for cluster_id in chain.embedded.list_ids():
        for item in chain.list_items(cluster_id, MANAGED):
            if item["metadata"]["name"] == NAME:
                return sum(map(matches, chain.list_pods(cluster_id, item["metadata"]["namespace"])))
    return 0


def build_rows(name: str, stages: dict[str, float], configured_s: float) -> Iterator[dict[str, Any]]:
    whole_s = sum(stages.values())
    note = ", ".join(f"{stage} {seconds:.0f} s" for stage, seconds in stages.items())
    yield row(name, whole_s, "s", note=note)
    ratio = whole_s / configured_s
    yield row(
        f"{name}: against {configured_s:.0f} s",
        ratio,
        "times",
        target=f"<= {LIMIT}",
        met=ratio <= LIMIT,
        note="configured delays",
    )


def measure_j01(folder: Path) -> float:
    began_s = time.process_time()
    with ChainWorld(folder) as chain:
        for _step in J01(chain).play():
            """Each step checks what it sees."""
    return time.process_time() - began_s
