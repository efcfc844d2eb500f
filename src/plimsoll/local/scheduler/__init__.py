"""The embedded scheduler: kube-scheduler's queue, back-off, preemption and messages, on `plimsoll.scheduling`."""

from plimsoll.local.scheduler.scheduler import ScheduledOnce, Scheduler
from plimsoll.local.scheduler.settings import SchedulerSettings

__all__ = ["ScheduledOnce", "Scheduler", "SchedulerSettings"]
