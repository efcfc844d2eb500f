"""Public routes of Kafka requests: create, list, read, change, delete."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from starlette.requests import Request  # noqa: TC002 - FastAPI reads annotations at run time

from plimsoll.fleet.api.authorization import get_caller
from plimsoll.fleet.api.documents.base import ErrorAnswer, build_document_response
from plimsoll.fleet.api.documents.public import KafkaAnswer, KafkaListAnswer, KafkaPatch, KafkaPayload
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
from plimsoll.fleet.api.presentation import present_kafka
from plimsoll.fleet.api.public.creation import KafkaCreation
from plimsoll.fleet.api.public.plan_changes import PlanChange
from plimsoll.fleet.model.statuses import ENDING, KafkaStatus
from plimsoll.fleet.model.workers import Worker
from plimsoll.fleet.ports import KafkaFilter

if TYPE_CHECKING:
    from plimsoll.fleet.api.ports import ApiPorts
    from plimsoll.fleet.auth.claims import Caller
    from plimsoll.fleet.model.kafkas import KafkaRequest
    from plimsoll.fleet.ports import KafkaChanges
    from plimsoll.web.responses import PageResponse

_ACCEPTED: Final = 202


class PublicKafkas:
    """The Kafka requests of the caller's organisation."""

    def __init__(self, ports: ApiPorts) -> None:
        self._ports = ports
        self._store = ports.store
        self._creation = KafkaCreation(ports)
        self._plan_change = PlanChange(ports)

    def list_operations(self) -> tuple[Operation, ...]:
        return (
            Operation(
                method="POST",
                path="/kafkas",
                operation_id="createKafka",
                group=Group.PUBLIC,
                endpoint=self.create_kafka,
                body=KafkaPayload,
                answers={_ACCEPTED: KafkaAnswer, **answer_errors(400, 401, 403, 404, 409, 413, 429, 500)},
                summary="Request a Kafka. It is placed on a cluster later.",
            ),
            Operation(
                method="GET",
                path="/kafkas",
                operation_id="getKafkas",
                group=Group.PUBLIC,
                endpoint=self.list_kafkas,
                answers={200: KafkaListAnswer, **answer_errors(400, 401, 403, 429, 500)},
                summary="The Kafkas of the organisation.",
            ),
            Operation(
                method="GET",
                path="/kafkas/{id}",
                operation_id="getKafkaById",
                group=Group.PUBLIC,
                endpoint=self.get_kafka,
                answers={200: KafkaAnswer, **answer_errors(400, 401, 403, 404, 429, 500)},
                summary="A Kafka.",
            ),
            Operation(
                method="PATCH",
                path="/kafkas/{id}",
                operation_id="updateKafkaById",
                group=Group.PUBLIC,
                endpoint=self.change_kafka,
                body=KafkaPatch,
                answers={200: KafkaAnswer, **answer_errors(400, 401, 403, 404, 409, 413, 429, 500)},
                summary="Change the owner, the re-authentication or the size of a Kafka.",
            ),
            Operation(
                method="DELETE",
                path="/kafkas/{id}",
                operation_id="deleteKafkaById",
                group=Group.PUBLIC,
                endpoint=self.delete_kafka,
                answers={_ACCEPTED: ErrorAnswer, **answer_errors(400, 401, 403, 404, 429, 500)},
                summary="Delete a Kafka. The answer names it; it is not an error.",
            ),
        )

    async def create_kafka(self, request: Request, is_async: IsAsync) -> PageResponse:
        _require_async(is_async)
        payload = await read_model(request, KafkaPayload)
        kafka = await self._creation.create(payload, get_caller(request))
        self._ports.signals.notify(Worker.ACCEPTED_KAFKA)
        return build_document_response(self._present(kafka), _ACCEPTED)

    async def list_kafkas(
        self,
        request: Request,
        number: PageNumber = "",
        size: PageSize = "",
        order_by: OrderBy = "",
        search: SearchText = "",
    ) -> PageResponse:
        page = parse_page(number, size, order_by)
        visible = KafkaFilter(organisation_id=get_caller(request).organisation)
        total, kafkas = await self._store.search_kafkas(visible, parse_search(search), page)
        items = [self._present(kafka) for kafka in kafkas]
        document = KafkaListAnswer(kind="KafkaRequestList", page=page.number, size=len(items), total=total, items=items)
        return build_document_response(document)

    async def get_kafka(self, request: Request, row_id: RowId) -> PageResponse:
        return build_document_response(self._present(await self._find_visible(row_id, get_caller(request))))

    async def change_kafka(self, request: Request, row_id: RowId) -> PageResponse:
        caller = get_caller(request)
        kafka = await self._find_visible(row_id, caller)
        patch = await read_model(request, KafkaPatch)
        if kafka.owner != caller.user and not caller.is_org_admin:
            raise RequestRefused(
                Code.UNAUTHORIZED, "only the owner or an administrator of the organisation may do this"
            )
        if patch.owner is None and patch.reauthentication_enabled is None and patch.plan is None:
            raise RequestRefused(Code.FIELD_VALIDATION, "the body changes nothing: name a field")
        if patch.owner == "":
            raise RequestRefused(Code.FIELD_VALIDATION, "owner: a name is needed")
        if patch.plan is not None:
            await self._plan_change.apply(kafka, patch.plan)
        changes: KafkaChanges = {}
        if patch.owner is not None:
            changes["owner"] = patch.owner
        if patch.reauthentication_enabled is not None:
            changes["reauthentication_enabled"] = patch.reauthentication_enabled
        if changes:
            await self._store.change_kafka(row_id, changes, statuses=set(KafkaStatus) - ENDING)
        return build_document_response(self._present(await self._find_visible(row_id, caller)))

    async def delete_kafka(self, request: Request, row_id: RowId, is_async: IsAsync) -> PageResponse:
        _require_async(is_async)
        caller = get_caller(request)
        kafka = await self._find_visible(row_id, caller)
        if kafka.owner != caller.user and not caller.is_org_admin:
            # As the original: a Kafka that the caller may not delete is not found.
            raise _refuse_unknown(row_id)
        await self._store.change_kafka(row_id, {"status": KafkaStatus.DEPROVISION}, statuses=set(KafkaStatus) - ENDING)
        self._ports.signals.notify(Worker.DELETING_KAFKA)
        # The original documents an error here. A reference with these fields satisfies its clients.
        document = ErrorAnswer(
            id=kafka.id,
            kind="Kafka",
            href=f"{BASE_PATH}/kafkas/{kafka.id}",
            code="",
            reason="the Kafka is being deleted",
            operation_id=request.state.operation_id,
        )
        return build_document_response(document, _ACCEPTED)

    async def _find_visible(self, row_id: str, caller: Caller) -> KafkaRequest:
        kafka = await self._store.get_kafka(row_id)
        if kafka is None or kafka.organisation_id != caller.organisation:
            raise _refuse_unknown(row_id)
        return kafka

    def _present(self, kafka: KafkaRequest) -> KafkaAnswer:
        return present_kafka(kafka, self._ports.policy, browser_url=self._ports.settings.browser_url)


def _require_async(is_async: bool) -> None:
    if not is_async:
        raise RequestRefused(Code.NEEDS_ASYNC)


def _refuse_unknown(row_id: str) -> RequestRefused:
    return RequestRefused(Code.NOT_FOUND, f"there is no Kafka {row_id[:50]!r}")
