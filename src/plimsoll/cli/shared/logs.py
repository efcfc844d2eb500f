"""Where log events of a command go: stderr, because stdout is for the answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import MutableMapping, Sequence
    from typing import Any

    from structlog.typing import Processor

_TOLD: Final = frozenset({"cloud", "taint-eviction-controller"})
"""Controllers whose turns are worth a line to somebody who watches a cluster: few, and about machines."""


def log_to_stderr() -> None:
    """Events worth a person's attention."""
    import logging

    _configure((), level=logging.WARNING)


def log_events_to_stderr() -> None:
    """All that happens, for programs whose log is their diary."""
    import logging

    _configure((), level=logging.INFO)


def log_errors_to_stderr() -> None:
    """Only what must not happen at all, for commands that let things go wrong on purpose."""
    import logging

    _configure((), level=logging.ERROR)


def log_sentences_to_stderr(*, is_verbose: bool) -> None:
    """Warnings, and what happened to machines; all events if that is wished."""
    import logging

    _configure(() if is_verbose else (_only_told,), level=logging.INFO)


def _only_told(_logger: object, method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    from structlog import DropEvent

    if method == "info" and not (event.get("said") and event.get("controller") in _TOLD):
        raise DropEvent
    return event


def _configure(first: Sequence[Processor], *, level: int) -> None:
    """Tracebacks come without the values of local variables: a bearer token may be one of them."""
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
