"""Logging of commands: to stderr, because stdout is for results."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import MutableMapping, Sequence
    from typing import Any

    from structlog.typing import Processor

_REPORTED: Final = frozenset({"cloud", "taint-eviction-controller"})
"""Controllers whose actions are shown by `plimsoll up`: few, and about machines."""


def log_to_stderr() -> None:
    """Log warnings and errors."""
    import logging

    _configure((), level=logging.WARNING)


def log_events_to_stderr() -> None:
    """Log everything, for long-running programs."""
    import logging

    _configure((), level=logging.INFO)


def log_errors_to_stderr() -> None:
    """Log only errors, for commands that inject failures on purpose."""
    import logging

    _configure((), level=logging.ERROR)


def log_sentences_to_stderr(*, is_verbose: bool) -> None:
    """Log warnings and what happens to machines; with `is_verbose` everything."""
    import logging

    _configure(() if is_verbose else (_drop_unreported,), level=logging.INFO)


def _drop_unreported(_logger: object, method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    from structlog import DropEvent

    if method == "info" and not (event.get("said") and event.get("controller") in _REPORTED):
        raise DropEvent
    return event


def _configure(first: Sequence[Processor], *, level: int) -> None:
    """Configure structlog. Tracebacks omit the values of local variables, because one may be a bearer token."""
    import sys

    import structlog

    structlog.configure(
        processors=[
            *first,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.dev.ConsoleRenderer(
                colors=sys.stderr.isatty(), exception_formatter=structlog.dev.plain_traceback
            ),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.WriteLoggerFactory(file=sys.stderr),
    )
