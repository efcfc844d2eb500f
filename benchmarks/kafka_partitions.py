"""Ten thousand partitions on real brokers, made a few topics at a time, as far as the machine holds them.

Brokers make their logs at their own pace. So each batch of topics is waited for, with a bound, until all its logs are
there. A batch that does not come about ends the procedure: what the brokers hold by then is measured, and the table
says how much that is.
"""

from __future__ import annotations

import contextlib
import sys
import time
from typing import TYPE_CHECKING, Final

from kafka.errors import KafkaError, TopicAlreadyExistsError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.e2e.kafka.real_kafka import RealKafka

PARTITIONS: Final = 100
"""Per topic."""
TOPICS_AT_ONCE: Final = 5
HEAP_MB: Final = 512
LOG_DIRS: Final = ("data",)
"""With several, a broker counts all its logs for each log that it makes: 1,000 took minutes on a busy machine."""
SETTINGS: Final = {
    # Indices are files in memory here: with the default of 10 MB each, 60,000 of them do not fit.
    "log.index.size.max.bytes": "4096",
    # A fetch that waits is watched at every partition of its session: with 2,400 partitions and the default of 500 ms,
    # four idle brokers took half a core.
    "replica.fetch.wait.max.ms": "2000",
    "log.retention.check.interval.ms": "3600000",
    "log.flush.offset.checkpoint.interval.ms": "600000",
    "replica.high.watermark.checkpoint.interval.ms": "60000",
}
_BATCH_S: Final = 300.0
_LOOK_S: Final = 0.5


def create_topics(kafka: RealKafka, names: Sequence[str], *, replication_factor: int) -> list[str]:
    """Create topics until the brokers no longer keep up. Returns those that are there, with all their logs."""
    held: list[str] = []
    began_s = time.monotonic()
    for start in range(0, len(names), TOPICS_AT_ONCE):
        batch = list(names[start : start + TOPICS_AT_ONCE])
        try:
            _create(kafka, batch, replication_factor)
        except (KafkaError, AssertionError) as error:
            report(f"the brokers hold no more than {len(held) * PARTITIONS:,} partitions: {error}")
            return held
        held += batch
        report(f"{len(held) * PARTITIONS:,} of {len(names) * PARTITIONS:,} partitions, {_measure_since(began_s)}")
    return held


def _create(kafka: RealKafka, names: Sequence[str], replication_factor: int) -> None:
    options = {"num_partitions": PARTITIONS, "replication_factor": replication_factor}
    wanted = len(names) * PARTITIONS * replication_factor

    def is_created() -> bool:
        # Asked for again where an answer was lost: the topics that are there already do not matter.
        for name in set(names) - set(kafka.client.list_topics()):
            with contextlib.suppress(TopicAlreadyExistsError):
                kafka.client.create_topics({name: options}, timeout_ms=int(_BATCH_S * 1000))
        return _count_logs(kafka, names) == wanted

    kafka.wait_until(is_created, f"{names[0]} to {names[-1]} have their logs", within_s=_BATCH_S, every_s=_LOOK_S)


def _count_logs(kafka: RealKafka, names: Sequence[str]) -> int:
    """The replicas that brokers have made: each follows the controller at its own pace."""
    return sum(
        len(topic["partitions"])
        for broker in kafka.client.describe_log_dirs({name: list(range(PARTITIONS)) for name in names})
        for log_dir in broker["log_dirs"]
        for topic in log_dir["topics"]
    )


def _measure_since(began_s: float) -> str:
    return f"{time.monotonic() - began_s:.0f} s"


def report(message: str) -> None:
    """Progress, beside the table."""
    print(f"   {message}", file=sys.stderr, flush=True)
