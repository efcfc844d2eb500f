"""Opens the database at a URL, as a process of its own: `python -m tests.e2e.fleet.fleet_opener URL`."""

from __future__ import annotations

import sys

from plimsoll.fleet.store.database import open_database
from plimsoll.runtime.clocks import RealClock


def main() -> None:
    """Wait for a line, so that several processes begin at once; then open and close."""
    sys.stdin.readline()
    open_database(sys.argv[1], clock=RealClock()).close()


if __name__ == "__main__":
    main()
