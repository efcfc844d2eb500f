"""A server as reviews see it, with bootstrap roles, the account auth/sa and a clock that stands still."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from plimsoll.local.apiserver.authentication import ServiceAccountTokens, TokenAuthenticator, build_administrator
from plimsoll.local.apiserver.authorization import RbacAuthorizer
from plimsoll.local.apiserver.bootstrap.objects import build_bootstrap_objects
from plimsoll.local.apiserver.http_types import Request
from plimsoll.local.apiserver.request.context import RequestContext, ResourceRoute
from plimsoll.local.apiserver.resources.registry import ServedResource
from plimsoll.local.apiserver.server import Server
from plimsoll.local.apiserver.storage import Key, MemoryDriver, Put, Store
from plimsoll.runtime.entropy import SeededEntropy
from tests.local.apiserver.authentication.builders import ADMIN_TOKEN, KEY, AdjustableClock
from tests.local.apiserver.authorization.builders import GROUP, binding, role, rule

if TYPE_CHECKING:
    from plimsoll.local.apiserver.auth_types import User

Json = dict[str, Any]

ADMIN = build_administrator()
_PLURALS = {
    "Namespace": "namespaces",
    "ServiceAccount": "serviceaccounts",
    "PriorityClass": "scheduling.k8s.io/priorityclasses",
    "ClusterRole": f"{GROUP}/clusterroles",
    "ClusterRoleBinding": f"{GROUP}/clusterrolebindings",
    "Role": f"{GROUP}/roles",
    "RoleBinding": f"{GROUP}/rolebindings",
    "Pod": "pods",
    "Secret": "secrets",
    "Node": "nodes",
}
ACCOUNT: Json = {
    "kind": "ServiceAccount",
    "apiVersion": "v1",
    "metadata": {"name": "sa", "namespace": "auth", "uid": "0d1e35d3-d600-459f-8d90-b8f4a3d6ecfd"},
}
# What the recorder gave to auth/sa between auth-017 and auth-018; those requests were not recorded.
RECORDED_ROLE = role(
    "r",
    rule("get list", "pods", named="only"),
    rule("get create", "configmaps"),
    rule("create", "roles rolebindings", of=GROUP),
    namespace="auth",
)
RECORDED_BINDING = binding("r", "Role/r", "ServiceAccount auth/sa", namespace="auth")


class ReviewHarness:
    """A server, and who stands before it."""

    def __init__(self, *objects: Json) -> None:
        self.clock = AdjustableClock()
        self.store = Store.open(MemoryDriver(), clock=self.clock)
        self.tokens = ServiceAccountTokens(KEY, entropy=SeededEntropy(1))
        authorizer = RbacAuthorizer.build(self.store)
        self.server = Server(
            store=self.store,
            registry=None,  # type: ignore[arg-type]
            clock=self.clock,
            entropy=SeededEntropy(2),
            authenticator=TokenAuthenticator.build(
                self.store,
                static={ADMIN_TOKEN: ADMIN},
                service_accounts=self.tokens,
                clock=self.clock,
                authorizer=authorizer,
            ),
            authorizer=authorizer,
            admission=None,  # type: ignore[arg-type]
            tokens=self.tokens,
        )
        asyncio.run(self._fill([*build_bootstrap_objects(), ACCOUNT, *objects]))

    async def _fill(self, objects: list[Json]) -> None:
        for object_ in objects:
            metadata = object_["metadata"]
            key = Key(_PLURALS[object_["kind"]], metadata.get("namespace", ""), metadata["name"])
            await self.store.update(key, lambda _current, body=object_: Put(body))  # type: ignore[misc]

    def account_token(self, **details: Any) -> str:
        claims = {"audiences": ["https://kubernetes.default.svc"], "expires_in_s": 3600, "now": self.clock.now()}
        metadata = ACCOUNT["metadata"]
        return self.tokens.issue(namespace="auth", name="sa", uid=metadata["uid"], **{**claims, **details})

    def account(self) -> User:
        """auth/sa as it comes in with a token."""
        headers = {"authorization": f"Bearer {self.account_token()}"}
        return self.server.authenticator.authenticate(Request(method="GET", path="/", headers=headers))


def review_call(
    kind: str, *, user: User = ADMIN, group: str = "authorization.k8s.io", namespace: str = ""
) -> RequestContext:
    resource = ServedResource(
        group=group,
        version="v1",
        kind=kind,
        plural=f"{kind.lower()}s",
        singular=kind.lower(),
        namespaced=kind == "LocalSubjectAccessReview",
        stored_as="",
        storage_version="",
        list_kind="",
        verbs=("create",),
    )
    return _call(ResourceRoute(resource, namespace, "", "", "create"), user)


def token_call(name: str = "sa", namespace: str = "auth") -> RequestContext:
    resource = ServedResource(
        group="",
        version="v1",
        kind="ServiceAccount",
        plural="serviceaccounts",
        singular="serviceaccount",
        namespaced=True,
        stored_as="serviceaccounts",
        storage_version="v1",
        list_kind="ServiceAccountList",
    )
    return _call(ResourceRoute(resource, namespace, name, "token", "create"), ADMIN)


def _call(route: ResourceRoute, user: User) -> RequestContext:
    return RequestContext(
        request=Request(method="POST", path="/"),
        route=route,
        user=user,
        dry_run=False,
        field_manager="golden",
        field_validation="Warn",
        warnings=[],
    )
