"""Settings of the Cluster API provider: environment and discovery flags. Pure.

`CAPI_GROUP`, `CAPI_VERSION` and `CAPI_SCALE_ZERO_DEFAULT_ARCH` are Cluster Autoscaler's. A discovery is
`clusterapi:namespace=..,clusterName=..,label=value`; several are alternatives, and with none every group counts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from plimsoll.core.errors import InvalidInput
from plimsoll.core.selectors import Operator, build_requirement
from plimsoll.core.values import Value
from plimsoll.nodes.providers.clusterapi.annotations import Keys
from plimsoll.objects.api.cluster_api import CLUSTER_API_GROUP

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from plimsoll.objects.api.cluster_api import Scalable

_DISCOVERER: Final = "clusterapi"
_FLAG: Final = "node-group-auto-discovery"
_ARCHITECTURES: Final = ("amd64", "arm64", "ppc64le", "s390x")


class Discovery(Value):
    """Which objects may be groups; an empty field restricts nothing."""

    namespace: str = ""
    cluster_name: str = ""
    labels: dict[str, str] = {}

    def allows(self, found: Scalable, keys: Keys) -> bool:
        if self.namespace and self.namespace != found.metadata.namespace:
            return False
        if self.cluster_name and self.cluster_name != read_cluster_name(found, keys):
            return False
        return self.labels.items() <= found.metadata.labels.items()


class ClusterApiSettings(Value):
    """Defaults are those of a plain Cluster API."""

    group: str = CLUSTER_API_GROUP
    version: str = ""
    """Empty: the one that the server prefers."""
    architecture: str = _ARCHITECTURES[0]
    """The architecture of nodes for which nothing else gives it."""
    discoveries: tuple[Discovery, ...] = ()

    @property
    def keys(self) -> Keys:
        return Keys(group=self.group)

    @property
    def namespace(self) -> str:
        """The only namespace that is read; empty: all."""
        named = {discovery.namespace for discovery in self.discoveries}
        return named.pop() if len(named) == 1 else ""

    def allows(self, found: Scalable) -> bool:
        return not self.discoveries or any(discovery.allows(found, self.keys) for discovery in self.discoveries)


def read_cluster_name(found: Scalable, keys: Keys) -> str:
    return found.spec.cluster_name or found.metadata.labels.get(keys.cluster_name, "")


def read_settings(environment: Mapping[str, str], discoveries: Sequence[str] = ()) -> ClusterApiSettings:
    """Raises `InvalidInput`. An unknown architecture counts as none, as in Cluster Autoscaler."""
    architecture = environment.get("CAPI_SCALE_ZERO_DEFAULT_ARCH", "")
    return ClusterApiSettings(
        group=environment.get("CAPI_GROUP", "") or CLUSTER_API_GROUP,
        version=environment.get("CAPI_VERSION", ""),
        architecture=architecture if architecture in _ARCHITECTURES else _ARCHITECTURES[0],
        discoveries=tuple(read_discovery(text) for text in discoveries),
    )


def read_discovery(text: str) -> Discovery:
    """Raises `InvalidInput`."""
    discoverer, colon, rest = text.partition(":")
    if not colon or ":" in rest:
        raise InvalidInput(f"{text!r} is not {_DISCOVERER}:key=value,key=value", path=_FLAG)
    if discoverer != _DISCOVERER:
        raise InvalidInput(f"{discoverer!r} is not known here; {_DISCOVERER} is", path=_FLAG)
    pairs: dict[str, str] = {}
    for pair in filter(None, rest.split(",")):
        key, equals, value = pair.partition("=")
        if not equals or "=" in value:
            raise InvalidInput(f"{pair!r} is not key=value", path=_FLAG)
        pairs[key] = value
    namespace, cluster = pairs.pop("namespace", ""), pairs.pop("clusterName", "")
    for key, value in pairs.items():
        build_requirement(key, Operator.EQUALS, (value,), path=_FLAG)
    return Discovery(namespace=namespace, cluster_name=cluster, labels=pairs)
