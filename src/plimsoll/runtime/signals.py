"""SIGINT and SIGTERM become cancellation, which stops everything in Plimsoll.

Only for real loops: a virtual loop refuses signal handlers.
"""

from __future__ import annotations

import asyncio
import signal
from typing import TYPE_CHECKING, Any

import structlog

if TYPE_CHECKING:
    from collections.abc import Coroutine, Sequence

log: structlog.typing.FilteringBoundLogger = structlog.get_logger(__name__)

_STOPPING = (signal.SIGINT, signal.SIGTERM)


async def run_until_signalled(
    main: Coroutine[Any, Any, None], signals: Sequence[signal.Signals] = _STOPPING
) -> signal.Signals | None:
    """Run `main`; the first signal cancels it, the second cancels its clean-up, the third has its default effect.

    Gives the signal that stopped it, or None if `main` returned by itself. Must be called from a coroutine
    of the main thread's loop.
    """
    loop = asyncio.get_running_loop()
    received: list[signal.Signals] = []
    task = asyncio.ensure_future(main)

    def on_signal(number: signal.Signals) -> None:
        received.append(number)
        log.info("signal.received", signal=number.name, forcing=len(received) > 1)
        if len(received) > 1:
            for signal_number in signals:
                loop.remove_signal_handler(signal_number)
        task.cancel()

    for signal_number in signals:
        loop.add_signal_handler(signal_number, on_signal, signal_number)
    try:
        await task
    except asyncio.CancelledError:
        ourselves = asyncio.current_task()
        if not received or (ourselves is not None and ourselves.cancelling()):
            raise
    finally:
        for signal_number in signals:
            loop.remove_signal_handler(signal_number)
    return received[0] if received else None
