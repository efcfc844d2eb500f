"""Which namespaces let an autoscaler of another one in: whoever may make one here must not scale clusters elsewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

ALLOW_FROM: Final = "autoscaler.tidb.pingcap.com/allow-from"


def lets_in(annotations: Mapping[str, str], namespace: str) -> bool:
    """Whether the annotations of a namespace allow autoscalers of another: `allow-from: team-a,team-b`."""
    return bool(namespace) and namespace in {name.strip() for name in str(annotations.get(ALLOW_FROM, "")).split(",")}
