"""Many seeds of the field fuzz, counted in a file: `make test-fuzz`, and a part of `make test-long`.

    python -m tests.field_fuzz [--objects 1000000] [--first-seed 1] [--processes 2] [--record FILE]

Every seed that ends is a line of the record: seed, commit, objects, bodies of the fleet API, answers by status, and
findings. A run that is stopped goes on where it was: recorded seeds count, and only those with findings run again. The
objects of a batch with a finding are written beside the record, as tests/fixtures/field_fuzz wants them. The exit code
is 1 if there is a finding.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections import Counter
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from itertools import count, islice
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from tests.field_fuzz.fuzzed_cluster import Finding
from tests.field_fuzz.seeds import OBJECTS_PER_SEED, SeedResult, run_timed

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

RECORD: Final = Path(".field-fuzz") / "seeds.jsonl"
_SEEDS_PER_PROCESS: Final = 20
"""Caches of a process grow with every cluster that it held."""


class RecordedSeed(NamedTuple):
    """A line of the record. `seconds` are of processor time."""

    seed: int
    commit: str
    objects: int
    bodies: int
    seconds: float
    answers: dict[str, int]
    findings: list[str]


class Record:
    """The seeds that ran, in a file to which lines are only added. Of a seed that ran twice the last line counts."""

    def __init__(self, file: Path) -> None:
        self.file = file
        lines = file.read_text().splitlines() if file.exists() else []
        self.seeds = {line["seed"]: RecordedSeed(**line) for line in map(json.loads, lines)}

    def add(self, recorded: RecordedSeed) -> None:
        self.seeds[recorded.seed] = recorded
        self.file.parent.mkdir(parents=True, exist_ok=True)
        with self.file.open("a") as lines:
            lines.write(json.dumps(recorded._asdict()) + "\n")

    def write_fixture(self, seed: int, findings: Iterable[Finding]) -> None:
        """The objects of the first batch with a finding; findings without a batch have none."""
        for finding in findings:
            if finding.objects:
                text = json.dumps([fuzzed.to_json() for fuzzed in finding.objects], indent=1)
                (self.file.parent / f"seed-{seed}.json").write_text(text)
                return

    def has_clean(self, seed: int) -> bool:
        return seed in self.seeds and not self.seeds[seed].findings

    def count_objects(self) -> int:
        return sum(recorded.objects for recorded in self.seeds.values())


def run_seeds(seeds: Iterator[int], record: Record, *, processes: int, objects: int) -> None:
    """Run these seeds, so many at a time, and record each as it ends."""
    commit = describe_commit()
    whole = record.count_objects() + objects
    with ProcessPoolExecutor(
        processes, mp_context=get_context("spawn"), max_tasks_per_child=_SEEDS_PER_PROCESS
    ) as pool:
        running: dict[Future[SeedResult], int] = {}
        while True:
            for seed in islice(seeds, processes - len(running)):
                running[pool.submit(run_timed, seed)] = seed
            if not running:
                return
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                recorded = _record_seed(record, running.pop(future), future, commit)
                sys.stdout.write(f"{format_seed(recorded)}; {record.count_objects():,} of {whole:,}\n")
                sys.stdout.flush()


def _record_seed(record: Record, seed: int, future: Future[SeedResult], commit: str) -> RecordedSeed:
    error = future.exception()
    if error is None:
        result = future.result()
    else:
        # The harness did not survive: a loop that never rests, say. The objects until then are not counted.
        result = SeedResult(0, 0, {}, (Finding(f"{type(error).__name__}: {error}", ()),))
    recorded = RecordedSeed(
        seed=seed,
        commit=commit,
        objects=result.objects,
        bodies=result.bodies,
        seconds=round(result.seconds, 1),
        answers={str(status): number for status, number in result.answers.items()},
        findings=[finding.problem for finding in result.findings],
    )
    record.add(recorded)
    record.write_fixture(seed, result.findings)
    return recorded


def describe_commit() -> str:
    described = subprocess.run(
        ["git", "describe", "--always", "--dirty", "--exclude=*"], capture_output=True, text=True, check=False
    )
    return described.stdout.strip() or "unknown"


def format_seed(recorded: RecordedSeed) -> str:
    return (
        f"seed {recorded.seed}: {recorded.objects:,} objects, {recorded.bodies:,} bodies, "
        f"{len(recorded.findings)} findings, {recorded.seconds:.0f} s"
    )


def format_summary(recorded: Iterable[RecordedSeed]) -> list[str]:
    """A row per commit and one for all, the answers by status, and each finding."""
    found = list(recorded)
    commits = {seed.commit: [other for other in found if other.commit == seed.commit] for seed in found}
    lines = [f"{'commit':<20}{'seeds':>8}{'objects':>12}{'bodies':>10}{'findings':>10}{'per second':>12}"]
    for name, seeds in [*commits.items(), ("all", found)]:
        objects, seconds = sum(seed.objects for seed in seeds), sum(seed.seconds for seed in seeds)
        bodies, findings = sum(seed.bodies for seed in seeds), sum(len(seed.findings) for seed in seeds)
        rate = f"{objects / seconds:.0f}" if seconds else ""
        lines.append(f"{name:<20}{len(seeds):>8,}{objects:>12,}{bodies:>10,}{findings:>10,}{rate:>12}")
    answers: Counter[str] = Counter()
    for seed in found:
        answers.update(seed.answers)
    lines.append("answers: " + ", ".join(f"{status} {number:,}" for status, number in sorted(answers.items())))
    return [*lines, *(f"seed {seed.seed}: {problem}" for seed in found for problem in seed.findings)]


def choose_seeds(record: Record, first: int, objects: int) -> list[int]:
    """Seeds from the first on that are not recorded without findings, for so many objects with those that are."""
    left = objects - sum(recorded.objects for recorded in record.seeds.values() if not recorded.findings)
    unrecorded = (seed for seed in count(first) if not record.has_clean(seed))
    return list(islice(unrecorded, max(0, -(-left // OBJECTS_PER_SEED))))


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.field_fuzz")
    parser.add_argument("--objects", type=int, default=1_000_000, help="how many in all, recorded ones included")
    parser.add_argument("--first-seed", type=int, default=1, help="seeds count from here")
    parser.add_argument("--processes", type=int, default=2, help="how many seeds at a time")
    parser.add_argument("--record", type=Path, default=RECORD, help=f"file of the seeds that ran; {RECORD} by default")
    options = parser.parse_args(arguments)
    record = Record(options.record)
    seeds = choose_seeds(record, options.first_seed, options.objects)
    run_seeds(iter(seeds), record, processes=options.processes, objects=len(seeds) * OBJECTS_PER_SEED)
    sys.stdout.write("\n".join([*format_summary(record.seeds.values()), ""]))
    return 1 if any(recorded.findings for recorded in record.seeds.values()) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
