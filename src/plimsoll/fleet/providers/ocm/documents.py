"""Documents of OCM: what we send, and what we read of its answers (docs/design/fleet.md 11.1 to 11.6)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from plimsoll.core.values import Int64, Wire
from plimsoll.fleet.model.pools import TAINT_EFFECT, TYPE_KEY, PoolBounds
from plimsoll.fleet.model.provided import (
    CallFailed,
    FailureKind,
    ProvidedCluster,
    ProviderState,
    bound_text,
    build_failure,
)
from plimsoll.fleet.model.records import keep_name

if TYPE_CHECKING:
    from collections.abc import Mapping

    from plimsoll.fleet.model.provided import ClusterOrder

_STATES: Final = {
    "ready": ProviderState.READY,
    "error": ProviderState.FAILED,
    "uninstalling": ProviderState.DELETING,
}
_KNOWN: Final = frozenset({*_STATES, "pending", "validating", "waiting", "installing"})
_LONGEST_ID: Final = 256


class _Answer(Wire, rename=keep_name):
    """OCM spells its fields in snake case."""


class LinkAnswer(_Answer):
    """Another object."""

    id: str = ""


class StatusAnswer(_Answer):
    """The status of a cluster."""

    state: str = ""
    provision_error_message: str = ""
    current_compute: Int64 | None = None


class ClusterAnswer(_Answer):
    """A cluster."""

    id: str
    name: str = ""
    external_id: str = ""
    state: str = ""
    status: StatusAnswer = StatusAnswer()
    cloud_provider: LinkAnswer = LinkAnswer()
    region: LinkAnswer = LinkAnswer()


class ClusterListAnswer(_Answer):
    """A page of clusters. A document without items is no list: it must not look like one without clusters."""

    items: tuple[ClusterAnswer, ...]
    total: Int64


class BoundsAnswer(_Answer):
    """The bounds of a pool."""

    min_replicas: Int64 = 0
    max_replicas: Int64 = 0


class TaintAnswer(_Answer):
    """A taint of a pool."""

    key: str = ""
    value: str = ""
    effect: str = ""


class MachinePoolAnswer(_Answer):
    """A machine pool. Without `autoscaling` it has a fixed number of machines."""

    id: str
    instance_type: str = ""
    replicas: Int64 = 0
    autoscaling: BoundsAnswer | None = None
    labels: dict[str, str] = {}
    taints: tuple[TaintAnswer, ...] = ()

    @property
    def bounds(self) -> PoolBounds:
        scaling = self.autoscaling or BoundsAnswer(min_replicas=self.replicas, max_replicas=self.replicas)
        return PoolBounds(
            id=self.id,
            machine_type=self.instance_type,
            min_replicas=scaling.min_replicas,
            max_replicas=scaling.max_replicas,
        )

    @property
    def has_marks(self) -> bool:
        """Whether it has the label and the taint of its instance type."""
        name = self.bounds.instance_type
        taint = TaintAnswer(key=TYPE_KEY, value=name, effect=TAINT_EFFECT)
        return self.labels.get(TYPE_KEY) == name and taint in self.taints


class PoolListAnswer(_Answer):
    """The machine pools of a cluster."""

    items: tuple[MachinePoolAnswer, ...]
    total: Int64


class IngressAnswer(_Answer):
    """An ingress."""

    default: bool = False
    dns_name: str = ""


class IngressListAnswer(_Answer):
    """The ingresses of a cluster."""

    items: tuple[IngressAnswer, ...]


class SyncSetAnswer(_Answer):
    """A sync set."""

    resources: list[Any]


class ParameterAnswer(_Answer):
    """A parameter of an add-on."""

    id: str
    value: str = ""


class ParametersAnswer(_Answer):
    """The parameters of an add-on."""

    items: tuple[ParameterAnswer, ...] = ()


class AddonAnswer(_Answer):
    """An installation of an add-on."""

    id: str = ""
    addon: LinkAnswer = LinkAnswer()
    state: str = ""
    state_description: str = ""
    parameters: ParametersAnswer = ParametersAnswer()

    @property
    def addon_id(self) -> str:
        return self.addon.id or self.id

    @property
    def values(self) -> dict[str, str]:
        return {parameter.id: parameter.value for parameter in self.parameters.items}


class AddonListAnswer(_Answer):
    """The add-ons of a cluster."""

    items: tuple[AddonAnswer, ...]
    total: Int64


def read_cluster(answer: ClusterAnswer) -> ProvidedCluster | CallFailed:
    """A cluster with its state. A state that is unknown to us stands in the details."""
    state = answer.status.state or answer.state
    if not is_usable_id(answer.id):
        return build_failure(FailureKind.RETRY, f"OCM names a cluster {answer.id[:50]!r}, which is no id")
    if not state:
        return build_failure(FailureKind.RETRY, f"OCM says no state of cluster {answer.id}")
    unknown = "" if state in _KNOWN else f"state {state!r} is unknown"
    return ProvidedCluster(
        cluster_id=answer.id,
        name=bound_text(answer.name),
        state=_STATES.get(state, ProviderState.PROVISIONING),
        details=bound_text(answer.status.provision_error_message) or bound_text(unknown),
        external_id=bound_text(answer.external_id),
        cloud_provider=bound_text(answer.cloud_provider.id),
        region=bound_text(answer.region.id),
        nodes=answer.status.current_compute,
    )


def is_usable_id(text: str) -> bool:
    """Whether it can be a part of a path."""
    return 0 < len(text) <= _LONGEST_ID and text.isascii() and all(part.isalnum() or part in "-_" for part in text)


def build_cluster_body(order: ClusterOrder, account: Mapping[str, Any] | None) -> dict[str, Any]:
    """The body of 11.1. `account`: the object of the cloud account."""
    pool = order.default_pool
    body: dict[str, Any] = {
        "kind": "Cluster",
        "name": order.name,
        "cloud_provider": {"kind": "CloudProvider", "id": order.cloud_provider},
        "region": {"kind": "CloudRegion", "id": order.region},
        "multi_az": order.multi_az,
        "managed": True,
        "ccs": {"kind": "CCS", "enabled": True},
        "nodes": {
            "compute_machine_type": {"kind": "MachineType", "id": pool.machine_type},
            "autoscale_compute": _build_bounds(pool),
        },
    }
    if order.version:
        body["version"] = {"kind": "Version", "id": order.version}
    if account is not None:
        body[order.cloud_provider] = dict(account)
    return body


def build_pool_body(pool: PoolBounds) -> dict[str, Any]:
    """The body of 11.3."""
    name = pool.instance_type
    return {
        "kind": "MachinePool",
        "id": pool.id,
        "instance_type": pool.machine_type,
        "autoscaling": {**_build_bounds(pool), "id": pool.id},
        "labels": {TYPE_KEY: name},
        "taints": [{"key": TYPE_KEY, "value": name, "effect": TAINT_EFFECT}],
    }


def build_bounds_patch(pool: PoolBounds) -> dict[str, Any]:
    return {"kind": "MachinePool", "id": pool.id, "autoscaling": _build_bounds(pool)}


def _build_bounds(pool: PoolBounds) -> dict[str, Any]:
    return {
        "kind": "MachinePoolAutoscaling",
        "min_replicas": pool.min_replicas,
        "max_replicas": pool.max_replicas,
    }


def build_addon_body(addon_id: str, parameters: Mapping[str, str]) -> dict[str, Any]:
    """The body of 11.5."""
    items = [
        {"kind": "AddOnInstallationParameter", "id": name, "value": value} for name, value in sorted(parameters.items())
    ]
    return {
        "kind": "AddOnInstallation",
        "addon": {"kind": "AddOn", "id": addon_id},
        "parameters": {"items": items},
    }
