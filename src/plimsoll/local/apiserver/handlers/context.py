"""A request for a resource, understood: what every handler, subresource and review gets to know about it.

Made by the application after routing and authorisation. Nothing here acts; `warnings` is the one part that grows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from plimsoll.local.apiserver.routing import ResourceRoute

if TYPE_CHECKING:
    from plimsoll.local.apiserver.catalogue import ServedResource
    from plimsoll.local.apiserver.exchange import Request
    from plimsoll.local.apiserver.identities import User

__all__ = ["Call", "ResourceRoute"]


class Call(NamedTuple):
    """Everything a handler needs to know about this request."""

    request: Request
    route: ResourceRoute
    user: User
    dry_run: bool
    field_manager: str
    """Who writes: the parameter `fieldManager`, or the client's program."""
    field_validation: str
    """`Strict`, `Warn` or `Ignore`."""
    warnings: list[str]
    """Collected; the application makes Warning headers of them."""

    @property
    def resource(self) -> ServedResource:
        return self.route.resource

    @property
    def namespace(self) -> str:
        return self.route.namespace

    @property
    def name(self) -> str:
        return self.route.name

    @property
    def subresource(self) -> str:
        return self.route.subresource

    @property
    def verb(self) -> str:
        return self.route.verb
