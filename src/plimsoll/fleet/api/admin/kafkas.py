"""Routes of administrators for Kafkas of all organisations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from starlette.requests import Request  # noqa: TC002 - FastAPI reads annotations at run time

from plimsoll.fleet.api.admin.upgrades import find_upgrade_changes
from plimsoll.fleet.api.documents.admin import (
    AdminKafkaAnswer,
    AdminKafkaListAnswer,
    AdminKafkaPatch,
    RouteAnswer,
)
from plimsoll.fleet.api.documents.base import build_document_response
from plimsoll.fleet.api.errors import BASE_PATH, Code, RequestRefused
from plimsoll.fleet.api.operations import (
    Group,
    IsAsync,
    Operation,
    OrderBy,
    PageNumber,
    PageSize,
    RowId,
    SearchText,
    answer_errors,
)
from plimsoll.fleet.api.parsing.bodies import read_model
from plimsoll.fleet.api.parsing.paging import parse_page
from plimsoll.fleet.api.parsing.search import parse_search
from plimsoll.fleet.api.presentation import present_bytes, present_host
from plimsoll.fleet.model.statuses import ENDING, KafkaStatus
from plimsoll.fleet.model.workers import Worker
from plimsoll.fleet.ports import KafkaFilter

if TYPE_CHECKING:
    from plimsoll.fleet.api.ports import ApiPorts
    from plimsoll.fleet.model.kafkas import KafkaRequest
    from plimsoll.web.responses import PageResponse

_CHANGEABLE: Final = frozenset(set(KafkaStatus) - {KafkaStatus.ACCEPTED, KafkaStatus.DELETING})
_EVERYTHING: Final = KafkaFilter()


class AdminKafkas:
    """Kafkas of all organisations."""

    def __init__(self, ports: ApiPorts) -> None:
        self._ports = ports
        self._store = ports.store

    def list_operations(self) -> tuple[Operation, ...]:
        return (
            Operation(
                method="GET",
                path="/admin/kafkas",
                operation_id="getKafkas",
                group=Group.ADMIN,
                endpoint=self.list_kafkas,
                answers={200: AdminKafkaListAnswer, **answer_errors(400, 401, 403, 404, 429, 500)},
                summary="The Kafkas of all organisations.",
            ),
            Operation(
                method="GET",
                path="/admin/kafkas/{id}",
                operation_id="getKafkaById",
                group=Group.ADMIN,
                endpoint=self.get_kafka,
                answers={200: AdminKafkaAnswer, **answer_errors(400, 401, 403, 404, 429, 500)},
                summary="A Kafka.",
            ),
            Operation(
                method="PATCH",
                path="/admin/kafkas/{id}",
                operation_id="updateKafkaById",
                group=Group.ADMIN,
                endpoint=self.change_kafka,
                body=AdminKafkaPatch,
                answers={200: AdminKafkaAnswer, **answer_errors(400, 401, 403, 404, 409, 413, 429, 500)},
                summary="Change the versions or the retention size of a Kafka.",
            ),
            Operation(
                method="DELETE",
                path="/admin/kafkas/{id}",
                operation_id="deleteKafkaById",
                group=Group.ADMIN,
                endpoint=self.delete_kafka,
                answers={200: AdminKafkaAnswer, **answer_errors(400, 401, 403, 404, 429, 500)},
                summary="Delete a Kafka.",
            ),
        )

    async def list_kafkas(
        self, number: PageNumber = "", size: PageSize = "", order_by: OrderBy = "", search: SearchText = ""
    ) -> PageResponse:
        page = parse_page(number, size, order_by)
        total, kafkas = await self._store.search_kafkas(_EVERYTHING, parse_search(search), page)
        items = [_present(kafka) for kafka in kafkas]
        return build_document_response(
            AdminKafkaListAnswer(kind="KafkaList", page=page.number, size=len(items), total=total, items=items)
        )

    async def get_kafka(self, row_id: RowId) -> PageResponse:
        return build_document_response(_present(await self._find(row_id)))

    async def change_kafka(self, request: Request, row_id: RowId) -> PageResponse:
        kafka = await self._find(row_id)
        patch = await read_model(request, AdminKafkaPatch)
        if patch.suspended is not None:
            raise RequestRefused(Code.BAD_REQUEST, "suspended: Kafkas cannot be suspended here")
        if not patch.model_fields_set:
            raise RequestRefused(Code.FIELD_VALIDATION, "the body changes nothing: name a field")
        if kafka.status not in _CHANGEABLE:
            raise RequestRefused(Code.BAD_REQUEST, f"a Kafka that is {kafka.status} cannot be changed")
        cluster = await self._store.find_cluster(kafka.cluster_id)
        changes = find_upgrade_changes(kafka, cluster, patch)
        changed = await self._store.change_kafka(row_id, changes, statuses={kafka.status})
        if changed is None:
            raise RequestRefused(Code.CONFLICT, "the Kafka changed meanwhile; try again")
        self._ports.signals.notify(Worker.READY_KAFKA)
        return build_document_response(_present(changed))

    async def delete_kafka(self, row_id: RowId, is_async: IsAsync) -> PageResponse:
        if not is_async:
            raise RequestRefused(Code.NEEDS_ASYNC)
        await self._find(row_id)
        await self._store.change_kafka(row_id, {"status": KafkaStatus.DEPROVISION}, statuses=set(KafkaStatus) - ENDING)
        self._ports.signals.notify(Worker.DELETING_KAFKA)
        return build_document_response(_present(await self._find(row_id)))

    async def _find(self, row_id: str) -> KafkaRequest:
        kafka = await self._store.get_kafka(row_id)
        if kafka is None:
            raise RequestRefused(Code.NOT_FOUND, f"there is no Kafka {row_id[:50]!r}")
        return kafka


def _present(kafka: KafkaRequest) -> AdminKafkaAnswer:
    return AdminKafkaAnswer(
        id=kafka.id,
        kind="Kafka",
        href=f"{BASE_PATH}/admin/kafkas/{kafka.id}",
        status=kafka.status,
        cloud_provider=kafka.cloud_provider,
        multi_az=kafka.multi_az,
        region=kafka.region,
        owner=kafka.owner,
        name=kafka.name,
        bootstrap_server_host=present_host(kafka),
        created_at=kafka.created_at,
        updated_at=kafka.updated_at,
        expires_at=kafka.expires_at,
        failed_reason=kafka.failed_reason or None,
        actual_kafka_version=kafka.actual_kafka_version or None,
        actual_strimzi_version=kafka.actual_strimzi_version or None,
        actual_kafka_ibp_version=kafka.actual_kafka_ibp_version or None,
        desired_kafka_version=kafka.desired_kafka_version or None,
        desired_strimzi_version=kafka.desired_strimzi_version or None,
        desired_kafka_ibp_version=kafka.desired_kafka_ibp_version or None,
        kafka_upgrading=kafka.kafka_upgrading,
        strimzi_upgrading=kafka.strimzi_upgrading,
        kafka_ibp_upgrading=kafka.kafka_ibp_upgrading,
        organisation_id=kafka.organisation_id or None,
        subscription_id=kafka.subscription_id or None,
        owner_account_id=kafka.owner_account_id or None,
        instance_type=kafka.instance_type,
        quota_type=kafka.quota_type or None,
        routes=[RouteAnswer(domain=route.domain, router=route.router) for route in kafka.routes] or None,
        routes_created=kafka.routes_created,
        cluster_id=kafka.cluster_id or None,
        namespace=kafka.namespace or None,
        size_id=kafka.size_id,
        max_data_retention_size=present_bytes(kafka.max_data_retention_size),
    )
