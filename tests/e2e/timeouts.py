"""How long the suites wait for what comes about in its own time, and how a process that says nothing ends the waiting.

The limits are for machines that are slow and busy with other things: no test passes because of them, and none takes
longer while everything works.
"""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterator

PATIENCE_S: Final = 180


@contextmanager
def speaking_in_time(process: subprocess.Popen[Any], *, within_s: float = PATIENCE_S) -> Iterator[None]:
    """Kill a process that has not written within the time what the caller reads; reading then finds the end of file."""
    giving_up = threading.Timer(within_s, process.kill)
    giving_up.start()
    try:
        yield
    finally:
        giving_up.cancel()
