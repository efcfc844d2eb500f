"""The application: all routes with their guards, built from ports.

Everything is `async def`, dependencies included: FastAPI runs a plain `def` in a thread, and virtual time ends there.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

import structlog
from fastapi import Depends, FastAPI
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException
from starlette.routing import compile_path

from plimsoll.core.errors import InvalidInput, Unreachable
from plimsoll.fleet.api.admin.clusters import AdminClusters
from plimsoll.fleet.api.admin.decisions import ScalingDecisions
from plimsoll.fleet.api.admin.kafkas import AdminKafkas
from plimsoll.fleet.api.agent.routes import AgentRoutes
from plimsoll.fleet.api.authorization import Authorization
from plimsoll.fleet.api.errors import BASE_PATH, Code, RequestRefused, build_error_response
from plimsoll.fleet.api.guard import RequestGuard
from plimsoll.fleet.api.openapi import build_openapi
from plimsoll.fleet.api.operations import Group, is_out_of_scope
from plimsoll.fleet.api.public.cloud_providers import CloudProviders
from plimsoll.fleet.api.public.descriptions import Descriptions
from plimsoll.fleet.api.public.kafkas import PublicKafkas
from plimsoll.fleet.auth.issuer_application import build_issuer_application
from plimsoll.fleet.errors import UnusableDatabase, UnusableKeys

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.types import ASGIApp

    from plimsoll.fleet.api.operations import Operation
    from plimsoll.fleet.api.ports import ApiPorts

ISSUER_PATH: Final = "/auth"
"""The path of the built-in issuer, beside the API."""
_RETRY_AFTER_S: Final = "5"

_log = structlog.get_logger("plimsoll.fleet.api")


class FleetApi:
    """The API. `application` is served; the rest describes it."""

    def __init__(self, ports: ApiPorts) -> None:
        self._authorization = Authorization(ports)
        self._descriptions = Descriptions(lambda: self.build_openapi(Group.PUBLIC))
        self._documents: dict[Group, dict[str, Any]] = {}
        self.operations = _list_operations(ports, self._descriptions)
        self._fastapi = self._build_fastapi(ports)
        self.application: ASGIApp = RequestGuard(
            self._fastapi, entropy=ports.entropy, clock=ports.clock, metrics=ports.metrics
        )

    def build_openapi(self, group: Group) -> dict[str, Any]:
        """The OpenAPI document of a group of routes."""
        if group not in self._documents:
            self._documents[group] = build_openapi(self._fastapi, self.operations, group)
        return self._documents[group]

    def list_routes(self) -> tuple[tuple[str, str], ...]:
        """Method and path of every route that is served, those of the issuer left out."""
        routes = (route for route in self._fastapi.routes if isinstance(route, APIRoute))
        return tuple((method, route.path) for route in routes for method in sorted(route.methods or ()))

    def _build_fastapi(self, ports: ApiPorts) -> FastAPI:
        # `openapi_url` None: FastAPI serves no pages of its own, which load scripts of others.
        application = FastAPI(openapi_url=None, redirect_slashes=False)
        application.add_api_route(
            BASE_PATH.rpartition("/")[0], self._descriptions.get_root, methods=["GET"], response_model=None
        )
        for operation in self.operations:
            self._add_route(application, operation)
        if ports.issuer is not None:
            application.mount(ISSUER_PATH, build_issuer_application(ports.issuer, ports.store))
        application.add_exception_handler(RequestRefused, _answer_refusal)
        application.add_exception_handler(InvalidInput, _answer_unstorable)
        for unusable in (UnusableDatabase, UnusableKeys):  # of this service, and not of the request
            application.add_exception_handler(unusable, _answer_unusable)
        application.add_exception_handler(Unreachable, _answer_unreachable)
        application.add_exception_handler(Exception, _answer_failure)
        application.add_exception_handler(RequestValidationError, _answer_invalid_parameters)
        application.add_exception_handler(HTTPException, self._answer_unrouted)
        return application

    def _add_route(self, application: FastAPI, operation: Operation) -> None:
        guards = {
            Group.PUBLIC: self._authorization.admit_user,
            Group.AGENT: self._authorization.admit_agent,
            Group.ADMIN: self._authorization.admit_admin,
        }
        guard = guards.get(operation.group)
        answers: dict[int | str, dict[str, Any]] = {
            status: {"description": HTTPStatus(status).phrase, **({"model": model} if model else {})}
            for status, model in operation.answers.items()
        }
        application.add_api_route(
            operation.full_path,
            operation.endpoint,
            methods=[operation.method],
            operation_id=operation.operation_id,
            summary=operation.summary or None,
            description="",
            status_code=next(iter(operation.answers)),
            response_model=None,
            responses=answers,
            dependencies=[] if guard is None else [Depends(guard)],
        )

    async def _answer_unrouted(self, request: Request, error: Exception) -> Response:
        """A path that does not exist, or a method that its path does not have."""
        assert isinstance(error, HTTPException)
        path = request.scope["path"]
        allowed = self._list_methods(path)
        if error.status_code == HTTPStatus.METHOD_NOT_ALLOWED or allowed or is_out_of_scope(path):
            refused = RequestRefused(Code.NOT_IMPLEMENTED, headers={"allow": ", ".join(allowed)})
        elif error.status_code == HTTPStatus.NOT_FOUND:
            refused = RequestRefused(Code.NOT_FOUND, "there is nothing at this path")
        else:
            refused = RequestRefused(Code.BAD_REQUEST, status=error.status_code)
        return build_error_response(refused, operation_id=request.state.operation_id)

    def _list_methods(self, path: str) -> list[str]:
        """All methods of a path: several routes share it."""
        return sorted(
            {method for method, pattern in self.list_routes() if compile_path(pattern)[0].fullmatch(path) is not None}
        )


async def _answer_refusal(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestRefused)
    return build_error_response(error, operation_id=request.state.operation_id)


async def _answer_failure(request: Request, _error: Exception) -> Response:
    """A mistake of ours. The guard logs it."""
    return build_error_response(RequestRefused(Code.GENERAL), operation_id=request.state.operation_id)


async def _answer_unstorable(request: Request, error: Exception) -> Response:
    """The database refuses a value that the checks of the API let through."""
    _log.warning("request.refused", operation_id=request.state.operation_id, problem=str(error))
    return build_error_response(RequestRefused(Code.VALIDATION), operation_id=request.state.operation_id)


async def _answer_unusable(request: Request, error: Exception) -> Response:
    """The database or the keys of this service are damaged or missing: an operator has to act."""
    _log.error("request.failed", operation_id=request.state.operation_id, problem=str(error))
    return build_error_response(RequestRefused(Code.GENERAL), operation_id=request.state.operation_id)


async def _answer_unreachable(request: Request, error: Exception) -> Response:
    """The database does not answer. Its address is no concern of the caller."""
    _log.warning("request.failed", operation_id=request.state.operation_id, problem=str(error))
    refused = RequestRefused(Code.GENERAL, "the database does not answer", headers={"retry-after": _RETRY_AFTER_S})
    return build_error_response(refused, operation_id=request.state.operation_id)


async def _answer_invalid_parameters(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    mistakes = error.errors()
    if any(mistake["loc"][-1:] == ("async",) for mistake in mistakes):
        refused = RequestRefused(Code.NEEDS_ASYNC)
    else:
        shown = "; ".join(f"{mistake['loc'][-1]}: {mistake['msg']}" for mistake in mistakes)
        refused = RequestRefused(Code.VALIDATION, shown)
    return build_error_response(refused, operation_id=request.state.operation_id)


def _list_operations(ports: ApiPorts, descriptions: Descriptions) -> tuple[Operation, ...]:
    return (
        *descriptions.list_operations(),
        *PublicKafkas(ports).list_operations(),
        *CloudProviders(ports).list_operations(),
        *AdminKafkas(ports).list_operations(),
        *AdminClusters(ports).list_operations(),
        *ScalingDecisions(ports).list_operations(),
        *AgentRoutes(ports).list_operations(),
    )
