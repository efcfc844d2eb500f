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

    @property
    def is_ready(self) -> bool:
        return self.status == TRUE


def report_deleted(kafka_id: str) -> InstanceReport:
    return InstanceReport(id=kafka_id, status=FALSE, reason=DELETED)
