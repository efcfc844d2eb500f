"""The configuration of a Kafka node as `server.properties`. Pure.

Listeners have Strimzi's names: `CONTROLPLANE-9090` between nodes and controllers, `REPLICATION-9091` between brokers
and for the operator, `NAME-PORT` for each of `spec.kafka.listeners`. Here all of them are on loopback, on free ports.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from plimsoll.core.errors import InvalidInput
from plimsoll.core.values import Value

if TYPE_CHECKING:
    from collections.abc import Mapping

    from plimsoll.objects.kafka_security import InternalSecurity

HOST: Final = "127.0.0.1"
CONTROL_PLANE: Final = "CONTROLPLANE-9090"
REPLICATION: Final = "REPLICATION-9091"
BROKER: Final = "broker"
CONTROLLER: Final = "controller"
_PLAIN: Final = "PLAINTEXT"
_MOST_LISTENERS: Final = 20
_SCRAM: Final = "scram-sha-512"
_SCRAM_LOGIN: Final = "org.apache.kafka.common.security.scram.ScramLoginModule required;"

_DEFAULTS: Final = {
    # Many nodes share a small machine.
    "num.network.threads": "2",
    "num.io.threads": "4",
    "log.segment.bytes": "16777216",
    "log.index.size.max.bytes": "1048576",
    "log.cleaner.dedupe.buffer.size": "4194304",
    "offsets.topic.num.partitions": "3",
    "transaction.state.log.num.partitions": "3",
    "replica.fetch.wait.max.ms": "100",
    "auto.create.topics.enable": "false",
    "group.initial.rebalance.delay.ms": "0",
}
"""Settings that `spec.kafka.config` may change."""
_OURS: Final = {"broker.heartbeat.interval.ms": "1000", "broker.session.timeout.ms": "6000"}
_RESERVED: Final = (
    *("listeners", "advertised.", "broker.", "listener.", "host.name", "port", "inter.broker.listener.name"),
    *("sasl.", "ssl.", "security.", "password.", "log.dir", "super.user", "node.id", "process.roles"),
    *("controller.", "metadata.log.dir"),
)
"""Prefixes of settings that Strimzi, too, does not take from `spec.kafka.config`."""


class KafkaListener(Value):
    """A listener of a node. `settings` are those of the listener alone, without its prefix."""

    name: str
    port: int
    protocol: str = _PLAIN
    settings: dict[str, str] = {}

    def format_address(self) -> str:
        return f"{self.name}://{HOST}:{self.port}"


class NodeConfiguration(Value):
    """What the properties of a node are made from."""

    node_id: int
    roles: tuple[str, ...]
    controllers: tuple[str, ...]
    """HOST:PORT of the first controllers."""
    log_dirs: tuple[str, ...]
    control_plane: KafkaListener
    """Its port matters to controllers only."""
    rack: str = ""
    listeners: tuple[KafkaListener, ...] = ()
    """The listeners of a broker, including the one between brokers."""
    settings: dict[str, str] = {}
    """The user's."""


def build_properties(node: NodeConfiguration) -> dict[str, str]:
    """The properties of a node."""
    listeners = [*([node.control_plane] if CONTROLLER in node.roles else []), *node.listeners]
    known = {listener.name: listener for listener in (node.control_plane, *listeners)}
    properties = {
        **_DEFAULTS,
        **node.settings,
        **_OURS,
        "process.roles": ",".join(node.roles),
        "node.id": str(node.node_id),
        "controller.quorum.bootstrap.servers": ",".join(node.controllers),
        "controller.listener.names": CONTROL_PLANE,
        "listeners": ",".join(listener.format_address() for listener in listeners),
        "listener.security.protocol.map": ",".join(f"{name}:{entry.protocol}" for name, entry in known.items()),
        "log.dirs": ",".join(node.log_dirs),
    }
    if BROKER in node.roles:
        properties["advertised.listeners"] = ",".join(listener.format_address() for listener in listeners)
        properties["inter.broker.listener.name"] = REPLICATION
    if node.rack:
        properties["broker.rack"] = node.rack
    for listener in known.values():
        prefix = f"listener.name.{listener.name.lower()}"
        properties |= {f"{prefix}.{key}": value for key, value in listener.settings.items()}
    return properties


def format_properties(properties: Mapping[str, str]) -> str:
    """The text of a properties file."""
    return "".join(f"{key}={_escape(value)}\n" for key, value in properties.items())


def _escape(value: str) -> str:
    return value.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r")


def read_settings(config: Any) -> dict[str, str]:
    """The settings of `spec.kafka.config` that a user may choose."""
    written = config if isinstance(config, dict) else {}
    return {
        key: _format_value(value)
        for key, value in written.items()
        if isinstance(value, (str, int, float)) and not key.startswith(_RESERVED)
    }


def _format_value(value: str | float) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


class ListenerSpec(Value):
    """An entry of `spec.kafka.listeners`. `authentication`: its type; empty: none."""

    name: str
    port: int
    is_encrypted: bool = False
    authentication: str = ""

    @property
    def full_name(self) -> str:
        return f"{self.name.upper()}-{self.port}"


def read_listeners(listeners: Any) -> tuple[ListenerSpec, ...]:
    """The listeners of `spec.kafka.listeners`. Raises `InvalidInput` with the path of the field."""
    path = "spec.kafka.listeners"
    if listeners is None:
        return ()
    if not isinstance(listeners, list) or len(listeners) > _MOST_LISTENERS:
        raise InvalidInput(f"must be a list of at most {_MOST_LISTENERS} listeners", path=path)
    read = tuple(_read_listener(entry, f"{path}[{index}]") for index, entry in enumerate(listeners))
    names = [listener.full_name for listener in read]
    if len(set(names)) != len(names):
        raise InvalidInput("two listeners have one name and port", path=path)
    return read


def _read_listener(entry: Any, path: str) -> ListenerSpec:
    fields = entry if isinstance(entry, dict) else {}
    name, port, tls = fields.get("name"), fields.get("port"), fields.get("tls", False)
    if not isinstance(name, str) or not (name.isascii() and name.isalnum()):
        raise InvalidInput("must be letters and digits", path=f"{path}.name")
    if not isinstance(port, int) or isinstance(port, bool) or not 0 < port < 65_536:
        raise InvalidInput("must be a port", path=f"{path}.port")
    if not isinstance(tls, bool):
        raise InvalidInput("must be true or false", path=f"{path}.tls")
    authentication = fields.get("authentication")
    kind = "" if authentication is None else authentication.get("type") if isinstance(authentication, dict) else None
    if not isinstance(kind, str):
        raise InvalidInput('must be an object with a "type"', path=f"{path}.authentication")
    return ListenerSpec(name=name, port=port, is_encrypted=tls, authentication=kind)


def build_internal_listener(
    name: str, port: int, security: InternalSecurity, stores: Mapping[str, str]
) -> KafkaListener:
    """A listener between nodes: with TLS and certificates of both sides, unless the cluster's security is off."""
    if not security.is_encrypted:
        return KafkaListener(name=name, port=port)
    auth = "required" if security.is_authenticated else "none"
    return KafkaListener(name=name, port=port, protocol="SSL", settings={**stores, "ssl.client.auth": auth})


def build_listener(spec: ListenerSpec, port: int, stores: Mapping[str, str]) -> KafkaListener:
    """A listener for clients. Raises `InvalidInput` for an authentication that is not supported."""
    settings = {**stores, "ssl.client.auth": "none"} if spec.is_encrypted else {}
    protocol = "SSL" if spec.is_encrypted else _PLAIN
    if spec.authentication == _SCRAM:
        protocol = f"SASL_{protocol}"
        settings |= {"sasl.enabled.mechanisms": _SCRAM.upper(), f"{_SCRAM}.sasl.jaas.config": _SCRAM_LOGIN}
    elif spec.authentication:
        problem = f"listener {spec.name}: only {_SCRAM} is supported here, not {spec.authentication[:40]}"
        raise InvalidInput(problem, path="spec.kafka.listeners")
    return KafkaListener(name=spec.full_name, port=port, protocol=protocol, settings=settings)
