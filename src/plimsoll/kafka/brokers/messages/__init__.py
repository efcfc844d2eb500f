"""Messages of Kafka's protocol that kafka-python does not declare. The JSON files have Kafka's own schema."""

from __future__ import annotations

from kafka.protocol.api_message import ApiMessage


class UnregisterBrokerRequest(ApiMessage, load_json=__name__):  # type: ignore[call-arg, misc]
    """Removes the registration of a broker (api key 64)."""


class UnregisterBrokerResponse(ApiMessage, load_json=__name__):  # type: ignore[call-arg, misc]
    """The answer to it."""
