"""Logging of commands: to stderr, because stdout is for results."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import MutableMapping, Sequence
    from typing import Any

    from structlog.dev import ConsoleRenderer
    from structlog.typing import Processor

    Event = MutableMapping[str, Any]

_SENTENCES: Final = {"loop.done": "nodes", "cluster.reconciled": "kafka", "rebalance.done": "kafka"}
"""Events with a sentence about a loop iteration or a reconcile, and the subsystem that `plimsoll up` shows."""
_REPORTED: Final = {
    "cloud": "cloud",
    "taint-eviction-controller": "taint-eviction-controller",
    "tidb-autoscaler": "tidb",
}
"""Controllers whose summaries `plimsoll up` shows, and the name it shows. Few: only what changes machines and stores.
"""
_CLUSTER: Final = "fleet_cluster"
"""Names the cluster of a fleet that runs in this process."""
_REPEATED: Final = frozenset({"planner.blind", "planner.refused", "advice.missing"})
"""Warnings that say what the sentence of the same loop iteration says."""


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
    """Log a sentence per loop iteration and per change of machines, and warnings; with `is_verbose` all events."""
    import logging

    if is_verbose:
        _configure((), level=logging.INFO)
    else:
        _configure((_drop_unreported,), level=logging.INFO, is_prose=True)


def _drop_unreported(_logger: object, method: str, event: Event) -> Event:
    from structlog import DropEvent

    if (method == "info" and not _find_sentence(event)) or event.get("event") in _REPEATED:
        raise DropEvent
    return event


def _find_sentence(event: Event) -> str:
    """The sentence in an event, after the subsystem it is about; empty if there is none."""
    subsystem = _SENTENCES.get(str(event.get("event", ""))) or _REPORTED.get(str(event.get("controller", "")), "")
    summary = str(event.get("summary", ""))
    cluster = f"cluster {event[_CLUSTER]}, " if _CLUSTER in event else ""
    return f"{cluster}{subsystem}: {summary}" if subsystem and summary else ""


class _SentenceRenderer:
    """Renders sentences and warnings as prose; errors keep their fields, which help to find the cause."""

    def __init__(self, console: ConsoleRenderer) -> None:
        self._console = console

    def __call__(self, logger: Any, method: str, event: Event) -> str:
        if method == "info":
            return f"{event['timestamp']} {_find_sentence(event)}"
        if method == "warning":
            return f"{event['timestamp']} warning: {_describe_warning(event)}"
        return self._console(logger, method, event)


def _describe_warning(event: Event) -> str:
    fields = {key: value for key, value in event.items() if key not in {"event", "timestamp", "level"}}
    problem = next((str(fields.pop(key)) for key in ("problem", "error", "message") if fields.get(key)), "")
    about = ", ".join(f"{key.replace('_', ' ')} {value}" for key, value in fields.items())
    name = str(event.get("event", "")).replace(".", " ").replace("_", " ")
    return "".join((name, f" ({about})" if about else "", f": {problem}" if problem else ""))


def _configure(first: Sequence[Processor], *, level: int, is_prose: bool = False) -> None:
    """Configure structlog. Tracebacks omit the values of local variables, because one may be a bearer token."""
    import sys

    import structlog

    console = structlog.dev.ConsoleRenderer(
        colors=sys.stderr.isatty(), exception_formatter=structlog.dev.plain_traceback
    )
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            *first,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="%Y-%m-%d %H:%M:%S UTC" if is_prose else "iso", utc=True),
            _SentenceRenderer(console) if is_prose else console,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.WriteLoggerFactory(file=sys.stderr),
    )
