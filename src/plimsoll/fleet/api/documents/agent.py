"""Documents of the routes of agents. Their bodies are read by `fleet/wire`, so that one bad item fails alone."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from plimsoll.fleet.api.documents.base import Answer, Report


class NetworkAnswer(Answer):
    """How Kafkas of the cluster are reached."""

    private: bool


class PoolAnswer(Answer):
    """The most nodes of the pool of one instance type."""

    maxNodes: int  # noqa: N815 - the name on the wire


class AgentSpecAnswer(Answer):
    """What an agent has to know of its cluster."""

    net: NetworkAnswer
    capacity: dict[str, PoolAnswer] | None = None


class AgentClusterAnswer(Answer):
    """The configuration of an agent."""

    spec: AgentSpecAnswer


class ManagedMetadata(Answer):
    """Names, annotations and labels of a ManagedKafka."""

    name: str
    namespace: str
    annotations: dict[str, str]
    labels: dict[str, str]


class ManagedCapacity(Answer):
    """The limits of a Kafka."""

    ingressPerSec: str | None = None  # noqa: N815 - the names on the wire
    egressPerSec: str | None = None  # noqa: N815
    totalMaxConnections: int | None = None  # noqa: N815
    maxDataRetentionSize: str | None = None  # noqa: N815
    maxPartitions: int | None = None  # noqa: N815
    maxDataRetentionPeriod: str | None = None  # noqa: N815
    maxConnectionAttemptsPerSec: int | None = None  # noqa: N815


class ManagedOAuth(Answer):
    """Where brokers verify tokens of their clients."""

    tokenEndpointURI: str | None = None  # noqa: N815
    jwksEndpointURI: str | None = None  # noqa: N815
    validIssuerEndpointURI: str | None = None  # noqa: N815
    userNameClaim: str | None = None  # noqa: N815
    fallbackUserNameClaim: str | None = None  # noqa: N815
    tlsTrustedCertificate: str | None = None  # noqa: N815
    customClaimCheck: str | None = None  # noqa: N815
    maximumSessionLifetime: int  # noqa: N815


class ManagedCertificate(Answer):
    """The certificate of a Kafka and its key."""

    cert: str
    key: str


class ManagedEndpoint(Answer):
    """The address of a Kafka."""

    bootstrapServerHost: str  # noqa: N815
    tls: ManagedCertificate | None = None


class ManagedVersions(Answer):
    """The versions to install."""

    kafka: str
    kafkaIbp: str  # noqa: N815
    strimzi: str


class ManagedServiceAccount(Answer):
    """An account inside the Kafka."""

    name: str
    principal: str
    password: str


class ManagedSpec(Answer):
    """What the agent is to run. `deleted`: what it is to remove."""

    serviceAccounts: list[ManagedServiceAccount] | None = None  # noqa: N815
    capacity: ManagedCapacity
    oauth: ManagedOAuth
    owners: list[str] | None = None
    endpoint: ManagedEndpoint
    versions: ManagedVersions
    deleted: bool


class ManagedKafkaAnswer(Answer):
    """A Kafka for the agent of its cluster, or a reserved instance."""

    id: str
    kind: str
    metadata: ManagedMetadata
    spec: ManagedSpec


class ManagedKafkaListAnswer(Answer):
    """All Kafkas of a cluster, reserved instances last."""

    kind: str
    items: list[ManagedKafkaAnswer]


class ConditionReport(Report):
    """A condition that an agent reports."""

    type: str | None = None
    reason: str | None = None
    message: str | None = None
    status: str | None = None


class UnitsReport(Report):
    """Streaming units of one instance type."""

    maxUnits: Annotated[int, Field(ge=0)] | None = None  # noqa: N815
    remainingUnits: Annotated[int, Field(ge=0)] | None = None  # noqa: N815


class StrimziReport(Report):
    """A Strimzi operator that an agent found."""

    ready: bool | None = None
    version: str
    kafkaVersions: list[str]  # noqa: N815
    kafkaIbpVersions: list[str]  # noqa: N815


class ClusterStatusReport(Report):
    """The report of an agent about its cluster."""

    capacity: dict[str, UnitsReport] | None = None
    conditions: list[ConditionReport] | None = None
    strimzi: list[StrimziReport] | None = None


class VersionsReport(Report):
    """The versions that a Kafka runs."""

    kafka: str | None = None
    strimzi: str | None = None
    kafkaIbp: str | None = None  # noqa: N815


class RouteReport(Report):
    """A route of a Kafka."""

    name: str | None = None
    prefix: str | None = None
    router: str | None = None


class KafkaStatusReport(Report):
    """The report of an agent about one Kafka."""

    conditions: list[ConditionReport] | None = None
    capacity: dict[str, Any] | None = None
    versions: VersionsReport | None = None
    routes: list[RouteReport] | None = None
    adminServerURI: str | None = None  # noqa: N815
    bytesStored: Annotated[int, Field(ge=0)] | None = None  # noqa: N815
    units: Annotated[int, Field(ge=0)] | None = None
    resizing: bool | None = None
    refusedUnits: Annotated[int, Field(ge=0)] | None = None  # noqa: N815


class KafkaStatusReports(Report):
    """Reports by the id of the Kafka."""

    __pydantic_extra__: dict[str, KafkaStatusReport]
    model_config = {"extra": "allow"}
