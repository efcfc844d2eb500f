"""Faults for ports: crash, lose answers, delay them, answer 5xx. See docs/virtual-time.md.

A fault wraps any object with methods; one fault may wrap several ports, whose calls it counts together.

    crash = CrashAfter(3)
    actuator = Actuator(crash.wrap(cloud), crash.wrap(api))

    tried = sweep_crashes(build_world=…, build_instance=…, run=…, check=…)
"""

from tests.faults.answers import Answer5xx, Delay, Flaky, LoseAnswers, ServerError
from tests.faults.branches import Branch, Branches
from tests.faults.crashes import CrashAfter, Crashed
from tests.faults.late_watches import LateWatches
from tests.faults.ports import Call, Fault
from tests.faults.strikes import Strike, StrikeAt, translate_strikes
from tests.faults.sweeps import sweep_crashes, sweep_faults

__all__ = [
    "Answer5xx",
    "Branch",
    "Branches",
    "Call",
    "CrashAfter",
    "Crashed",
    "Delay",
    "Fault",
    "Flaky",
    "LateWatches",
    "LoseAnswers",
    "ServerError",
    "Strike",
    "StrikeAt",
    "sweep_crashes",
    "sweep_faults",
    "translate_strikes",
]
