"""A long run is counted in a file, and goes on where it was stopped."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from tests.field_fuzz.__main__ import Record, RecordedSeed, choose_seeds, format_summary
from tests.field_fuzz.fuzzed_cluster import Finding, FuzzedObject
from tests.field_fuzz.seeds import OBJECTS_PER_SEED

if TYPE_CHECKING:
    from pathlib import Path


def recorded(seed: int, *findings: str, commit: str = "abc") -> RecordedSeed:
    return RecordedSeed(seed, commit, OBJECTS_PER_SEED, 200, 10.0, {"200": 1500, "422": 500}, [*findings])


def test_recorded_seeds_count_and_are_not_run_again(tmp_path: Path):
    file = tmp_path / "folder" / "seeds.jsonl"
    for seed in (5, 7):
        Record(file).add(recorded(seed))
    record = Record(file)
    assert choose_seeds(record, 5, 5 * OBJECTS_PER_SEED) == [6, 8, 9]
    assert choose_seeds(record, 5, 2 * OBJECTS_PER_SEED) == []


def test_a_part_of_a_seed_is_a_whole_one(tmp_path: Path):
    assert choose_seeds(Record(tmp_path / "seeds.jsonl"), 1, OBJECTS_PER_SEED + 1) == [1, 2]


def test_seeds_with_findings_are_run_again_and_the_last_run_counts(tmp_path: Path):
    file = tmp_path / "seeds.jsonl"
    Record(file).add(recorded(1, "a traceback"))
    Record(file).add(recorded(2))
    assert choose_seeds(Record(file), 1, 2 * OBJECTS_PER_SEED) == [1]
    Record(file).add(recorded(1, commit="def"))
    assert choose_seeds(Record(file), 1, 2 * OBJECTS_PER_SEED) == []
    assert Record(file).count_objects() == 2 * OBJECTS_PER_SEED


def test_the_summary_counts_by_commit_and_names_findings():
    rows = format_summary([recorded(1), recorded(2, "a traceback", commit="def"), recorded(3)])
    cells = {row.split()[0]: row.split()[1:] for row in rows[1:4]}
    assert cells["abc"] == ["2", "4,000", "400", "0", "200"]
    assert cells["def"] == ["1", "2,000", "200", "1", "200"]
    assert cells["all"] == ["3", "6,000", "600", "1", "200"]
    assert rows[4:] == ["answers: 200 4,500, 422 1,500", "seed 2: a traceback"]


def test_objects_of_a_finding_are_written_as_a_fixture(tmp_path: Path):
    fuzzed = FuzzedObject("pods", "", {"metadata": {"name": "a"}})
    Record(tmp_path / "seeds.jsonl").write_fixture(4, [Finding("without objects", ()), Finding("a", (fuzzed,))])
    batch = json.loads((tmp_path / "seed-4.json").read_bytes())
    assert [FuzzedObject(**written) for written in batch] == [fuzzed]
