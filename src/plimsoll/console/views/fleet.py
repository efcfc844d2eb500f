"""The fleet: clusters through their life with their room, and requests for Kafkas with what they wait for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from plimsoll.fleet.reporting.cluster_lines import list_cluster_lines
from plimsoll.web.responses import build_json_response

if TYPE_CHECKING:
    from collections.abc import Sequence

    from starlette.requests import Request
    from starlette.responses import Response

    from plimsoll.fleet.model.clusters import Cluster
    from plimsoll.fleet.model.kafkas import KafkaRequest
    from plimsoll.journal.ports import Journal


class FleetRows(Protocol):
    """The rows of a fleet at one moment."""

    async def export_rows(self) -> tuple[Sequence[Cluster], Sequence[KafkaRequest]]: ...


class FleetView:
    """`/api/fleet`. Without `rows` no fleet manager runs in this process."""

    def __init__(self, rows: FleetRows | None = None, journal: Journal | None = None) -> None:
        self._rows = rows
        self._journal = journal

    async def list_fleet(self, _request: Request) -> Response:
        if self._rows is None or self._journal is None:
            return build_json_response({"clusters": None, "problem": "no fleet manager runs in this process"})
        clusters, kafkas = await self._rows.export_rows()
        lines = await list_cluster_lines(clusters, self._journal)
        answer = {
            "clusters": [msgspec.to_builtins(line) for line in lines],
            "kafkas": [_describe_kafka(kafka) for kafka in kafkas],
            "problem": "",
        }
        return build_json_response(answer)

    async def count_clusters(self) -> int | None:
        """The number of clusters; None: it is not known here."""
        return None if self._rows is None else len((await self._rows.export_rows())[0])


def _describe_kafka(kafka: KafkaRequest) -> dict[str, Any]:
    return {
        "id": kafka.id,
        "name": kafka.name,
        "plan": f"{kafka.instance_type}.{kafka.size_id}",
        "region": f"{kafka.cloud_provider} {kafka.region}",
        "status": kafka.status.value,
        "cluster": kafka.cluster_id,
        "reason": kafka.failed_reason,
        "created": kafka.created_at,
    }
