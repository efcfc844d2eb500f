"""A process that writes a journal as fast as it can, and says each number once the entry is kept."""

from __future__ import annotations

import itertools
import sys
from pathlib import Path

from plimsoll.journal.journal_file import JournalFile
from tests.journal.builders import done, left, plan


def main(directory: str) -> None:
    journal = JournalFile(Path(directory) / "journal.sqlite3")
    for snapshot in itertools.count(1):
        names = [f"pod-{snapshot}-{number}" for number in range(50)]
        entry = journal.append(plan(snapshot, not_done=(left(*names),)))
        journal.conclude(entry.number, (done(),))
        sys.stdout.write(f"{entry.number} {snapshot}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1])
