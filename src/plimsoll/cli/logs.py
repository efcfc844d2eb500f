"""Where log events of a command go: stderr, because stdout is for the answer."""

from __future__ import annotations


def log_to_stderr() -> None:
    """Events worth a person's attention.

    Tracebacks come without the values of local variables: a bearer token may be one of them.
    """
    import logging
    import sys

    import structlog

    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.dev.ConsoleRenderer(
                colors=sys.stderr.isatty(), exception_formatter=structlog.dev.plain_traceback
            ),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING),
        logger_factory=structlog.WriteLoggerFactory(file=sys.stderr),
    )
