"""Settings of the agent: the parameters of its add-on, and what its operator chose."""

from __future__ import annotations

from fractions import Fraction  # noqa: TC003 - msgspec reads annotations at run time
from typing import TYPE_CHECKING, Final

import msgspec

from plimsoll.core.errors import InvalidInput
from plimsoll.core.value_parsing import read_duration_s
from plimsoll.core.values import Value
from plimsoll.fleet.agent.planning.capacity import UNITS_PER_NODE
from plimsoll.web.client import check_base_url

if TYPE_CHECKING:
    from collections.abc import Mapping

NAME: Final = "plimsoll-agent"
"""The field manager and the source of Events."""
LEASE: Final = "plimsoll-agent"
LAST_PLANS_MAP: Final = "plimsoll-agent-last-plans"
SECRET: Final = "plimsoll-agent-parameters"  # noqa: S105 - a name
NODE_STATUS_MAP: Final = "cluster-autoscaler-status"
POLL_INTERVAL_S: Final = 15.0
RESYNC_INTERVAL_S: Final = 60.0
_REQUIRED: Final = ("control-plane-url", "cluster-id", "sso-auth-server-url", "sso-client-id", "sso-secret")


class AgentParameters(Value):
    """Where the control plane is, and who the agent is there."""

    control_plane_url: str
    cluster_id: str
    issuer_url: str
    client_id: str
    client_secret: str
    poll_interval_s: float = POLL_INTERVAL_S
    resync_interval_s: float = RESYNC_INTERVAL_S

    def __repr__(self) -> str:
        return f"AgentParameters({self.control_plane_url}, {self.cluster_id})"


class AgentSettings(Value):
    """What the operator of the cluster chose."""

    namespace: str = "kube-system"
    """The namespace of the claims, the Lease and the pause annotation."""
    node_autoscaler_namespace: str = "kube-system"
    units_per_node: dict[str, Fraction] = msgspec.field(default_factory=lambda: dict(UNITS_PER_NODE))
    dry_run: bool = False


def read_parameters(texts: Mapping[str, str]) -> AgentParameters:
    """The parameters under the names of the add-on. Raises `InvalidInput`, which names what is missing or wrong."""
    missing = [name for name in _REQUIRED if not texts.get(name)]
    if missing:
        raise InvalidInput(f"missing: {', '.join(missing)}", path="parameters of the agent")
    return AgentParameters(
        control_plane_url=check_base_url(texts["control-plane-url"], path="control-plane-url"),
        cluster_id=texts["cluster-id"],
        issuer_url=check_base_url(texts["sso-auth-server-url"], path="sso-auth-server-url"),
        client_id=texts["sso-client-id"],
        client_secret=texts["sso-secret"],
        poll_interval_s=_read_interval(texts, "poll-interval", POLL_INTERVAL_S),
        resync_interval_s=_read_interval(texts, "resync-interval", RESYNC_INTERVAL_S),
    )


def _read_interval(texts: Mapping[str, str], name: str, default_s: float) -> float:
    text = texts.get(name, "")
    if not text:
        return default_s
    seconds = read_duration_s(text)
    if seconds is None or not 1 <= seconds <= 3600:
        raise InvalidInput(f'{text!r} is no duration from "1s" to "1h"', path=name)
    return seconds
