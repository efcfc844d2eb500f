"""The requirements of a controller on a cluster: the least permissions, with their reasons, and custom resources.

Each subsystem declares its own in its `permissions.py`. `plimsoll doctor` checks them against a server and prints the
roles that follow from them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from plimsoll.core.values import Value
from plimsoll.kube.diagnosis.permissions import Permission, Scope

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable
    from datetime import datetime

    from plimsoll.kube.client import Client
    from plimsoll.kube.diagnosis.findings import Finding

WATCH: Final = ("list", "watch")
READ: Final = ("get", *WATCH)
OWN: Final = (*READ, "create", "patch", "delete")

LEASES: Final = "coordination.k8s.io"
FROM_PLIMSOLL: Final = "plimsoll"


class CustomResource(Value):
    """A custom resource that the cluster must define. Any of `versions` is enough; the first is preferred."""

    plural: str
    group: str
    versions: tuple[str, ...]
    source: str
    """The program that installs its definition."""
    is_optional: bool = False

    @property
    def name(self) -> str:
        return f"{self.plural}.{self.group}"

    @property
    def is_ours(self) -> bool:
        """Whether Plimsoll installs the definition."""
        return self.source == FROM_PLIMSOLL


class RivalCheck(Value):
    """A check for another program that does the work of the controller already, or for objects it cannot serve well."""

    name: str
    """The name of the check in the findings."""
    find: Callable[[Client, RivalContext], Awaitable[Finding]]


class RivalContext(Value):
    """Where and when rivals are looked for."""

    now: datetime
    """The time at the server: the clock of a rival is more likely to agree with that than with ours."""
    namespace: str = ""
    """The namespace that is watched; empty: all."""


class RunningContext(Value):
    """What is known before the options of a running controller are read."""

    own_namespace: str
    environment: dict[str, str] = {}
    """The environment of the controller, as far as it is known."""
    is_selected: bool = False
    """Whether the user asks about this controller."""


class Requirements(Value):
    """All requirements of one controller."""

    controller: str
    permissions: tuple[Permission, ...]
    custom_resources: tuple[CustomResource, ...] = ()
    """The first is what the controller reconciles: it has work wherever there is such an object."""
    rivals: tuple[RivalCheck, ...] = ()
    adapt: Callable[[Client, Requirements, RunningContext], Awaitable[Requirements]] | None = None
    """Gives the requirements under the options of the running controller; None: they are always the same."""
    find_secret_namespaces: Callable[[dict[str, Any]], Iterable[str]] | None = None
    """The namespaces whose Secrets an object of the custom resources needs; None: every object needs those of its own.

    Permissions of `Scope.WITH_OBJECTS` are asked about there.
    """

    @property
    def builtin_groups(self) -> tuple[str, ...]:
        """The API groups of Kubernetes itself; Plimsoll uses version v1 of each."""
        custom = {resource.group for resource in self.custom_resources}
        return tuple(
            dict.fromkeys(permission.group for permission in self.permissions if permission.group not in custom)
        )


def declare_event_permission(scope: Scope) -> Permission:
    return Permission(
        group="", resource="events", verbs=("create", "patch"), scope=scope, why="to report what it did and why"
    )


def declare_lease_permissions(
    name: str, *, scope: Scope = Scope.OWN_NAMESPACE, namespace: str = ""
) -> tuple[Permission, Permission]:
    creating = Permission(
        group=LEASES,
        resource="leases",
        verbs=("create",),
        scope=scope,
        namespace=namespace,
        why="to create its lease",
    )
    holding = replace(creating, verbs=("get", "patch"), names=(name,), why="to lead: only the holder of the lease acts")
    return creating, holding


def declare_config_map_permissions(
    last_plans: str, *, read: tuple[str, ...] = ("plimsoll",), why: str = "to read whether it is paused"
) -> tuple[Permission, Permission, Permission]:
    """Permissions for ConfigMaps of the own namespace: those to `read`, and the one with the last plans."""
    reading = Permission(
        group="", resource="configmaps", verbs=("get",), names=read, scope=Scope.OWN_NAMESPACE, why=why
    )
    creating = replace(reading, verbs=("create",), names=(), why="to create the object with the last plans")
    keeping = replace(
        reading,
        verbs=("get", "patch"),
        names=(last_plans,),
        why="to keep the last plans (plimsoll why) across restarts",
    )
    return reading, creating, keeping


def declare_permissions(
    group: str, *rows: tuple[str, tuple[str, ...], str], scope: Scope = Scope.EVERYWHERE
) -> list[Permission]:
    """Permissions from rows of (resource or resource/subresource, verbs, why)."""
    permissions = []
    for path, verbs, why in rows:
        resource, _, subresource = path.partition("/")
        permissions.append(
            Permission(group=group, resource=resource, subresource=subresource, verbs=verbs, scope=scope, why=why)
        )
    return permissions
