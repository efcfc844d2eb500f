"""Data-plane clusters as their providers show them: states, pools, add-ons, and calls that failed.

Every text of a provider is cut to one line of a bounded length here, before it reaches a row, a log or an answer.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Final

from plimsoll.core.values import Value
from plimsoll.fleet.model.pools import PoolBounds  # noqa: TC001 - msgspec reads annotations at run time
from plimsoll.fleet.model.records import Record

NAME_PREFIX: Final = "mk-"
"""A cluster at the provider whose name begins like this is ours. One without a row is an orphan."""
_NAME_CHARACTERS: Final = 15
_TEXT_CHARACTERS: Final = 300


def name_cluster(row_id: str) -> str:
    """The name of a cluster at its provider, made from the id of its row: the same row always gives the same name."""
    return f"{NAME_PREFIX}{row_id}"[:_NAME_CHARACTERS].rstrip("-").lower()


def bound_text(text: str) -> str:
    """Text of a provider on one line, without control characters, and cut."""
    shown = "".join(letter if letter.isprintable() else " " for letter in text[: 4 * _TEXT_CHARACTERS])
    line = " ".join(shown.split())
    return line if len(line) <= _TEXT_CHARACTERS else f"{line[: _TEXT_CHARACTERS - 1]}…"


class FailureKind(StrEnum):
    """What a failed call says about the next one."""

    RETRY = "retry"
    """The provider answered, but not with a result: 5xx, too many requests, a conflict, an answer that is unreadable or
    contradicts itself. Whether the call took effect is unknown."""
    REFUSED = "refused"
    """The provider understood the call and says no: it will say so again until something is changed."""
    UNREACHABLE = "unreachable"
    """No answer. Whether the call took effect is unknown; calls about other clusters will probably fail as well."""


class CallFailed(Value):
    """A call to a provider that failed. Build it with `build_failure`, which bounds the text."""

    kind: FailureKind
    problem: str

    def __str__(self) -> str:
        return self.problem


def build_failure(kind: FailureKind, problem: str) -> CallFailed:
    return CallFailed(kind=kind, problem=bound_text(problem))


class Absent(Value):
    """The provider says that it has no such cluster. Only an explicit answer (404) says so, never a failed call."""


class ProviderState(StrEnum):
    """The state of a cluster at its provider. A state that is unknown to us counts as `provisioning`."""

    PROVISIONING = "provisioning"
    READY = "ready"
    """The cluster runs, without anything that we set up in it."""
    FAILED = "failed"
    """The provider gave up making it. What exists of it still costs money."""
    DELETING = "deleting"


class ProvidedCluster(Value):
    """A cluster that a provider has. Empty texts: the provider does not say."""

    cluster_id: str
    """The provider's id of it; never empty."""
    name: str
    state: ProviderState
    details: str = ""
    """Why it is in this state, in the words of the provider, bounded; also a state that is unknown to us."""
    external_id: str = ""
    cloud_provider: str = ""
    region: str = ""
    nodes: int | None = None
    """How many machines it has now; None: not known."""


class Orphan(Record):
    """A cluster with a name like ours that no row knows. It is reported, and never deleted unasked."""

    provider: str
    cluster_id: str
    name: str
    state: str
    region: str = ""

    def __str__(self) -> str:
        where = f" in {self.region}" if self.region else ""
        return f"{self.provider} has {self.name} ({self.cluster_id}{where}, {self.state}), and no row knows it"


class ClusterOrder(Value):
    """What a new cluster should be. `name` identifies it: two orders with one name are one cluster."""

    name: str
    row_id: str
    cloud_provider: str
    region: str
    multi_az: bool
    default_pool: PoolBounds
    """The cluster-wide pool; its id is `default`."""
    version: str = ""
    """Empty: the latest one of the provider."""
    cluster_class: str = ""
    """Cluster API: the class that the operator names for the region."""


class AddonKind(StrEnum):
    """What is installed in every cluster. A provider knows its own id, or the manifests, of each."""

    KAFKA_OPERATOR = "kafka_operator"
    LOGGING = "logging"
    AGENT = "agent"


class AddonOrder(Value):
    """An add-on with its parameters. They hold secrets: no text shows them."""

    kind: AddonKind
    parameters: dict[str, str] = {}

    def __repr__(self) -> str:
        return f"AddonOrder({self.kind}, {sorted(self.parameters)})"


class AddonState(Value):
    """An add-on in a cluster. An add-on that is not there has no state."""

    kind: AddonKind
    is_ready: bool
    is_current: bool
    """Whether its parameters are those of the order."""
    details: str = ""
    """The state in the words of the provider, bounded."""


class SetupOrder(Value):
    """Everything that a cluster needs after its provider has made it. `pools` does not include the default pool."""

    pools: tuple[PoolBounds, ...] = ()
    resources: tuple[dict[str, Any], ...] = ()
    """Kubernetes objects, in the order in which they are applied. They hold secrets: no text shows them."""
    addons: tuple[AddonOrder, ...] = ()

    def __repr__(self) -> str:
        return f"SetupOrder(pools={self.pools}, resources={len(self.resources)}, addons={self.addons})"


class ClusterSetup(Value):
    """What of a `SetupOrder` a cluster has."""

    pools: tuple[PoolBounds, ...] = ()
    """All pools for Kafkas (`kafka-…`) that the provider holds, in order of their ids, also those of others."""
    dns: str = ""
    """The name of the default ingress, such as `apps.mk-1.example.com`; empty: there is none yet."""
    has_resources: bool = False
    """Whether the objects are there as ordered."""
    addons: tuple[AddonState, ...] = ()
    problems: tuple[str, ...] = ()
    """What the provider finds wrong in the cluster and does not mend, bounded, such as nodes without their taint."""


class DeletionState(StrEnum):
    """How far a deletion is."""

    GOING = "going"
    GONE = "gone"
