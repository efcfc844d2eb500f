"""The user of a request: its bearer token, if there is one, and impersonation.

The application calls `authenticate` for every request; a TokenReview calls `authenticate_token`. A request without a
bearer token is anonymous.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from plimsoll.core.values import Value
from plimsoll.local.apiserver import status_errors
from plimsoll.local.apiserver.auth_types import User
from plimsoll.local.apiserver.authentication.impersonation import resolve_acting_user
from plimsoll.local.apiserver.authentication.static_tokens import StaticTokens
from plimsoll.local.apiserver.authentication.tokens import ISSUER
from plimsoll.local.apiserver.authorization.groups import AUTHENTICATED, UNAUTHENTICATED
from plimsoll.local.apiserver.storage import Key
from plimsoll.objects.schema import go_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from plimsoll.core.clock import Clock
    from plimsoll.local.apiserver.auth_types import Authorizer
    from plimsoll.local.apiserver.authentication.tokens import Claims, ServiceAccountTokens
    from plimsoll.local.apiserver.http_types import Request
    from plimsoll.local.apiserver.storage import Store

Json = dict[str, Any]
FindServiceAccount = Callable[[str, str], Json | None]
FindBound = Callable[[str, str, str], Json | None]
"""Kind (Pod, Secret, Node), namespace and name to the object."""

ANONYMOUS: Final = User(name="system:anonymous", groups=(UNAUTHENTICATED,))
API_AUDIENCES: Final = (ISSUER,)
CREDENTIAL_ID: Final = "authentication.kubernetes.io/credential-id"
_RESOURCES: Final = {"Pod": "pods", "Secret": "secrets", "Node": "nodes"}


class Authenticated(Value, frozen=True):
    """The user of a valid token, and the matching audiences."""

    user: User
    audiences: tuple[str, ...]


class Unauthenticated(Value, frozen=True):
    """An invalid token; `problem` is set if this server issued it and it is no longer valid."""

    problem: str = ""

    @property
    def message(self) -> str:
        """What a TokenReview answers."""
        return f"[invalid bearer token, {self.problem}]" if self.problem else "invalid bearer token"


class TokenAuthenticator:
    """Knows fixed tokens and ServiceAccount tokens. `build` makes one that looks accounts up in a store.

    Without an `authorizer` impersonation is rejected; without `find_bound` a token that is bound to a pod, a
    secret or a node is refused, because whether that object is still there cannot be asked.
    """

    def __init__(
        self,
        static: Mapping[str, User],
        service_accounts: ServiceAccountTokens,
        find_service_account: FindServiceAccount,
        clock: Clock,
        *,
        authorizer: Authorizer | None = None,
        find_bound: FindBound | None = None,
    ) -> None:
        self._static = StaticTokens(static)
        self._tokens = service_accounts
        self._find_service_account = find_service_account
        self._clock = clock
        self._authorizer = authorizer
        self._find_bound = find_bound

    @classmethod
    def build(
        cls,
        store: Store,
        *,
        static: Mapping[str, User],
        service_accounts: ServiceAccountTokens,
        clock: Clock,
        authorizer: Authorizer,
    ) -> TokenAuthenticator:
        def find(kind: str, namespace: str, name: str) -> Json | None:
            resource = _RESOURCES.get(kind, "serviceaccounts")
            found = store.get(Key(resource, "" if kind == "Node" else namespace, name))
            return None if found is None else found.decode_body()

        def find_service_account(namespace: str, name: str) -> Json | None:
            return find("ServiceAccount", namespace, name)

        return cls(static, service_accounts, find_service_account, clock, authorizer=authorizer, find_bound=find)

    def authenticate(self, request: Request) -> User:
        """The user of the request, after impersonation. Raises the 401 error, or the 403 of impersonation."""
        token = read_bearer_token(request.get_header("authorization"))
        user = ANONYMOUS
        if token is not None:
            user = self._static.find(token) or self._find_user(token)
        return resolve_acting_user(user, request.headers, self._authorizer)

    def _find_user(self, token: str) -> User:
        found = self.authenticate_token(token)
        if isinstance(found, Unauthenticated):
            raise status_errors.unauthorized()
        return found.user

    def authenticate_token(self, token: str, audiences: Sequence[str] = ()) -> Authenticated | Unauthenticated:
        """Whose token it is, for one of these audiences (by default the API server's own)."""
        wanted = tuple(audiences) or API_AUDIENCES
        user = self._static.find(token)
        if user is not None:
            # A fixed token says nothing about audiences: it is meant for this server.
            shared = _intersect(wanted, API_AUDIENCES)
            return Authenticated(user=user, audiences=shared) if shared else Unauthenticated()
        claims = self._tokens.read(token)
        if claims is None:
            return Unauthenticated()
        shared = _intersect(wanted, claims.audiences)
        if not shared:
            given, targets = _format_audiences(claims.audiences), _format_audiences(wanted)
            return Unauthenticated(problem=f"token audiences {given} is invalid for the target audiences {targets}")
        problem = (
            claims.find_problem(self._clock.now())
            or self._find_account_problem(claims)
            or self._find_bound_problem(claims)
        )
        if problem:
            return Unauthenticated(problem=problem)
        return Authenticated(user=_build_service_account_user(claims), audiences=shared)

    def _find_account_problem(self, claims: Claims) -> str | None:
        account = self._find_service_account(claims.namespace, claims.name)
        if account is None:
            return f'serviceaccounts "{claims.name}" not found'
        return _find_mismatch(account, claims.uid, what="service account", where=f"{claims.namespace}/{claims.name}")

    def _find_bound_problem(self, claims: Claims) -> str | None:
        for bound in claims.bound_to:
            found = self._find_bound(bound.kind, claims.namespace, bound.name) if self._find_bound else None
            if found is None:
                return f'{_RESOURCES[bound.kind]} "{bound.name}" not found'
            problem = _find_mismatch(
                found, bound.uid, what=bound.kind.lower(), where=f"{claims.namespace}/{bound.name}"
            )
            if problem is not None:
                return problem
        return None


def read_bearer_token(authorization: str) -> str | None:
    """The token of an Authorization header; none if it is empty or of another scheme."""
    scheme, _, rest = authorization.strip().partition(" ")
    token = rest.partition(" ")[0]
    return token if scheme.lower() == "bearer" and token else None


def build_user_info(user: User) -> Json:
    """A user as reviews write one."""
    extra = {key: list(values) for key, values in sorted(user.extra.items())}
    info = {"username": user.name, "uid": user.uid, "groups": list(user.groups), "extra": extra}
    return {name: value for name, value in info.items() if value}


def _build_service_account_user(claims: Claims) -> User:
    extra: dict[str, tuple[str, ...]] = {CREDENTIAL_ID: (f"JTI={claims.token_id}",)}
    for bound in claims.bound_to:
        if bound.kind in {"Pod", "Node"}:
            kind = bound.kind.lower()
            extra[f"authentication.kubernetes.io/{kind}-name"] = (bound.name,)
            extra[f"authentication.kubernetes.io/{kind}-uid"] = (bound.uid,)
    return User(
        name=f"system:serviceaccount:{claims.namespace}:{claims.name}",
        uid=claims.uid,
        groups=("system:serviceaccounts", f"system:serviceaccounts:{claims.namespace}", AUTHENTICATED),
        extra=extra,
    )


def _find_mismatch(found: Json, uid: str, *, what: str, where: str) -> str | None:
    metadata = found.get("metadata") or {}
    if metadata.get("deletionTimestamp"):
        return f"{what} {where} has been deleted"
    if metadata.get("uid", "") != uid:
        return f"{what} UID ({metadata.get('uid', '')}) does not match claim ({uid})"
    return None


def _intersect(wanted: Sequence[str], offered: Sequence[str]) -> tuple[str, ...]:
    return tuple(audience for audience in wanted if audience in offered)


def _format_audiences(audiences: Sequence[str]) -> str:
    return f"[{' '.join(map(go_text.quote, audiences))}]"
