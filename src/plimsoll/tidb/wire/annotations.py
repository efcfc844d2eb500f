"""Labels, annotations and the finalizer that the controller writes to objects, and its field manager.

No other module spells out these names. Everything that one reconcile hands to the next is in these annotations or in
the status of the autoscaler.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from plimsoll.objects.api.meta import Time, format_time
from plimsoll.tidb.model.reconcile_types import DrainRecord

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from plimsoll.tidb.model.components import Component

FIELD_MANAGER: Final = "tidb-autoscaler"
"""Also the source of our Events and the manager of our EndpointSlices."""

BASE_CLUSTER: Final = "tidb.pingcap.com/base-tc"
AUTO_INSTANCE: Final = "tidb.pingcap.com/auto-instance"
AUTO_COMPONENT: Final = "tidb.pingcap.com/auto-component"
GROUP: Final = "tidb.pingcap.com/autoscaling-group"
DESIGNED_AUTO_INSTANCE: Final = "app.kubernetes.io/auto-instance"
DESIGNED_AUTO_COMPONENT: Final = "app.kubernetes.io/auto-component"
"""The spelling of the design document. We write both spellings and recognise either."""

LAST_CHANGE: Final = "tidb.pingcap.com/last-autoscaling-timestamp"
DRAIN: Final = "autoscaler.tidb.pingcap.com/drain"
"""The annotation of a TidbCluster whose store is drained, and the finalizer of an autoscaler that has stores."""
COLLISION: Final = "autoscaler.tidb.pingcap.com/collision"
DELETION_POLICY: Final = "autoscaler.tidb.pingcap.com/deletion-policy"


def build_cluster_labels(*, base: str, autoscaler: str, component: Component, group: str = "") -> dict[str, str]:
    """Labels of a TidbCluster that we create. Without a group: the cluster that an external service sizes."""
    labels = {
        BASE_CLUSTER: base,
        AUTO_INSTANCE: autoscaler,
        AUTO_COMPONENT: component.value,
        DESIGNED_AUTO_INSTANCE: autoscaler,
        DESIGNED_AUTO_COMPONENT: component.value,
    }
    return {**labels, GROUP: group} if group else labels


def is_made_by(labels: Mapping[str, str], *, autoscaler: str, component: Component, base: str = "") -> bool:
    """Whether a TidbCluster with these labels was created by an autoscaler for a component.

    Its base cluster must match: autoscalers of the same name in two namespaces may create clusters in one namespace.
    """
    instance = labels.get(AUTO_INSTANCE, labels.get(DESIGNED_AUTO_INSTANCE))
    part = labels.get(AUTO_COMPONENT, labels.get(DESIGNED_AUTO_COMPONENT))
    return instance == autoscaler and part == component and (not base or labels.get(BASE_CLUSTER, base) == base)


def write_change_time(moment: datetime) -> str:
    """The value of `LAST_CHANGE`: UTC, in whole seconds."""
    return format_time(moment)


def read_change_time(annotations: Mapping[str, str]) -> datetime | None:
    """When the replicas of a TidbCluster were last changed. An unreadable value was not written by us."""
    return _read(annotations.get(LAST_CHANGE))


def write_drain_record(mark: DrainRecord) -> str:
    return msgspec.json.encode(mark).decode()


def read_drain_record(annotations: Mapping[str, str]) -> DrainRecord | None:
    """The progress of a store removal; None: none is in progress, or the value was not written by us."""
    try:
        return msgspec.json.decode(annotations.get(DRAIN, ""), type=DrainRecord)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None


def _read(text: str | None) -> datetime | None:
    try:
        return msgspec.convert(text, Time)
    except msgspec.ValidationError:
        return None
