"""What the controller writes onto objects to know them again: labels, annotations, the finalizer, its own name.

Observing, acting and draining take these names from here; nowhere else is one spelled out. All that a pass remembers of
the one before is in such marks or in the autoscaler's status.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from plimsoll.objects.api.meta import Time, written_time
from plimsoll.tidb.model.reconcile_types import DrainMark

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from plimsoll.tidb.model.components import Component

FIELD_MANAGER: Final = "tidb-autoscaler"
"""Also the source of our events, and who manages our EndpointSlices."""

BASE_CLUSTER: Final = "tidb.pingcap.com/base-tc"
AUTO_INSTANCE: Final = "tidb.pingcap.com/auto-instance"
AUTO_COMPONENT: Final = "tidb.pingcap.com/auto-component"
GROUP: Final = "tidb.pingcap.com/autoscaling-group"
DESIGNED_AUTO_INSTANCE: Final = "app.kubernetes.io/auto-instance"
DESIGNED_AUTO_COMPONENT: Final = "app.kubernetes.io/auto-component"
"""As the design document spells them: clients of either family find our clusters, and we find those of either."""

LAST_CHANGE: Final = "tidb.pingcap.com/last-autoscaling-timestamp"
DRAIN: Final = "autoscaler.tidb.pingcap.com/drain"
"""The annotation of a TidbCluster whose store leaves, and the finalizer of an autoscaler that has stores."""
COLLISION: Final = "autoscaler.tidb.pingcap.com/collision"
DELETION_POLICY: Final = "autoscaler.tidb.pingcap.com/deletion-policy"


def labels_of_made(*, base: str, autoscaler: str, component: Component, group: str = "") -> dict[str, str]:
    """Of a TidbCluster that we make. Without a group: the one that an external service sizes."""
    labels = {
        BASE_CLUSTER: base,
        AUTO_INSTANCE: autoscaler,
        AUTO_COMPONENT: component.value,
        DESIGNED_AUTO_INSTANCE: autoscaler,
        DESIGNED_AUTO_COMPONENT: component.value,
    }
    return {**labels, GROUP: group} if group else labels


def is_made_by(labels: Mapping[str, str], *, autoscaler: str, component: Component, base: str = "") -> bool:
    """Whether a TidbCluster with these labels is one of an autoscaler's for a component.

    The base cluster must not be another: autoscalers of one name in two namespaces may meet in that of their clusters.
    """
    instance = labels.get(AUTO_INSTANCE, labels.get(DESIGNED_AUTO_INSTANCE))
    part = labels.get(AUTO_COMPONENT, labels.get(DESIGNED_AUTO_COMPONENT))
    return instance == autoscaler and part == component and (not base or labels.get(BASE_CLUSTER, base) == base)


def written_change(moment: datetime) -> str:
    """The value of `LAST_CHANGE`: whole seconds, in UTC."""
    return written_time(moment)


def read_change(annotations: Mapping[str, str]) -> datetime | None:
    """When the replicas of a TidbCluster were last changed; what cannot be read was not written by us."""
    return _read(annotations.get(LAST_CHANGE))


def written_mark(mark: DrainMark) -> str:
    return msgspec.json.encode(mark).decode()


def read_mark(annotations: Mapping[str, str]) -> DrainMark | None:
    """How far the removal of a store has come; None: none is under way, or what is written is not ours."""
    try:
        return msgspec.json.decode(annotations.get(DRAIN, ""), type=DrainMark)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None


def read_collision(annotations: Mapping[str, str]) -> int:
    text = annotations.get(COLLISION, "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0


def _read(text: str | None) -> datetime | None:
    try:
        return msgspec.convert(text, Time)
    except msgspec.ValidationError:
        return None
