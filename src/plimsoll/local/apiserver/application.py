"""The API server as one function: a request in, a response out.

The order is that of kube-apiserver: authentication, routing, authorisation, handler. A `StatusError` raised anywhere
below becomes a Status. Anything unexpected becomes a 500 that does not reveal its cause, which goes to the log.
"""

from __future__ import annotations

import asyncio
import traceback
from typing import TYPE_CHECKING, Final

import structlog

from plimsoll.local.apiserver import authorization, discovery, presentation, status_errors
from plimsoll.local.apiserver.bootstrap.install import install_bootstrap_objects
from plimsoll.local.apiserver.crds import lifecycle
from plimsoll.local.apiserver.handlers.dispatch import build_context, dispatch
from plimsoll.local.apiserver.http_types import Response
from plimsoll.local.apiserver.routing import ResourceRoute, read_attributes, route
from plimsoll.local.apiserver.storage import StorageError, TooLarge
from plimsoll.local.apiserver.strategies.field_labels import build_reader, list_selectable
from plimsoll.local.apiserver.warning_headers import build_warning_headers

if TYPE_CHECKING:
    from plimsoll.local.apiserver.auth_types import Attributes
    from plimsoll.local.apiserver.http_types import Request
    from plimsoll.local.apiserver.server import Server

_log: Final = structlog.get_logger()


class Application:
    """Serves one `Server`. `ca_certificate` (PEM) is what pods would check this server with."""

    def __init__(self, server: Server, *, ca_certificate: str = "") -> None:
        self.server = server
        self._ca_certificate = ca_certificate
        self._has_started = False
        self._starting = asyncio.Lock()
        for resource in server.registry:
            server.store.select_fields(resource.stored_as, build_reader(list_selectable(resource).items()))
        lifecycle.restore(server)

    async def start(self) -> None:
        """Give a fresh store what every server holds, and finish what was begun. The first request would do it too."""
        if self._has_started:
            return
        async with self._starting:
            if not self._has_started:
                await install_bootstrap_objects(self.server, ca_certificate=self._ca_certificate)
                await lifecycle.resume(self.server)
                self._has_started = True

    async def handle(self, request: Request) -> Response:
        """Never raises, except when it is cancelled."""
        warnings: list[str] = []
        try:
            await self.start()
            answered = await self._handle(request, warnings)
        except status_errors.StatusError as refusal:
            answered = presentation.encode_error(request, refusal)
        except TooLarge as error:
            answered = presentation.encode_error(request, status_errors.unexpected(str(error)))
        except StorageError as error:
            _log.warning("apiserver.storage_failed", method=request.method, path=request.path, error=str(error))
            answered = presentation.encode_error(request, status_errors.internal_error("the store cannot be written"))
        except Exception as error:  # noqa: BLE001 - the one place that keeps a mistake of ours from ending the connection
            # As text, not as exc_info: structlog would by default print local variables, and the token among them.
            stack = "".join(traceback.format_exception(error))
            _log.error("apiserver.request_failed", method=request.method, path=request.path, stack=stack)
            answered = presentation.encode_error(request, status_errors.internal_error("unexpected error"))
        if warnings:
            answered = answered._replace(headers=(*answered.headers, *build_warning_headers(warnings)))
        return answered

    async def _handle(self, request: Request, warnings: list[str]) -> Response:
        server = self.server
        user = server.authenticator.authenticate(request)
        self._authorize(read_attributes(user, request))
        routed = route(server.registry, request)
        if isinstance(routed, ResourceRoute):
            call = build_context(request, routed, user)
            try:
                return await dispatch(server, call)
            finally:
                warnings += call.warnings
        if isinstance(routed, Response):
            return routed
        return discovery.handle_discovery(server, request) or Response.from_text("404 page not found\n", status=404)

    def _authorize(self, attributes: Attributes) -> None:
        decision = self.server.authorizer.decide(attributes)
        if not decision.allowed:
            raise authorization.forbidden(attributes, decision)
