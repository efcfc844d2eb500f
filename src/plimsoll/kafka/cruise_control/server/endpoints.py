"""The endpoints: method, task type, role and parameters of each (docs/design/kafka.md 7)."""

from __future__ import annotations

from enum import IntEnum, StrEnum
from typing import Final

from plimsoll.core.values import Value


class Role(IntEnum):
    """What a user may do. A higher role includes the lower ones."""

    VIEWER = 1
    USER = 2
    ADMIN = 3


class EndpointType(StrEnum):
    """The types by which finished tasks are kept."""

    KAFKA_ADMIN = "KAFKA_ADMIN"
    KAFKA_MONITOR = "KAFKA_MONITOR"
    CRUISE_CONTROL_ADMIN = "CRUISE_CONTROL_ADMIN"
    CRUISE_CONTROL_MONITOR = "CRUISE_CONTROL_MONITOR"


class ParameterType(StrEnum):
    """How the text of a parameter is read."""

    BOOLEAN = "boolean"
    TEXT = "text"
    COUNT = "count"
    """A whole number above 0."""
    NOT_NEGATIVE = "not negative"
    """A whole number of at least 0."""
    IDS = "ids"
    NAMES = "names"
    PATTERN = "pattern"
    UUIDS = "uuids"
    LOG_DIRS = "log directories"
    """Pairs of a broker and a log directory: `0-/data/a,1-/data/b`."""


class Endpoint(Value):
    """An endpoint. `operation` is its name in progress reports."""

    name: str
    method: str
    type: EndpointType
    role: Role
    operation: str
    parameters: dict[str, ParameterType] = {}

    @property
    def path(self) -> str:
        return self.name.lower()

    @property
    def defaults_to_dry_run(self) -> bool:
        """Whether the endpoint moves something."""
        return "dryrun" in self.parameters


_B, _T, _C = ParameterType.BOOLEAN, ParameterType.TEXT, ParameterType.COUNT
_COMMON: Final = {"json": _B, "get_response_schema": _B, "doas": _T, "reason": _T}
_MODEL: Final = {
    **_COMMON,
    "verbose": _B,
    "goals": ParameterType.NAMES,
    "data_from": _T,
    "kafka_assigner": _B,
    "allow_capacity_estimation": _B,
    "excluded_topics": ParameterType.PATTERN,
    "use_ready_default_goals": _B,
    "exclude_recently_demoted_brokers": _B,
    "exclude_recently_removed_brokers": _B,
    "fast_mode": _B,
    "relief": _B,
}
_EXECUTION: Final = {
    "dryrun": _B,
    "skip_hard_goal_check": _B,
    "concurrent_partition_movements_per_broker": _C,
    "max_partition_movements_in_cluster": _C,
    "concurrent_intra_broker_partition_movements": _C,
    "concurrent_leader_movements": _C,
    "broker_concurrent_leader_movements": _C,
    "execution_progress_check_interval_ms": _C,
    "replica_movement_strategies": ParameterType.NAMES,
    "replication_throttle": ParameterType.NOT_NEGATIVE,
    "stop_ongoing_execution": _B,
    "review_id": _T,
}
_REBALANCE: Final = {
    **_MODEL,
    **_EXECUTION,
    "ignore_proposal_cache": _B,
    "destination_broker_ids": ParameterType.IDS,
    "rebalance_disk": _B,
}
_BROKERS: Final = {**_MODEL, **_EXECUTION, "brokerid": ParameterType.IDS}

_GET: Final = (
    Endpoint(
        name="LOAD",
        method="GET",
        type=EndpointType.KAFKA_MONITOR,
        role=Role.USER,
        operation="Get broker stats",
        parameters={
            **_COMMON,
            "start": _T,
            "end": _T,
            "time": _T,
            "allow_capacity_estimation": _B,
            "populate_disk_info": _B,
            "capacity_only": _B,
        },
    ),
    Endpoint(
        name="PARTITION_LOAD",
        method="GET",
        type=EndpointType.KAFKA_MONITOR,
        role=Role.USER,
        operation="Get partition load",
        parameters={
            **_COMMON,
            "resource": _T,
            "start": _T,
            "end": _T,
            "entries": _C,
            "topic": ParameterType.PATTERN,
            "partition": _T,
            "min_valid_partition_ratio": _T,
            "allow_capacity_estimation": _B,
            "max_load": _B,
            "avg_load": _B,
            "brokerid": ParameterType.IDS,
        },
    ),
    Endpoint(
        name="PROPOSALS",
        method="GET",
        type=EndpointType.KAFKA_MONITOR,
        role=Role.USER,
        operation="Get customized proposals",
        parameters={
            **_MODEL,
            "ignore_proposal_cache": _B,
            "destination_broker_ids": ParameterType.IDS,
            "rebalance_disk": _B,
        },
    ),
    Endpoint(
        name="STATE",
        method="GET",
        type=EndpointType.CRUISE_CONTROL_MONITOR,
        role=Role.USER,
        operation="Get state",
        parameters={**_COMMON, "substates": ParameterType.NAMES, "verbose": _B, "super_verbose": _B},
    ),
    Endpoint(
        name="KAFKA_CLUSTER_STATE",
        method="GET",
        type=EndpointType.KAFKA_MONITOR,
        role=Role.VIEWER,
        operation="Get Kafka cluster state",
        parameters={**_COMMON, "topic": ParameterType.PATTERN, "verbose": _B},
    ),
    Endpoint(
        name="USER_TASKS",
        method="GET",
        type=EndpointType.CRUISE_CONTROL_MONITOR,
        role=Role.VIEWER,
        operation="Get user tasks",
        parameters={
            **_COMMON,
            "user_task_ids": ParameterType.UUIDS,
            "client_ids": ParameterType.NAMES,
            "endpoints": ParameterType.NAMES,
            "types": ParameterType.NAMES,
            "entries": _C,
            "fetch_completed_task": _B,
        },
    ),
    Endpoint(
        name="REVIEW_BOARD",
        method="GET",
        type=EndpointType.CRUISE_CONTROL_MONITOR,
        role=Role.VIEWER,
        operation="Get review board",
        parameters={**_COMMON, "review_ids": ParameterType.IDS},
    ),
    Endpoint(
        name="PERMISSIONS",
        method="GET",
        type=EndpointType.CRUISE_CONTROL_MONITOR,
        role=Role.VIEWER,
        operation="Get permissions",
        parameters=_COMMON,
    ),
)
_POST: Final = (
    Endpoint(
        name="ADD_BROKER",
        method="POST",
        type=EndpointType.KAFKA_ADMIN,
        role=Role.ADMIN,
        operation="Add brokers",
        parameters={**_BROKERS, "throttle_added_broker": _B},
    ),
    Endpoint(
        name="REMOVE_BROKER",
        method="POST",
        type=EndpointType.KAFKA_ADMIN,
        role=Role.ADMIN,
        operation="Remove brokers",
        parameters={**_BROKERS, "throttle_removed_broker": _B, "destination_broker_ids": ParameterType.IDS},
    ),
    Endpoint(
        name="FIX_OFFLINE_REPLICAS",
        method="POST",
        type=EndpointType.KAFKA_ADMIN,
        role=Role.ADMIN,
        operation="Fix offline replicas",
        parameters={**_MODEL, **_EXECUTION},
    ),
    Endpoint(
        name="REBALANCE",
        method="POST",
        type=EndpointType.KAFKA_ADMIN,
        role=Role.ADMIN,
        operation="Rebalance",
        parameters=_REBALANCE,
    ),
    Endpoint(
        name="STOP_PROPOSAL_EXECUTION",
        method="POST",
        type=EndpointType.KAFKA_ADMIN,
        role=Role.ADMIN,
        operation="Stop proposal execution",
        parameters={**_COMMON, "force_stop": _B, "stop_external_agent": _B, "review_id": _T},
    ),
    Endpoint(
        name="PAUSE_SAMPLING",
        method="POST",
        type=EndpointType.CRUISE_CONTROL_ADMIN,
        role=Role.ADMIN,
        operation="Pause sampling",
        parameters={**_COMMON, "review_id": _T},
    ),
    Endpoint(
        name="RESUME_SAMPLING",
        method="POST",
        type=EndpointType.CRUISE_CONTROL_ADMIN,
        role=Role.ADMIN,
        operation="Resume sampling",
        parameters={**_COMMON, "review_id": _T},
    ),
    Endpoint(
        name="DEMOTE_BROKER",
        method="POST",
        type=EndpointType.KAFKA_ADMIN,
        role=Role.ADMIN,
        operation="Demote brokers",
        parameters={
            **_BROKERS,
            "brokerid_and_logdirs": ParameterType.LOG_DIRS,
            "skip_urp_demotion": _B,
            "exclude_follower_demotion": _B,
        },
    ),
    Endpoint(
        name="REMOVE_DISKS",
        method="POST",
        type=EndpointType.KAFKA_ADMIN,
        role=Role.ADMIN,
        operation="Remove disks",
        parameters={**_MODEL, **_EXECUTION, "brokerid_and_logdirs": ParameterType.LOG_DIRS},
    ),
)
ENDPOINTS: Final = {(endpoint.method, endpoint.path): endpoint for endpoint in (*_GET, *_POST)}
NAMES: Final = {"GET": [endpoint.name for endpoint in _GET], "POST": [endpoint.name for endpoint in _POST]}
