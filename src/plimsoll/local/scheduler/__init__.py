"""The embedded scheduler: kube-scheduler's queue, back-off, preemption and words, on `plimsoll.scheduling`.

`Scheduler` is what a simulated cluster runs; everything else here is its parts.
"""

from plimsoll.local.scheduler.scheduler import ScheduledOnce, Scheduler
from plimsoll.local.scheduler.settings import SchedulerSettings

__all__ = ["ScheduledOnce", "Scheduler", "SchedulerSettings"]
