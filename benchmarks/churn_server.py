"""An API server that forgets soon: `python -m benchmarks.churn_server DIRECTORY`.

The history of watches is kept for 5 seconds instead of 5 minutes, and Events for one second, so that a benchmark need
not wait to see what a server keeps.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from plimsoll.local.apiserver.run import Ready, Settings, run
from plimsoll.local.apiserver.storage import HistoryLimits
from plimsoll.runtime.clocks import RealClock
from plimsoll.runtime.entropy import SystemEntropy
from plimsoll.runtime.signals import run_until_signalled

HISTORY_S = 5.0
EVENT_TTL_S = 1.0


def report(ready: Ready) -> None:
    print(f"kubeconfig {ready.kubeconfig}\nready", flush=True)


if __name__ == "__main__":
    settings = Settings(data=Path(sys.argv[1]), port=0, event_ttl_s=EVENT_TTL_S, history=HistoryLimits(age_s=HISTORY_S))
    asyncio.run(run_until_signalled(run(settings, clock=RealClock(), entropy=SystemEntropy(), on_ready=report)))
