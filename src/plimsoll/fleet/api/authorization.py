"""Which requests are served: a dependency per group of routes (docs/design/fleet.md 3.1).

What a caller may not know looks absent: on the routes of agents and administrators every refusal of a valid token is
404.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import structlog
from starlette.requests import Request  # noqa: TC002 - FastAPI reads annotations at run time

from plimsoll.fleet.api.errors import Code, RequestRefused
from plimsoll.fleet.api.rate_limits import RateLimiter
from plimsoll.fleet.auth.issuer import Realm
from plimsoll.fleet.auth.verification import TokenRefused

if TYPE_CHECKING:
    from plimsoll.fleet.api.ports import ApiPorts
    from plimsoll.fleet.auth.claims import Caller
    from plimsoll.fleet.model.clusters import Cluster

_SCHEME: Final = "bearer"

_log = structlog.get_logger("plimsoll.fleet.api")


class Authorization:
    """Admits requests, and keeps the caller in the state of the request."""

    def __init__(self, ports: ApiPorts) -> None:
        self._verifier = ports.verifier
        self._limiter = RateLimiter(ports.settings.rate, clock=ports.clock)
        self._issuers = ports.settings.issuers
        self._access = ports.access
        self._clusters = ports.store

    async def admit_user(self, request: Request) -> None:
        """Public routes: a user of an organisation."""
        caller = await self._authenticate(request)
        if caller.issuer != self._issuers[Realm.PUBLIC]:
            raise RequestRefused(Code.UNAUTHENTICATED, "the token is of another issuer")
        if not caller.user or not caller.organisation:
            raise RequestRefused(Code.UNAUTHENTICATED, "the token names no user of an organisation")
        if self._access.denied_users is not None and caller.user in self._access.denied_users:
            raise RequestRefused(Code.FORBIDDEN, "the user is not allowed to use this service")
        accepted = self._access.accepted_organisations
        if accepted is not None and caller.organisation not in accepted:
            raise RequestRefused(Code.UNDER_MAINTENANCE)
        request.state.caller = caller

    async def admit_agent(self, request: Request) -> None:
        """Routes of agents: the agent of the cluster that the path names. The row is kept in the state."""
        caller = await self._authenticate(request)
        if caller.issuer != self._issuers[Realm.AGENT] or not caller.client_id:
            raise RequestRefused(Code.NOT_FOUND)
        cluster = await self._clusters.find_cluster(request.path_params["id"])
        # An empty client id is that of a cluster whose agent has no account yet: it matches no token (D-20).
        if cluster is None or cluster.client_id != caller.client_id:
            raise RequestRefused(Code.NOT_FOUND)
        request.state.caller, request.state.cluster = caller, cluster

    async def admit_admin(self, request: Request) -> None:
        """Routes of administrators: one of the roles for the method."""
        caller = await self._authenticate(request)
        roles = {role.lower() for role in self._access.admin_roles.get(request.method, ())}
        if caller.issuer != self._issuers[Realm.ADMIN] or not caller.user or roles.isdisjoint(caller.roles):
            raise RequestRefused(Code.NOT_FOUND)
        _log.info(
            "admin.call",
            user=caller.user,
            method=request.method,
            path=request.url.path,
            operation_id=request.state.operation_id,
        )
        request.state.caller = caller

    async def _authenticate(self, request: Request) -> Caller:
        given = request.headers.getlist("authorization")
        scheme, _, token = given[0].strip().partition(" ") if len(given) == 1 else ("", "", "")
        if scheme.lower() != _SCHEME or not token.strip():
            raise RequestRefused(Code.UNAUTHENTICATED, "a token is needed: Authorization: Bearer TOKEN")
        caller = await self._verifier.verify(token.strip())
        if isinstance(caller, TokenRefused):
            raise RequestRefused(Code.UNAUTHENTICATED, caller.problem)
        self._limiter.take(caller.token_digest)
        return caller


def get_caller(request: Request) -> Caller:
    """The caller of an admitted request."""
    caller: Caller = request.state.caller
    return caller


def get_cluster(request: Request) -> Cluster:
    """The cluster of an admitted agent."""
    cluster: Cluster = request.state.cluster
    return cluster
