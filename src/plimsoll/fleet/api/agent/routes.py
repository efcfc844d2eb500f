"""Routes of agents: what to run, and what was found (docs/design/fleet.md 3.3 and 4)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import structlog
from starlette.requests import Request  # noqa: TC002 - FastAPI reads annotations at run time
from starlette.responses import Response

from plimsoll.fleet.api.agent.kafka_reports import KafkaReports
from plimsoll.fleet.api.authorization import get_cluster
from plimsoll.fleet.api.documents.agent import (
    AgentClusterAnswer,
    AgentSpecAnswer,
    ClusterStatusReport,
    KafkaStatusReports,
    ManagedKafkaListAnswer,
    NetworkAnswer,
    PoolAnswer,
)
from plimsoll.fleet.api.documents.base import build_document_response
from plimsoll.fleet.api.errors import Code, RequestRefused
from plimsoll.fleet.api.operations import Group, Operation, RowId, answer_errors
from plimsoll.fleet.api.parsing.bodies import MAX_REPORT_BYTES, read_json
from plimsoll.fleet.model.statuses import LISTED_FOR_AGENTS, ClusterStatus, ScalingType
from plimsoll.fleet.model.workers import Worker
from plimsoll.fleet.planning.prewarming import is_listed, list_reserved
from plimsoll.fleet.planning.reports import InvalidReport, read_cluster_report
from plimsoll.fleet.wire.managed_kafkas import build_managed_kafka
from plimsoll.web.responses import PageResponse, build_json_response

if TYPE_CHECKING:
    from plimsoll.fleet.api.ports import ApiPorts
    from plimsoll.fleet.model.clusters import Cluster

_NO_CONTENT: Final = 204

_log = structlog.get_logger("plimsoll.fleet.api")


class AgentRoutes:
    """Serves the agent of the cluster that the path names. Its row is in the state of the request."""

    def __init__(self, ports: ApiPorts) -> None:
        self._ports = ports
        self._store = ports.store
        self._kafka_reports = KafkaReports(ports)
        self._without_reserve: dict[str, str] = {}
        """The last reason why nothing is reserved, by cluster: it is logged once."""

    def list_operations(self) -> tuple[Operation, ...]:
        path = "/agent-clusters/{id}"
        return (
            Operation(
                method="GET",
                path=path,
                operation_id="getKafkaAgent",
                group=Group.AGENT,
                endpoint=self.get_configuration,
                answers={200: AgentClusterAnswer, **answer_errors(400, 401, 404, 429, 500)},
                summary="The configuration of the agent.",
            ),
            Operation(
                method="PUT",
                path=f"{path}/status",
                operation_id="updateAgentClusterStatus",
                group=Group.AGENT,
                endpoint=self.report_cluster,
                body=ClusterStatusReport,
                answers={_NO_CONTENT: None, **answer_errors(400, 401, 404, 413, 429, 500)},
                summary="Report the readiness, the capacity and the Strimzi versions of the cluster.",
            ),
            Operation(
                method="GET",
                path=f"{path}/kafkas",
                operation_id="getKafkas",
                group=Group.AGENT,
                endpoint=self.list_kafkas,
                answers={200: ManagedKafkaListAnswer, **answer_errors(400, 401, 404, 429, 500)},
                summary="The Kafkas to run, and reserved instances.",
            ),
            Operation(
                method="PUT",
                path=f"{path}/kafkas/status",
                operation_id="updateKafkaClusterStatus",
                group=Group.AGENT,
                endpoint=self.report_kafkas,
                body=KafkaStatusReports,
                answers={200: None, **answer_errors(400, 401, 404, 413, 429, 500)},
                summary="Report the Kafkas of the cluster. A report that cannot be used does not fail the others.",
            ),
        )

    async def get_configuration(self, request: Request, _row_id: RowId) -> PageResponse:
        cluster = get_cluster(request)
        is_auto = self._ports.policy.scaling_type is ScalingType.AUTO
        pools = {
            name: PoolAnswer(maxNodes=capacity.max_nodes)
            for name, capacity in cluster.dynamic_capacity_info.items()
            if is_auto and capacity.max_nodes > 0
        }
        net = NetworkAnswer(private=cluster.access_kafkas_via_private_network)
        return build_document_response(AgentClusterAnswer(spec=AgentSpecAnswer(net=net, capacity=pools or None)))

    async def report_cluster(self, request: Request, _row_id: RowId) -> Response:
        cluster = get_cluster(request)
        document = await read_json(request, max_bytes=MAX_REPORT_BYTES)
        report = read_cluster_report(document, self._ports.clock.now())
        if isinstance(report, InvalidReport):
            raise RequestRefused(Code(report.code), report.reason)
        # The store decides again from the row: a cluster that is being removed stays so.
        stored = await self._store.store_report(cluster.cluster_id, report)
        if stored is not None and stored.status is ClusterStatus.READY and cluster.status is not ClusterStatus.READY:
            for worker in (Worker.ACCEPTED_KAFKA, Worker.PROVISIONING_KAFKA):
                self._ports.signals.notify(worker)
            if cluster.ready_at is None:
                self._ports.metrics.observe_cluster_creation((report.at - stored.created_at).total_seconds())
        return Response(status_code=_NO_CONTENT)

    async def list_kafkas(self, request: Request, _row_id: RowId) -> PageResponse:
        cluster = get_cluster(request)
        policy = self._ports.policy
        kafkas = await self._store.list_kafkas(LISTED_FOR_AGENTS, cluster_id=cluster.cluster_id)
        items = [
            build_managed_kafka(
                kafka, policy.find_size(kafka.instance_type, kafka.size_id), oauth=self._ports.settings.oauth
            )
            for kafka in kafkas
            if is_listed(kafka, cluster)
        ]
        reserved = list_reserved(cluster, policy)
        self._log_reserve(cluster, reserved.reason, reserved.message)
        return build_json_response({"kind": "ManagedKafkaList", "items": [*items, *reserved.items]})

    async def report_kafkas(self, request: Request, _row_id: RowId) -> Response:
        document = await read_json(request, max_bytes=MAX_REPORT_BYTES)
        if not isinstance(document, dict):
            raise RequestRefused(Code.FIELD_VALIDATION, "the body must be an object: reports by the id of the Kafka")
        await self._kafka_reports.store(get_cluster(request), document)
        return Response()

    def _log_reserve(self, cluster: Cluster, reason: str, message: str) -> None:
        if self._without_reserve.get(cluster.id, "") == reason:
            return
        self._without_reserve[cluster.id] = reason
        if reason:
            _log.warning("reserve.missing", cluster=cluster.id, problem=message)
