"""The HTTP side of the simulated OCM as ASGI: calls of docs/design/fleet.md 11.1 to 11.6, tokens, faults and the log.

It needs no socket: `web.asgi_client.AsgiClient` reaches it in virtual time, and `web.serving` serves it.
"""

from __future__ import annotations

import asyncio
import hmac
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qsl

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match, Route

from plimsoll.local.ocm.clusters import get_addon, get_pool, get_sync_set
from plimsoll.local.ocm.documents import (
    BASE,
    build_error,
    build_list,
    present_addon,
    present_cluster,
    present_ingresses,
    present_pool,
    present_sync_set,
)
from plimsoll.local.ocm.faults import CallFault, FaultKind, OcmFaults, ReceivedCall, ReceivedCalls
from plimsoll.local.ocm.requests import (
    AddonBody,
    CallRefused,
    ClusterBody,
    IdentityProviderBody,
    PoolBody,
    PoolPatch,
    Search,
    SyncSetBody,
    read_body,
)
from plimsoll.web.bodies import BodyRefused
from plimsoll.web.bodies import read_body as read_bytes
from plimsoll.web.responses import JSON, PageResponse, build_json_response

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.types import Receive, Scope, Send

    from plimsoll.core.clock import Clock
    from plimsoll.core.entropy import Entropy
    from plimsoll.local.ocm.clusters import OcmClusters
    from plimsoll.local.ocm.settings import OcmSettings

TOKEN_PATH: Final = "/auth/token"  # noqa: S105 - a path
HEALTH_PATH: Final = "/healthz"
_MOST_ITEMS: Final = 100
_CLUSTER: Final = f"{BASE}/clusters/{{id}}"
_SECRETS: Final = frozenset({"aws", "gcp"})
"""Fields of bodies that are not kept: the keys of clouds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Call:
    """A request to a handler."""

    path: dict[str, str]
    query: dict[str, str]
    body: Any

    @property
    def id(self) -> str:
        return self.path["id"]

    @property
    def name(self) -> str:
        return self.path["name"]


class OcmApplication:
    """The service. `faults` waits for calls, `log` keeps what was received."""

    def __init__(self, clusters: OcmClusters, settings: OcmSettings, *, clock: Clock, entropy: Entropy) -> None:
        self.faults = OcmFaults()
        self.log = ReceivedCalls()
        self._clusters = clusters
        self._settings = settings
        self._clock = clock
        self._entropy = entropy
        self._tokens: dict[str, float] = {}
        self._late: set[asyncio.Task[Response | None]] = set()
        self._handlers = _Handlers(clusters)
        self._routes = [(Route(path, _answer_nothing, methods=[method]), name) for method, path, name in _CALLS]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        request = Request(scope, receive)
        response = await self._respond(request)
        if response is not None:
            await response(scope, receive, send)

    async def _respond(self, request: Request) -> Response | None:
        """None: the connection ends without an answer."""
        if request.url.path == HEALTH_PATH:
            return build_json_response({"status": "ok"})
        content = await read_bytes(request)
        if isinstance(content, BodyRefused):
            return self._build_error(content.status, "the body was not read")
        name, path = self._find_call(request)
        fault = self.faults.take(name)
        received = ReceivedCall(
            at=self._clock.now(),
            call=name,
            method=request.method,
            path=request.url.path,
            query=request.url.query,
            body=_show_body(content),
            fault="" if fault is None else fault.kind.value,
        )
        number = self.log.add(received)
        if fault is None:
            response: Response | None = self._answer(name, path, request, content)
        else:
            # As in a server behind a socket, a request goes on when its client no longer waits.
            faulty = asyncio.create_task(self._apply_fault(fault, lambda: self._answer(name, path, request, content)))
            self._late.add(faulty)
            faulty.add_done_callback(self._late.discard)
            response = await asyncio.shield(faulty)
        status = 0 if response is None else response.status_code
        self.log.end(number, msgspec.structs.replace(received, status=status))
        return response

    async def _apply_fault(self, fault: CallFault, answer: Callable[[], Response]) -> Response | None:
        match fault.kind:
            case FaultKind.STATUS:
                return self._build_error(HTTPStatus(fault.status), "a fault of the simulated OCM")
            case FaultKind.SILENT:
                await self._clock.sleep(fault.delay_s)
                return None
            case FaultKind.LOST:
                answer()
                return None
            case FaultKind.LATE_ANSWER:
                response = answer()
                await self._clock.sleep(fault.delay_s)
                return response
            case FaultKind.LATE_EFFECT:
                await self._clock.sleep(fault.delay_s)
                return answer()
            case FaultKind.BODY:
                status = fault.status or answer().status_code
                return PageResponse(fault.body, status, content_type=JSON)

    def _find_call(self, request: Request) -> tuple[str, dict[str, str]]:
        """The name of the call and the variables of its path; an empty name: there is no such call."""
        for route, name in self._routes:
            match, found = route.matches(request.scope)
            if match is Match.FULL:
                return name, {key: str(value) for key, value in found["path_params"].items()}
        return "", {}

    def _answer(self, name: str, path: dict[str, str], request: Request, content: bytes) -> Response:
        if name == "token":
            return self._issue_token(content)
        if not self._is_authorized(request):
            return self._build_error(HTTPStatus.UNAUTHORIZED, "a valid access token is needed")
        handler = self._handlers.by_name.get(name)
        if handler is None:
            return self._build_error(HTTPStatus.NOT_FOUND, f"there is nothing at {request.url.path[:200]}")
        try:
            body = msgspec.json.decode(content) if content else None
        except msgspec.DecodeError:
            return self._build_error(HTTPStatus.BAD_REQUEST, "the body is not JSON")
        query = dict(parse_qsl(request.url.query, max_num_fields=20))
        try:
            status, document = handler(_Call(path=path, query=query, body=body))
        except CallRefused as error:
            return self._build_error(HTTPStatus(error.status), error.reason)
        if document is None:
            return PageResponse(status=status, content_type=JSON)
        return build_json_response(document, status)

    def _issue_token(self, content: bytes) -> Response:
        """Client credentials (RFC 6749, 4.4)."""
        fields = dict(parse_qsl(content.decode("latin-1"), max_num_fields=20))
        settings = self._settings
        is_known = hmac.compare_digest(fields.get("client_id", "").encode(), settings.client_id.encode())
        is_known &= hmac.compare_digest(fields.get("client_secret", "").encode(), settings.client_secret.encode())
        if fields.get("grant_type") != "client_credentials" or not is_known:
            return build_json_response({"error": "invalid_client"}, HTTPStatus.UNAUTHORIZED)
        now_s = self._clock.monotonic_s()
        self._tokens = {token: until_s for token, until_s in self._tokens.items() if until_s > now_s}
        token = self._entropy.generate_token()
        self._tokens[token] = now_s + settings.token_lifetime_s
        answer = {"access_token": token, "token_type": "Bearer", "expires_in": int(settings.token_lifetime_s)}
        return build_json_response(answer)

    def revoke_tokens(self) -> None:
        """Every token that was issued is refused from now on."""
        self._tokens.clear()

    def _is_authorized(self, request: Request) -> bool:
        if not self._settings.client_id:
            return True
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        return scheme.lower() == "bearer" and self._tokens.get(token.strip(), 0.0) > self._clock.monotonic_s()

    def _build_error(self, status: HTTPStatus, reason: str) -> PageResponse:
        return build_json_response(build_error(status, reason, operation=self._entropy.generate_suffix(10)), status)


_Answer = tuple[int, "dict[str, Any] | None"]


class _Handlers:
    """One method per call. They return a status and a document."""

    def __init__(self, clusters: OcmClusters) -> None:
        self._clusters = clusters
        self.by_name: dict[str, Callable[[_Call], _Answer]] = {
            "clusters.create": self.create_cluster,
            "clusters.list": self.list_clusters,
            "clusters.get": self.get_cluster,
            "clusters.delete": self.delete_cluster,
            "ingresses.list": self.list_ingresses,
            "machine_pools.list": self.list_pools,
            "machine_pools.get": self.get_pool,
            "machine_pools.create": self.create_pool,
            "machine_pools.update": self.update_pool,
            "machine_pools.delete": self.delete_pool,
            "syncsets.create": self.create_sync_set,
            "syncsets.get": self.get_sync_set,
            "syncsets.update": self.update_sync_set,
            "syncsets.delete": self.delete_sync_set,
            "addons.list": self.list_addons,
            "addons.get": self.get_addon,
            "addons.create": self.create_addon,
            "addons.update": self.update_addon,
            "identity_providers.list": self.list_identity_providers,
            "identity_providers.create": self.create_identity_provider,
        }

    def create_cluster(self, call: _Call) -> _Answer:
        return HTTPStatus.CREATED, present_cluster(self._clusters.create(read_body(call.body, ClusterBody)))

    def list_clusters(self, call: _Call) -> _Answer:
        search = Search(call.query.get("search", ""))
        found = [
            present_cluster(cluster)
            for cluster in self._clusters.list_clusters()
            if search.matches({"name": cluster.spec.name, "id": cluster.id})
        ]
        return _list("Cluster", found, call)

    def get_cluster(self, call: _Call) -> _Answer:
        return HTTPStatus.OK, present_cluster(self._clusters.get(call.id))

    def delete_cluster(self, call: _Call) -> _Answer:
        self._clusters.delete(call.id)
        return HTTPStatus.NO_CONTENT, None

    def list_ingresses(self, call: _Call) -> _Answer:
        return _list("Ingress", present_ingresses(self._clusters.get(call.id)), call)

    def list_pools(self, call: _Call) -> _Answer:
        pools = self._clusters.get(call.id).all_pools
        return _list("MachinePool", [present_pool(call.id, pool) for pool in pools], call)

    def get_pool(self, call: _Call) -> _Answer:
        return HTTPStatus.OK, present_pool(call.id, get_pool(self._clusters.get(call.id), call.name))

    def create_pool(self, call: _Call) -> _Answer:
        pool = self._clusters.add_pool(call.id, read_body(call.body, PoolBody))
        return HTTPStatus.CREATED, present_pool(call.id, pool)

    def update_pool(self, call: _Call) -> _Answer:
        bounds = read_body(call.body, PoolPatch).autoscaling
        return HTTPStatus.OK, present_pool(call.id, self._clusters.bound_pool(call.id, call.name, bounds))

    def delete_pool(self, call: _Call) -> _Answer:
        self._clusters.remove_pool(call.id, call.name)
        return HTTPStatus.NO_CONTENT, None

    def create_sync_set(self, call: _Call) -> _Answer:
        body = read_body(call.body, SyncSetBody)
        if not body.id:
            raise CallRefused(400, "id is missing")
        self._clusters.apply_sync_set(call.id, body.id, body, is_new=True)
        return HTTPStatus.CREATED, present_sync_set(body.id, body.resources)

    def get_sync_set(self, call: _Call) -> _Answer:
        resources = get_sync_set(self._clusters.get(call.id), call.name)
        return HTTPStatus.OK, present_sync_set(call.name, resources)

    def update_sync_set(self, call: _Call) -> _Answer:
        body = read_body(call.body, SyncSetBody)
        self._clusters.apply_sync_set(call.id, call.name, body, is_new=False)
        return HTTPStatus.OK, present_sync_set(call.name, body.resources)

    def delete_sync_set(self, call: _Call) -> _Answer:
        self._clusters.remove_sync_set(call.id, call.name)
        return HTTPStatus.NO_CONTENT, None

    def list_addons(self, call: _Call) -> _Answer:
        addons = self._clusters.get(call.id).addons.values()
        return _list("AddOnInstallation", [present_addon(call.id, addon) for addon in addons], call)

    def get_addon(self, call: _Call) -> _Answer:
        return HTTPStatus.OK, present_addon(call.id, get_addon(self._clusters.get(call.id), call.name))

    def create_addon(self, call: _Call) -> _Answer:
        addon = self._clusters.install(call.id, read_body(call.body, AddonBody))
        return HTTPStatus.CREATED, present_addon(call.id, addon)

    def update_addon(self, call: _Call) -> _Answer:
        addon = self._clusters.update_addon(call.id, call.name, read_body(call.body, AddonBody))
        return HTTPStatus.OK, present_addon(call.id, addon)

    def list_identity_providers(self, call: _Call) -> _Answer:
        return _list("IdentityProvider", list(self._clusters.get(call.id).identity_providers.values()), call)

    def create_identity_provider(self, call: _Call) -> _Answer:
        provider = self._clusters.add_identity_provider(call.id, read_body(call.body, IdentityProviderBody))
        return HTTPStatus.CREATED, provider


_CALLS: Final = (
    ("POST", TOKEN_PATH, "token"),
    ("POST", f"{BASE}/clusters", "clusters.create"),
    ("GET", f"{BASE}/clusters", "clusters.list"),
    ("GET", _CLUSTER, "clusters.get"),
    ("DELETE", _CLUSTER, "clusters.delete"),
    ("GET", f"{_CLUSTER}/ingresses", "ingresses.list"),
    ("GET", f"{_CLUSTER}/machine_pools", "machine_pools.list"),
    ("POST", f"{_CLUSTER}/machine_pools", "machine_pools.create"),
    ("GET", f"{_CLUSTER}/machine_pools/{{name}}", "machine_pools.get"),
    ("PATCH", f"{_CLUSTER}/machine_pools/{{name}}", "machine_pools.update"),
    ("DELETE", f"{_CLUSTER}/machine_pools/{{name}}", "machine_pools.delete"),
    ("POST", f"{_CLUSTER}/external_configuration/syncsets", "syncsets.create"),
    ("GET", f"{_CLUSTER}/external_configuration/syncsets/{{name}}", "syncsets.get"),
    ("PATCH", f"{_CLUSTER}/external_configuration/syncsets/{{name}}", "syncsets.update"),
    ("DELETE", f"{_CLUSTER}/external_configuration/syncsets/{{name}}", "syncsets.delete"),
    ("GET", f"{_CLUSTER}/addons", "addons.list"),
    ("POST", f"{_CLUSTER}/addons", "addons.create"),
    ("GET", f"{_CLUSTER}/addons/{{name}}", "addons.get"),
    ("PATCH", f"{_CLUSTER}/addons/{{name}}", "addons.update"),
    ("GET", f"{_CLUSTER}/identity_providers", "identity_providers.list"),
    ("POST", f"{_CLUSTER}/identity_providers", "identity_providers.create"),
)


def _list(kind: str, found: list[dict[str, Any]], call: _Call) -> _Answer:
    """A page of a list."""
    try:
        page, size = int(call.query.get("page", "1")), int(call.query.get("size", str(_MOST_ITEMS)))
    except ValueError as error:
        raise CallRefused(400, "page and size are numbers") from error
    if page < 1 or not 1 <= size <= _MOST_ITEMS:
        raise CallRefused(400, f"page starts at 1, and size ends at {_MOST_ITEMS}")
    items = found[(page - 1) * size : page * size]
    return HTTPStatus.OK, build_list(kind, items, page=page, size=size, total=len(found))


async def _answer_nothing(_request: Request) -> Response:
    """Routes are only matched here."""
    return Response()


def _show_body(content: bytes) -> Any:
    """A body for the log, without what is secret in it."""
    try:
        document = msgspec.json.decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    if not isinstance(document, dict):
        return document
    return {key: "***" if key in _SECRETS else value for key, value in document.items()}
