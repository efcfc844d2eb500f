"""What the agent reports about an instance: the Ready condition and what goes with it."""

from __future__ import annotations

from typing import Final

from plimsoll.core.values import Value

TRUE: Final = "True"
FALSE: Final = "False"
INSTALLING: Final = "Installing"
DELETED: Final = "Deleted"
REJECTED: Final = "Rejected"
ERROR: Final = "Error"


class RunningVersions(Value):
    """What an instance runs. Empty: not known."""

    kafka: str = ""
    strimzi: str = ""
    kafka_ibp: str = ""


class InstanceReport(Value):
    """The report of one instance. `router`: where its routes end; empty: it has none yet."""

    id: str
    status: str
    reason: str = ""
    message: str = ""
    versions: RunningVersions = RunningVersions()
    router: str = ""
    admin_server_uri: str = ""
    bytes_stored: int | None = None
    units: int | None = None
    """The streaming units that it holds. None: it holds none, as reserved instances do."""
    is_resizing: bool = False
    """Its brokers come or go, or replicas move because of that."""
    refused_units: int | None = None
    """The units of a larger size that the cluster has no room for: it keeps its size."""

    @property
    def is_ready(self) -> bool:
        return self.status == TRUE


def report_deleted(kafka_id: str) -> InstanceReport:
    return InstanceReport(id=kafka_id, status=FALSE, reason=DELETED)
