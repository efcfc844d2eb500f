"""A journal whose writer is killed in the middle of writing: readable at once, and no acknowledged entry is lost."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

from plimsoll.core.plans import Ref, Result
from plimsoll.journal.entries import Query
from plimsoll.journal.journal_file import JOURNAL_FILE, JournalFile
from tests.e2e.timeouts import speaking_in_time

REPOSITORY = Path(__file__).parents[2]
ROUNDS = 12


def killed_while_writing(directory: Path, *, after: int) -> dict[int, int]:
    """Entries that it acknowledged: number and snapshot."""
    command = [sys.executable, "-m", "tests.e2e.journal_writer", str(directory)]
    writer = subprocess.Popen(command, cwd=REPOSITORY, stdout=subprocess.PIPE, text=True)
    assert writer.stdout is not None
    with speaking_in_time(writer):
        stated = [writer.stdout.readline() for _ in range(after)]
    writer.kill()
    stated += writer.stdout.read().splitlines(keepends=True)
    writer.wait()
    writer.stdout.close()
    reported = [line.split() for line in stated if line.endswith("\n")]
    return {int(number): int(snapshot) for number, snapshot in reported}


def test_kills_under_load_lose_nothing_that_was_reported(tmp_path: Path):
    chance = random.Random(7)
    kept: dict[int, int] = {}
    for _ in range(ROUNDS):
        reported = killed_while_writing(tmp_path, after=chance.randrange(1, 120))
        assert not reported.keys() & kept.keys(), "a number is never used twice"
        kept |= reported
        # As `plimsoll why` does: read-only, beside whatever the dead writer left.
        journal = JournalFile(tmp_path / JOURNAL_FILE, read_only=True)
        entries = {entry.number: entry for entry in journal.list_entries(Query(limit=None))}
        assert {number: entries[number].snapshot for number in kept} == kept
        assert all(entries[number].outcomes[0].result is Result.DONE for number in kept)
        last = max(kept)
        pod = Ref(kind="pod", namespace="default", name=f"pod-{kept[last]}-3")
        assert last in [entry.number for entry in journal.list_entries(Query(ref=pod))]
        journal.close()
    assert len(kept) > ROUNDS
