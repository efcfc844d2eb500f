"""One seed of the field fuzz: a fresh cluster, fleet manager and agent, and everything that went wrong in them.

A cluster that is written to at random fills up, so a seed is only so many objects, and a run is many seeds.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from pathlib import Path
from time import process_time
from typing import TYPE_CHECKING, Any, Final, NamedTuple, NoReturn

import structlog
from structlog.testing import capture_logs

from tests.field_fuzz.fuzzed_agent import FuzzedAgent
from tests.field_fuzz.fuzzed_cluster import Finding, FuzzedCluster, find_problems
from tests.field_fuzz.fuzzed_fleet import FuzzedFleet

if TYPE_CHECKING:
    from collections.abc import Mapping

OBJECTS_PER_SEED: Final = 2_000
BODIES_PER_SEED: Final = 200
"""To the fleet manager and to an agent, half of them each."""


class SeedResult(NamedTuple):
    """What a seed did. `answers` are counted by status, `seconds` are of processor time."""

    objects: int
    bodies: int
    answers: dict[int, int]
    findings: tuple[Finding, ...]
    seconds: float = 0.0


def run_seed(seed: int, *, objects: int = OBJECTS_PER_SEED, bodies: int = BODIES_PER_SEED) -> SeedResult:
    cluster = fuzz_cluster(seed, objects)
    with tempfile.TemporaryDirectory() as folder:
        fleet = fuzz_fleet(Path(folder), seed, bodies - bodies // 2)
    parts = (cluster, fleet, fuzz_agent(seed, bodies // 2))
    answers = sum((Counter(part.answers) for part in parts), Counter[int]())
    findings = tuple(finding for part in parts for finding in part.findings)
    return SeedResult(objects, bodies, dict(sorted(answers.items())), findings)


def run_timed(seed: int) -> SeedResult:
    """Run a seed in a process that does nothing else."""
    # Lines outside the captured parts are of no interest, and take longer to write than the objects do.
    structlog.configure(processors=[_drop])
    start = process_time()
    result = run_seed(seed)
    return result._replace(seconds=process_time() - start)


def _drop(logger: Any, name: str, line: Mapping[str, Any]) -> NoReturn:
    raise structlog.DropEvent


def fuzz_cluster(seed: int, objects: int) -> SeedResult:
    """Nothing may crash, and the autoscaler must still serve a plain pod at the end."""
    with FuzzedCluster(seed) as cluster:
        findings = [*cluster.fuzz(objects), *cluster.clear()]
        with capture_logs() as logs:
            serves = cluster.serves_a_pending_pod()
        findings += [Finding(problem, ()) for problem in find_problems(logs)]
        if not serves:
            findings.append(Finding("a plain pod that needs a new node got none", ()))
    return SeedResult(objects, 0, cluster.answers, tuple(findings))


def fuzz_fleet(folder: Path, seed: int, bodies: int) -> SeedResult:
    """Nothing may fail, no Kafka may go away, and a plain request must still be served at the end."""
    with FuzzedFleet(folder, seed) as fleet:
        findings = fleet.fuzz(bodies)
        if not fleet.serves_a_plain_request():
            findings.append("a plain request was not served")
    return SeedResult(0, bodies, fleet.answers, tuple(Finding(f"fleet: {problem}", ()) for problem in findings))


def fuzz_agent(seed: int, bodies: int) -> SeedResult:
    """Nothing may fail, no instance may go away, and a plain item must still be taken in at the end."""
    with FuzzedAgent(seed) as agent:
        findings = agent.fuzz(bodies)
        if not agent.serves_a_plain_item():
            findings.append("a plain item was not taken in")
    return SeedResult(0, bodies, agent.answers, tuple(Finding(f"agent: {problem}", ()) for problem in findings))
