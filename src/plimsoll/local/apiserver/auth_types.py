"""Users, request attributes and decisions: the values that authentication, authorisation and admission share."""

from __future__ import annotations

from typing import Protocol

from plimsoll.core.values import Value
from plimsoll.local.apiserver.http_types import Request  # noqa: TC001 - part of a protocol that is checked at run time


class User(Value):
    """A caller whose identity is established."""

    name: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: dict[str, tuple[str, ...]] = {}


class Attributes(Value):
    """A request as rules see it. Resource requests have a verb, a group and a resource, others only verb and path."""

    user: User
    verb: str
    group: str = ""
    version: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    path: str = ""
    is_resource_request: bool = True


class Decision(Value):
    """Whether a request is allowed. `reason` is what an access review shows."""

    allowed: bool
    reason: str = ""


class Authenticator(Protocol):
    """Turns credentials into a user. Raises the 401 error for invalid credentials."""

    def authenticate(self, request: Request) -> User: ...


class Authorizer(Protocol):
    """Answers whether a user may do something."""

    def decide(self, attributes: Attributes) -> Decision: ...
