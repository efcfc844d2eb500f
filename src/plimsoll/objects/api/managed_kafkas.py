"""ManagedKafka: a Kafka that the fleet manager has placed on this cluster (`managedkafka.bf2.org/v1alpha1`).

The agent writes one for each item of the list of its control plane, so that a data plane goes on without the control
plane. `MANAGED_KAFKA_RESOURCES` adds it to a client's table of kinds. Parts that the agent only passes on are `Json`.
"""

# ruff: noqa: D101 - a struct means what the schema of the same name says; docstrings only where that surprises

from typing import Final

import msgspec

from plimsoll.core.values import Int64, Wire
from plimsoll.objects.api.meta import Condition, Json, WireObject
from plimsoll.objects.api.resource import Resource

MANAGED_KAFKA_GROUP: Final = "managedkafka.bf2.org"
MANAGED_KAFKA_VERSION: Final = "v1alpha1"


class ManagedKafkaVersions(Wire):
    kafka: str = ""
    strimzi: str = ""
    kafka_ibp: str = ""


class ManagedKafkaEndpoint(Wire):
    bootstrap_server_host: str = ""


class ManagedKafkaSpec(Wire):
    """Secrets are not in here: `credentials` names the Secret that has them, with a hash of its content."""

    capacity: Json = None
    oauth: Json = None
    endpoint: ManagedKafkaEndpoint = ManagedKafkaEndpoint()
    versions: ManagedKafkaVersions = ManagedKafkaVersions()
    owners: tuple[str, ...] = ()
    service_accounts: Json = None
    credentials: Json = None
    deleted: bool = False


class ManagedKafkaRoute(Wire):
    name: str = ""
    prefix: str = ""
    router: str = ""


class ManagedKafkaStatus(Wire):
    """`units`: the streaming units that are claimed for it."""

    conditions: tuple[Condition, ...] = ()
    units: Int64 = 0
    versions: ManagedKafkaVersions = ManagedKafkaVersions()
    routes: tuple[ManagedKafkaRoute, ...] = ()
    admin_server_uri: str = msgspec.field(name="adminServerURI", default="")
    bytes_stored: Int64 | None = None


class ManagedKafka(WireObject):
    spec: ManagedKafkaSpec = ManagedKafkaSpec()
    status: ManagedKafkaStatus = ManagedKafkaStatus()


MANAGED_KAFKA_RESOURCES: Final = (
    Resource(
        group=MANAGED_KAFKA_GROUP,
        version=MANAGED_KAFKA_VERSION,
        kind=ManagedKafka.get_kind_name(),
        plural="managedkafkas",
        singular="managedkafka",
        namespaced=True,
        struct=ManagedKafka,
        short_names=("mk",),
    ),
)
