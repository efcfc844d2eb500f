"""Rebalances that failed or were stopped: held for the user, or tried again with growing waits (D6, D7, D9)."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from plimsoll.kafka.planning.scaling import reasons
from plimsoll.kafka.planning.scaling.step_builder import RETRY

if TYPE_CHECKING:
    from datetime import datetime

    from plimsoll.kafka.model.auto_rebalance import AutoRebalanceObject
    from plimsoll.kafka.model.requests import Mode
    from plimsoll.kafka.planning.scaling.step_builder import StepBuilder


def retry_failed(builder: StepBuilder, mode: Mode, rebalance: AutoRebalanceObject, brokers: tuple[int, ...]) -> None:
    """Refresh a failed rebalance in place when its wait is over."""
    attempts, at = builder.stored.attempts, builder.stored.next_retry_time
    if at is None:
        attempts += 1
        at = compute_retry_time(builder, attempts)
        builder.update(attempts=attempts, next_retry_time=at)
    if builder.seen.now >= at and builder.refresh(mode, brokers, reasons.build_retried(mode, brokers, attempts)):
        return
    builder.warn(reasons.build_retry_scheduled(mode, rebalance, at, attempts))
    if at > builder.seen.now:
        builder.wait_until(at)


def hold_failed(builder: StepBuilder, mode: Mode, rebalance: AutoRebalanceObject) -> None:
    builder.warn(reasons.build_failed(mode, rebalance))


def hold_stopped(builder: StepBuilder, mode: Mode, rebalance: AutoRebalanceObject) -> None:
    builder.warn(reasons.build_stopped(mode, rebalance.brokers))


def compute_retry_time(builder: StepBuilder, attempts: int) -> datetime:
    return builder.seen.now + timedelta(seconds=RETRY.compute_nominal_s(attempts))
