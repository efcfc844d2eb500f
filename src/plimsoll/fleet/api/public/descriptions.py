"""Routes that describe the API itself. They need no token."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from plimsoll import __version__
from plimsoll.fleet.api.documents.base import (
    ErrorAnswer,
    ErrorListAnswer,
    ObjectReference,
    build_document_response,
)
from plimsoll.fleet.api.documents.public import ApiAnswer, OpenApiAnswer, SsoProviderListAnswer, VersionAnswer
from plimsoll.fleet.api.errors import BASE_PATH, ERRORS, Code, RequestRefused, build_error_document
from plimsoll.fleet.api.operations import Group, Operation, RowId
from plimsoll.web.responses import build_json_response

if TYPE_CHECKING:
    from collections.abc import Callable

    from plimsoll.web.responses import PageResponse

_ROOT: Final = BASE_PATH.rpartition("/")[0]
_COLLECTIONS: Final = {"kafkas": "KafkaRequestList", "cloud_providers": "CloudProviderList"}


class Descriptions:
    """`build_openapi` gives the OpenAPI document of the public routes."""

    def __init__(self, build_openapi: Callable[[], dict[str, Any]]) -> None:
        self._build_openapi = build_openapi

    def list_operations(self) -> tuple[Operation, ...]:
        return (
            self._describe(
                "", "getVersionMetadata", self.get_version, VersionAnswer, "The version, and the collections."
            ),
            self._describe("/openapi", "getOpenApi", self.get_openapi, OpenApiAnswer, "This API as OpenAPI."),
            self._describe("/errors", "getErrors", self.get_errors, ErrorListAnswer, "All errors."),
            Operation(
                method="GET",
                path="/errors/{id}",
                operation_id="getErrorById",
                group=Group.OPEN,
                endpoint=self.get_error,
                answers={200: ErrorAnswer, 404: ErrorAnswer},
                summary="An error by its number.",
            ),
            self._describe(
                "/sso_providers", "getSsoProviders", self.list_sso_providers, SsoProviderListAnswer, "Always empty."
            ),
        )

    @staticmethod
    def _describe(path: str, operation_id: str, endpoint: Callable[..., Any], answer: Any, summary: str) -> Operation:
        return Operation(
            method="GET",
            path=path,
            operation_id=operation_id,
            group=Group.OPEN,
            endpoint=endpoint,
            answers={200: answer},
            summary=summary,
        )

    async def get_root(self) -> PageResponse:
        version = ObjectReference(id="v1", kind="APIVersion", href=BASE_PATH)
        return build_document_response(ApiAnswer(id="kafkas_mgmt", kind="API", href=_ROOT, versions=[version]))

    async def get_version(self) -> PageResponse:
        collections = [
            ObjectReference(id=name, kind=kind, href=f"{BASE_PATH}/{name}") for name, kind in _COLLECTIONS.items()
        ]
        document = VersionAnswer(
            id="v1", kind="APIVersion", href=BASE_PATH, server_version=__version__, collections=collections
        )
        return build_document_response(document)

    async def get_openapi(self) -> PageResponse:
        return build_json_response(self._build_openapi())

    async def get_errors(self) -> PageResponse:
        items = [ErrorAnswer(**build_error_document(code)) for code in sorted(ERRORS)]
        return build_document_response(
            ErrorListAnswer(kind="ErrorList", page=1, size=len(items), total=len(items), items=items)
        )

    async def get_error(self, error_id: RowId) -> PageResponse:
        code = next((number for number in ERRORS if str(number) == error_id), None)
        if code is None:
            raise RequestRefused(Code.NOT_FOUND, f"there is no error {error_id[:50]!r}")
        return build_json_response(build_error_document(code))

    async def list_sso_providers(self) -> PageResponse:
        href = f"{BASE_PATH}/sso_providers"
        document = SsoProviderListAnswer(
            id="sso_providers", href=href, kind="SsoProviderList", page=1, size=0, total=0, items=[]
        )
        return build_document_response(document)
