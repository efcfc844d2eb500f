"""Checks the options of an execution. Each error names the option."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import msgspec

from plimsoll.core.errors import InvalidInput
from plimsoll.kafka.executor.strategies import check_strategies

if TYPE_CHECKING:
    from plimsoll.kafka.model.executions import ExecutionOptions

_COUNTS: Final = (
    "concurrent_partition_movements_per_broker",
    "max_partition_movements_in_cluster",
    "concurrent_intra_broker_partition_movements",
    "concurrent_leader_movements",
    "broker_concurrent_leader_movements",
)
_BYTES: Final = ("replication_throttle", "max_bytes_per_hour", "max_bytes_unconfirmed")
_LARGEST: Final = 2**63 - 1


def check_options(options: ExecutionOptions) -> ExecutionOptions:
    """The same options, with the simple names of strategies."""
    for name in _COUNTS:
        number = getattr(options, name)
        if not 1 <= number <= _LARGEST:
            raise InvalidInput(f"must be at least 1, not {number}", path=name)
    for name in _BYTES:
        number = getattr(options, name)
        if number is not None and not 1 <= number <= _LARGEST:
            raise InvalidInput(f"must be a number of bytes above 0, not {number}", path=name)
    if not (math.isfinite(options.progress_check_interval_s) and options.progress_check_interval_s > 0):
        raise InvalidInput("must be a number of seconds above 0", path="progress_check_interval_s")
    if not (math.isfinite(options.dead_broker_grace_s) and options.dead_broker_grace_s >= 0):
        raise InvalidInput("must be a number of seconds", path="dead_broker_grace_s")
    strategies = check_strategies(options.replica_movement_strategies, path="replica_movement_strategies")
    return msgspec.structs.replace(options, replica_movement_strategies=strategies)
