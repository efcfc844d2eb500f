"""Settings of the OCM client: addresses, the account, and the ids of add-ons."""

from __future__ import annotations

from typing import Any, Final

from plimsoll.core.values import Value
from plimsoll.fleet.model.provided import AddonKind

DEFAULT_ADDON_IDS: Final = {
    AddonKind.KAFKA_OPERATOR: "managed-kafka",
    AddonKind.AGENT: "kas-fleetshard-operator",
}
SYNC_SET: Final = "ext-managedservice-cluster-mgr"
TIMEOUT_S: Final = 15.0


class OcmClientSettings(Value):
    """`client_id` empty: requests carry no token, as a simulated OCM without an account wants them."""

    base_url: str
    token_url: str = ""
    client_id: str = ""
    client_secret: str = ""
    addon_ids: dict[AddonKind, str] = DEFAULT_ADDON_IDS
    """Add-ons without an id are not installed."""
    cloud_accounts: dict[str, dict[str, Any]] = {}
    """By provider: the object that OCM gets as `aws` or `gcp`."""

    def __repr__(self) -> str:
        return f"OcmClientSettings({self.base_url!r}, client_id={self.client_id!r})"
