"""The fields of TiDB objects and answers that the controllers read, and the extreme values that each may have.

A table, so that other fuzzers may use it: `KINDS` by the plural of the kind, with paths as `spec.tikv.replicas`; a map
key is a part of the path like any other.
"""

from __future__ import annotations

from typing import Any, Final

NUMBERS: Final = (0, -1, 1, 2**31 - 1, 2**31, 2**53, 2**63 - 1, 2**63, -(2**63), 2**64, 10**30, 1e308, 1e-308, 0.5)
QUANTITIES: Final = (
    "0", "-1", "1n", "1e30", "9999999999E", "1e-30", "0.000000001", "9223372036854775808", "1Ki1", "", "+1", "1e400",
)  # fmt: skip
TIMES: Final = (
    "0000-01-01T00:00:00Z", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z", "1970-01-01T00:00:00Z",
    "2026-01-01T00:00:00+23:59", "2026-06-30T23:59:60Z", "not a time", "",
)  # fmt: skip
TEXTS: Final = ("", " ", "\x00", "a" * 10_000, "🦀", "../..", "null")
RECORDS: Final = (
    "{}", "[]", "null", "9" * 5_000,
    '{"storeId":-1,"evictingSince":"0001-01-01T00:00:00Z","regionCount":-1,"regionsMovedAt":"9999-12-31T23:59:59Z"}',
    '{"storeId":4,"evictingSince":"0001-01-01T00:00:00Z","regionCount":0,"regionsMovedAt":"9999-12-31T23:59:59Z"}',
    '{"storeId":18446744073709551616,"evictingSince":"2026-01-01T00:00:00Z","regionCount":1e308}',
)  # fmt: skip

_RESOURCE: Final = "spec.tikv.resources.storage_small"
_ENTRY: Final = "status.tikv.pd-auto-scaling-tikv-storage_small"
_ANNOTATION: Final = "metadata.annotations."

KINDS: Final[dict[str, dict[str, tuple[Any, ...]]]] = {
    "tidbclusterautoscalers": {
        f"{_RESOURCE}.count": NUMBERS,
        f"{_RESOURCE}.cpu": QUANTITIES,
        f"{_RESOURCE}.memory": QUANTITIES,
        f"{_RESOURCE}.storage": QUANTITIES,
        "spec.tikv.rules.cpu.max_threshold": NUMBERS,
        "spec.tikv.rules.cpu.min_threshold": NUMBERS,
        "spec.tikv.rules.storage.max_threshold": NUMBERS,
        "spec.tikv.scaleInIntervalSeconds": NUMBERS,
        "spec.tikv.scaleOutIntervalSeconds": NUMBERS,
        "spec.cluster.name": TEXTS,
        "spec.cluster.namespace": TEXTS,
        f"{_ENTRY}.lastAutoScalingTimestamp": TIMES,
        f"{_ENTRY}.lastReversalTimestamp": TIMES,
        f"{_ENTRY}.replicas": NUMBERS,
        f"{_ENTRY}.desiredReplicas": NUMBERS,
        f"{_ENTRY}.omittedCount": NUMBERS,
        f"{_ENTRY}.wantedCount": NUMBERS,
        f"{_ENTRY}.cluster": TEXTS,
    },
    "tidbclusters": {
        "spec.tikv.replicas": NUMBERS,
        "spec.tikv.requests.cpu": QUANTITIES,
        "spec.tikv.requests.memory": QUANTITIES,
        "spec.tikv.requests.storage": QUANTITIES,
        "spec.tidb.replicas": NUMBERS,
        "spec.clusterDomain": TEXTS,
        "status.tikv.statefulSet.replicas": NUMBERS,
        "status.tikv.statefulSet.readyReplicas": NUMBERS,
        "status.tikv.stores.4.leaderCount": NUMBERS,
        "status.tikv.stores.4.lastHeartbeatTime": TIMES,
        "status.tikv.stores.99999999999999999999.state": TEXTS,
        "status.tidb.members.x.health": NUMBERS,
        f"{_ANNOTATION}tidb.pingcap.com/last-autoscaling-timestamp": TIMES,
        f"{_ANNOTATION}autoscaler.tidb.pingcap.com/drain": RECORDS,
        f"{_ANNOTATION}autoscaler.tidb.pingcap.com/collision": RECORDS,
        f"{_ANNOTATION}tikv.tidb.pingcap.com/delete-slots": ("[]", "[-1]", "[1e9]", "[99999999999999999999]", "x"),
    },
}

PD_STORE: Final[dict[str, tuple[Any, ...]]] = {
    "store.id": NUMBERS,
    "store.state": NUMBERS,
    "store.address": TEXTS,
    "status.capacity": (*QUANTITIES, *NUMBERS),
    "status.available": (*QUANTITIES, *NUMBERS),
    "status.used_size": (*QUANTITIES, *NUMBERS),
    "status.leader_count": NUMBERS,
    "status.region_count": NUMBERS,
    "status.start_ts": TIMES,
    "status.last_heartbeat_ts": TIMES,
}
SAMPLES: Final = ("NaN", "+Inf", "-Inf", "0", "-0", "-1", "1e308", "5e-324", "1e400", "1e-400", "9" * 400, "x", "")


def build_patch(path: str, value: Any) -> dict[str, Any]:
    """The merge patch that sets one field. The key of an annotation is not split."""
    parts = (
        ["metadata", "annotations", path.removeprefix(_ANNOTATION)] if path.startswith(_ANNOTATION) else path.split(".")
    )
    for part in reversed(parts):
        value = {part: value}
    return value
