"""The engines of all Kafka clusters behind one socket, each as the Cruise Control of its cluster.

An engine is found by the path `/NAMESPACE/KAFKA/kafkacruisecontrol`. Under the plain path `/kafkacruisecontrol` it is
found by the name of the host, `KAFKA-cruise-control.NAMESPACE.svc` as Strimzi names the Service, or because there is
one cluster only.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Final

from plimsoll.kafka.cruise_control.server.application import BASE_PATH, build_denial
from plimsoll.kafka.cruise_control.server.authentication import Denied
from plimsoll.web.responses import build_json_response

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

    from plimsoll.kafka.cruise_control.server.authentication import Authentication
    from plimsoll.kafka.engine.engine import Engine
    from plimsoll.kafka.engine.engines import BrokerConnections

HEALTH: Final = "/healthz"
_SERVICE: Final = "-cruise-control"
_LABELS: Final = 2
"""The parts of a host name that are read: the Service and its namespace."""


class CruiseControlRouter:
    """Routes to the engine of each cluster, as ASGI. `authentication` None: the caller guards it."""

    def __init__(self, connections: BrokerConnections, authentication: Authentication | None = None) -> None:
        self._connections = connections
        self._authentication = authentication

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"] == HEALTH:
            await build_json_response({"status": "ok"})(scope, receive, send)
            return
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
        if self._authentication is not None:
            user = self._authentication.identify(headers.get("authorization"))
            if isinstance(user, Denied):
                await build_denial(user)(scope, receive, send)
                return
        engines = dict(self._connections.list_engines())
        key, path = _route(scope["path"], headers.get("host", ""), engines)
        engine = None if key is None else engines.get(key)
        if engine is None:
            problem = {
                "errorMessage": f"there is /NAMESPACE/KAFKA{BASE_PATH}, for clusters with spec.cruiseControl whose "
                f"brokers run; now: {', '.join('/'.join(known) for known in engines) or 'none'}",
                "version": 1,
            }
            await build_json_response(problem, HTTPStatus.NOT_FOUND)(scope, receive, send)
            return
        application = self._choose_application(engine)
        await application({**scope, "path": path, "raw_path": path.encode()}, receive, send)

    def _choose_application(self, engine: Engine) -> ASGIApp:
        return engine.application if self._authentication is None else engine.guard_application(self._authentication)


def _route(path: str, host: str, engines: dict[tuple[str, str], Engine]) -> tuple[tuple[str, str] | None, str]:
    """The cluster that a path or a host names, and the rest of the path."""
    if path.startswith(BASE_PATH):
        return _find_by_host(host, engines), path
    namespace, _, rest = path.removeprefix("/").partition("/")
    name, _, rest = rest.partition("/")
    return (namespace, name), f"/{rest}"


def _find_by_host(host: str, engines: dict[tuple[str, str], Engine]) -> tuple[str, str] | None:
    labels = host.partition(":")[0].split(".")
    if len(labels) >= _LABELS and labels[0].endswith(_SERVICE):
        return labels[1], labels[0].removesuffix(_SERVICE)
    return next(iter(engines)) if len(engines) == 1 else None
