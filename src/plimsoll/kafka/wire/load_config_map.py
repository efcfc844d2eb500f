"""The ConfigMap of a KafkaRebalance: the loads of brokers before and after, and progress. Pure.

docs/design/kafka.md 2.6. A number that Cruise Control leaves out keeps its previous value.
"""

from __future__ import annotations

import json
import math
import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from plimsoll.core.plans import Reason
from plimsoll.core.values import Value
from plimsoll.kafka.model.rebalances import RebalanceState

if TYPE_CHECKING:
    from collections.abc import Mapping

    from plimsoll.kafka.model.rebalances import ExecutorSubstate

BROKER_LOAD: Final = "brokerLoad.json"
ESTIMATED_MINUTES: Final = "estimatedTimeToCompletionInMinutes"
COMPLETED_PERCENT: Final = "completedByteMovementPercentage"
EXECUTOR_STATE: Final = "executorState.json"
MAX_BYTES: Final = 512 * 1024
"""A larger value is left out: a ConfigMap holds 1 MiB."""
TOO_LARGE: Final = "ConfigMapTooLarge"

_METRICS: Final = {
    "Leaders": "leaders",
    "Replicas": "replicas",
    "CpuPct": "cpuPercentage",
    "DiskPct": "diskUsedPercentage",
    "DiskMB": "diskUsedMB",
    "NwOutRate": "networkOutRateKB",
    "LeaderNwInRate": "leaderNetworkInRateKB",
    "FollowerNwInRate": "followerNetworkInRateKB",
    "PnwOutRate": "potentialMaxNetworkOutRateKB",
}
_WHOLE: Final = frozenset({"leaders", "replicas"})
_DATE: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z")
_MAX_REASON: Final = 10_000
_MAX_MINUTES: Final = 10**9
_MAX_BITS: Final = 64


class LoadData(Value):
    """The keys to set in the ConfigMap (None removes a key), and what had to be left out."""

    data: dict[str, str | None]
    warnings: tuple[Reason, ...] = ()


def build_load_data(
    state: RebalanceState,
    *,
    body: Mapping[str, Any] | None,
    executor: ExecutorSubstate | None,
    now: datetime,
) -> LoadData:
    """The data of the ConfigMap in a state. `body`: a new proposal; None: the loads stay."""
    data: dict[str, str | None] = {}
    if body is not None and (loads := build_broker_load(body)):
        data[BROKER_LOAD] = _encode(loads)
    data |= _build_progress(state, executor=executor, now=now)
    too_large = [key for key, value in data.items() if value is not None and len(value.encode()) > MAX_BYTES]
    warnings = tuple(
        Reason(code=TOO_LARGE, message=f"{key} is left out: it has more than {MAX_BYTES} bytes", facts={"key": key})
        for key in too_large
    )
    return LoadData(data=data | dict.fromkeys(too_large), warnings=warnings)


def build_broker_load(body: Mapping[str, Any]) -> dict[str, dict[str, dict[str, float]]]:
    """The loads by broker and metric: before, after and their difference, or only after."""
    after, before = _read_loads(body.get("loadAfterOptimization")), _read_loads(body.get("loadBeforeOptimization"))
    loads = {}
    for broker, metrics in sorted(after.items()):
        loads[str(broker)] = {
            metric: _compare(before[broker].get(metric) if broker in before else None, value)
            for metric, value in metrics.items()
        }
    return loads


def _read_loads(load: object) -> dict[int, dict[str, float]]:
    """Finite numbers of brokers with an id; everything else is left out."""
    brokers = load.get("brokers") if isinstance(load, dict) else None
    found: dict[int, dict[str, float]] = {}
    for broker in brokers if isinstance(brokers, list) else ():
        if not isinstance(broker, dict) or not isinstance(broker.get("Broker"), int):
            continue
        metrics = {name: broker.get(key) for key, name in _METRICS.items()}
        found[broker["Broker"]] = {name: _convert(name, value) for name, value in metrics.items() if _is_number(value)}
    return found


def _convert(metric: str, value: Any) -> float:
    return int(value) if metric in _WHOLE else float(value)


def _compare(before: float | None, after: float) -> dict[str, float]:
    return {"after": after} if before is None else {"before": before, "after": after, "diff": after - before}


def _build_progress(
    state: RebalanceState, *, executor: ExecutorSubstate | None, now: datetime
) -> dict[str, str | None]:
    nothing: dict[str, str | None] = {ESTIMATED_MINUTES: None, COMPLETED_PERCENT: None, EXECUTOR_STATE: None}
    match state:
        case RebalanceState.PROPOSAL_READY:
            return {**nothing, COMPLETED_PERCENT: "0"}
        case RebalanceState.READY:
            return {**nothing, ESTIMATED_MINUTES: "0", COMPLETED_PERCENT: "100"}
        case RebalanceState.STOPPED | RebalanceState.NOT_READY:
            return {ESTIMATED_MINUTES: None}
        case RebalanceState.REBALANCING:
            return {} if executor is None else _build_execution_progress(executor, now)
    return nothing


def _build_execution_progress(executor: ExecutorSubstate, now: datetime) -> dict[str, str | None]:
    """Numbers that cannot be computed are left out, so that they keep their previous value."""
    progress: dict[str, str | None] = {EXECUTOR_STATE: _encode(executor.body)}
    finished, total = executor.finished_data_mb, executor.total_data_mb
    if finished is None or total is None or not (math.isfinite(finished) and math.isfinite(total)):
        return progress
    if total <= 0:
        return {**progress, COMPLETED_PERCENT: "100", ESTIMATED_MINUTES: "0"}
    if finished <= 0:
        return progress
    progress[COMPLETED_PERCENT] = str(min(100, math.floor(100 * finished / total)))
    minutes = _estimate_minutes(finished, total, elapsed_s=_find_elapsed_s(executor.triggered_task_reason, now))
    return progress if minutes is None else {**progress, ESTIMATED_MINUTES: str(minutes)}


def _estimate_minutes(finished: float, total: float, *, elapsed_s: float | None) -> int | None:
    if elapsed_s is None:
        return None
    rate = finished / max(elapsed_s, 1.0) * 60
    minutes = max(0.0, total - finished) / rate if rate > 0 else math.inf
    return round(minutes) if minutes <= _MAX_MINUTES else None


def _find_elapsed_s(reason: str, now: datetime) -> float | None:
    """Since the first time in the text; None: it has none, or one in the future."""
    found = _DATE.search(reason[:_MAX_REASON])
    if found is None:
        return None
    try:
        started = datetime.strptime(found.group(), "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
    except ValueError:
        return None
    elapsed_s = (now - started).total_seconds()
    return elapsed_s if elapsed_s >= 0 else None


def _is_number(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return math.isfinite(value) if isinstance(value, float) else value.bit_length() < _MAX_BITS


def _encode(value: object) -> str | None:
    """JSON; None: the value is nested too deeply."""
    try:
        return json.dumps(value, sort_keys=True, separators=(",", ":"), default=str)
    except (RecursionError, ValueError):
        return None
