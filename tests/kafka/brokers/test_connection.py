"""The bridge to kafka-python's thread, where no broker is needed."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from kafka.errors import RequestTimedOutError
from kafka.future import Future

from plimsoll.kafka.brokers.connection import Connection
from plimsoll.kafka.brokers.connection_settings import parse_connection_settings
from plimsoll.kafka.brokers.ports import KafkaUnavailable
from plimsoll.testing import run_virtual

if TYPE_CHECKING:
    from plimsoll.runtime.clocks import VirtualClock
    from tests.golden.reviewed_sentences import ReviewedSentences


def _connect(call_soon: Any) -> Connection:
    """A connection whose thread does what `call_soon` does."""
    connection = Connection(parse_connection_settings("h", {}))
    connection._client = SimpleNamespace(net=None, manager=SimpleNamespace(call_soon=call_soon))  # type: ignore[assignment]
    return connection


def test_a_thread_that_died_is_no_wait_without_end(reviewed: ReviewedSentences) -> None:
    connection = _connect(lambda _: Future())

    async def run(clock: VirtualClock) -> float:
        with pytest.raises(KafkaUnavailable) as raised:
            await connection.send(lambda: None, lambda answer: answer, broker=1)
        reviewed(str(raised.value))
        return clock.monotonic_s()

    assert run_virtual(run) < 60


def test_a_library_that_closes_meanwhile_is_an_error_of_the_request(reviewed: ReviewedSentences) -> None:
    connection = _connect(lambda _: Future().failure(GeneratorExit()))
    with pytest.raises(KafkaUnavailable) as raised:
        run_virtual(connection.send(lambda: None, lambda answer: answer, broker=1))
    reviewed(str(raised.value))


def test_two_timeouts_have_the_same_text() -> None:
    texts = set()
    for waited_ms in (19908, 19920):
        error = RequestTimedOutError(f"Request timed out after {waited_ms} ms")
        connection = _connect(lambda _, error=error: Future().failure(error))
        with pytest.raises(KafkaUnavailable) as raised:
            run_virtual(connection.send(lambda: None, lambda answer: answer, broker=1))
        texts.add(str(raised.value))
    assert texts == {"broker 1 did not answer: [Error 7] RequestTimedOutError: Request timed out"}
