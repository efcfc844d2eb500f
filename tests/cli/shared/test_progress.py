from __future__ import annotations

import io
from contextlib import redirect_stderr
from datetime import UTC, datetime

from plimsoll.cli.shared.progress import Progress
from plimsoll.runtime.virtual_run import VirtualRun


def reported(*steps: tuple[str, float], is_silent: bool = False) -> list[str]:
    """What is printed about steps of some seconds each."""
    with VirtualRun(start=datetime(2026, 1, 1, tzinfo=UTC)) as run, redirect_stderr(io.StringIO()) as err:

        async def work() -> None:
            with Progress("looking", is_silent=is_silent) as progress:
                for step, lasts_s in steps:
                    progress.step(step)
                    await run.clock.sleep(lasts_s)

        run.run_until(work())
        run.advance_by(10)
        return err.getvalue().splitlines()


def test_what_is_quick_is_not_talked_about():
    assert reported(("a", 0.5), ("b", 1.4)) == []


def test_from_two_seconds_on_the_present_step_and_every_later_one_is_reported():
    assert reported(("a", 1), ("b", 5), ("c", 1)) == ["looking: b", "looking: c"]


def test_silence_may_be_asked_for():
    assert reported(("a", 5), ("b", 5), is_silent=True) == []
