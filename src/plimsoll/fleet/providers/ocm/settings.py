"""Settings of the OCM client: addresses, the account, and the ids of add-ons."""

from __future__ import annotations

from typing import Any, Final

from plimsoll.core.values import Value
from plimsoll.fleet.model.provided import AddonKind

SYNC_SET: Final = "ext-managedservice-cluster-mgr"
TIMEOUT_S: Final = 15.0


class OcmClientSettings(Value):
    """`client_id` empty: requests carry no token, as a simulated OCM without an account wants them."""

    base_url: str
    token_url: str = ""
    client_id: str = ""
    client_secret: str = ""
    kafka_operator_addon_id: str = "managed-kafka"
    agent_addon_id: str = "kas-fleetshard-operator"
    logging_addon_id: str = ""
    """An add-on without an id is not installed."""
    cloud_accounts: dict[str, dict[str, Any]] = {}
    """By provider: the object that OCM gets as `aws` or `gcp`."""

    def get_addon_id(self, kind: AddonKind) -> str:
        match kind:
            case AddonKind.KAFKA_OPERATOR:
                return self.kafka_operator_addon_id
            case AddonKind.AGENT:
                return self.agent_addon_id
            case AddonKind.LOGGING:
                return self.logging_addon_id

    def __repr__(self) -> str:
        return f"OcmClientSettings({self.base_url!r}, client_id={self.client_id!r})"
