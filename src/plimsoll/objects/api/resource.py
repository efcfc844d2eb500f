"""The description of a kind: group, version, plural, scope, short names, and the struct it decodes into."""

from __future__ import annotations

from typing import TYPE_CHECKING

from plimsoll.core.values import Value

if TYPE_CHECKING:
    from plimsoll.objects.api.meta import WireObject


class Resource(Value):
    """One kind in one version. `group` is empty for the core group."""

    group: str
    version: str
    kind: str
    plural: str
    singular: str
    namespaced: bool
    struct: type[WireObject]
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def list_kind(self) -> str:
        return f"{self.kind}List"

    @property
    def full_name(self) -> str:
        """`deployments.apps`, `pods`: what errors and RBAC messages call it."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    def build_path(self, namespace: str = "", name: str = "") -> str:
        """The path of a collection, or of one object in it. An empty namespace means all namespaces."""
        parts = ["/apis", self.group, self.version] if self.group else ["/api", self.version]
        if self.namespaced and namespace:
            parts += ["namespaces", namespace]
        parts.append(self.plural)
        if name:
            parts.append(name)
        return "/".join(parts)
