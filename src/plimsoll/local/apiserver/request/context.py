"""The context of a routed request: its resource, user, options and warnings.

It has no behaviour; `warnings` is the only part that grows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from plimsoll.local.apiserver.request.bodies import estimate_work_bytes
from plimsoll.local.apiserver.routing import ResourceRoute

if TYPE_CHECKING:
    from plimsoll.local.apiserver.auth_types import User
    from plimsoll.local.apiserver.http_types import Request
    from plimsoll.local.apiserver.presentation import MediaForm
    from plimsoll.local.apiserver.resources.registry import ServedResource

__all__ = ["RequestContext", "ResourceRoute"]


class RequestContext:
    """Everything a handler needs to know about this request.

    The parts of the route are attributes of its own: handlers ask for them thirty times in every write.
    """

    __slots__ = (
        "dry_run",
        "field_manager",
        "field_validation",
        "form",
        "name",
        "namespace",
        "request",
        "resource",
        "route",
        "subresource",
        "user",
        "verb",
        "warnings",
        "work_bytes",
    )

    def __init__(  # noqa: PLR0913 - the fields of a value, each named where it is made
        self,
        request: Request,
        route: ResourceRoute,
        user: User,
        *,
        dry_run: bool,
        field_manager: str,
        field_validation: str,
        warnings: list[str],
    ) -> None:
        self.request = request
        self.route = route
        self.user = user
        self.dry_run = dry_run
        self.field_manager = field_manager
        """Who writes: the parameter `fieldManager`, or the client's program."""
        self.field_validation = field_validation
        """`Strict`, `Warn` or `Ignore`."""
        self.warnings = warnings
        """Collected; the application makes Warning headers of them."""
        self.resource: ServedResource = route.resource
        self.namespace = route.namespace
        self.name = route.name
        self.subresource = route.subresource
        self.verb = route.verb
        self.work_bytes = estimate_work_bytes(request) + route.resource.schema_bytes
        """The size of what the request makes the server work on, for `LongWork`: its body and its schema."""
        self.form: MediaForm | None = None
        """How the client wants its answer, once it was asked for (`answers.form_of`)."""

    def to_delete(self, name: str, *, dry_run: bool) -> RequestContext:
        """The deletion of one object that this request comes to: an eviction's, or one of a collection's."""
        return RequestContext(
            self.request,
            self.route._replace(name=name, subresource="", verb="delete"),
            self.user,
            dry_run=dry_run,
            field_manager=self.field_manager,
            field_validation=self.field_validation,
            warnings=self.warnings,
        )
