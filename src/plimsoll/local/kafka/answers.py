"""Errors of simulated brokers: of a whole request, and of single items inside a good answer."""

from __future__ import annotations

from typing import ClassVar, NamedTuple

from plimsoll.core.errors import PlimsollError, Unreachable


class NoAnswer(Unreachable):
    """No broker, or not the broker that had to answer, answered."""


class RequestRefused(PlimsollError):
    """The cluster refused a whole request. `code` is Kafka's name of the error."""

    exit_code: ClassVar[int] = 1

    def __init__(self, code: str, message: str = "") -> None:
        super().__init__(f"{code}: {message}" if message else code)
        self.code = code


class ItemError(NamedTuple):
    """An error of one partition, setting or broker. `code` is Kafka's name of the error."""

    code: str
    message: str = ""


def build_unknown_partition() -> ItemError:
    return ItemError("UNKNOWN_TOPIC_OR_PARTITION", "This server does not host this topic-partition.")
