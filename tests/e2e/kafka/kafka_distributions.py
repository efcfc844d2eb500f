"""Real Kafka for tests: where it cannot run they are skipped, loudly."""

from __future__ import annotations

import pytest

from plimsoll.local.kafka.processes.archive import ensure_archive
from plimsoll.local.kafka.processes.distribution import DistributionMissing, KafkaDistribution, find_distribution
from plimsoll.runtime.entropy import SystemEntropy


def need_distribution() -> KafkaDistribution:
    """The distribution with its class-data archive; without Java, or Maven and no jars, the test is skipped."""
    try:
        distribution = find_distribution()
    except DistributionMissing as error:
        pytest.skip(f"NOT TESTED: {error}")
    ensure_archive(distribution, entropy=SystemEntropy())
    return distribution
