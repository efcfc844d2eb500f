"""Documents of the routes of administrators."""

from __future__ import annotations

from datetime import datetime  # noqa: TC003 - pydantic reads annotations at run time
from typing import Annotated, Any, Literal

from pydantic import Field

from plimsoll.fleet.api.documents.base import Answer, Body, ListAnswer, ObjectReference, Text
from plimsoll.fleet.api.documents.public import ByteCount  # noqa: TC001 - likewise

Nodes = Annotated[int, Field(ge=1, le=10_000)]
"""Nodes of a pool."""


class RouteAnswer(Answer):
    """A DNS name of a Kafka, and its router."""

    domain: str
    router: str


class AdminKafkaAnswer(ObjectReference):
    """A Kafka request with what only administrators see."""

    status: str
    cloud_provider: str
    multi_az: bool
    region: str
    owner: str
    name: str
    bootstrap_server_host: str | None = None
    created_at: datetime
    updated_at: datetime
    expires_at: datetime | None = None
    failed_reason: str | None = None
    actual_kafka_version: str | None = None
    actual_strimzi_version: str | None = None
    actual_kafka_ibp_version: str | None = None
    desired_kafka_version: str | None = None
    desired_strimzi_version: str | None = None
    desired_kafka_ibp_version: str | None = None
    kafka_upgrading: bool
    strimzi_upgrading: bool
    kafka_ibp_upgrading: bool
    organisation_id: str | None = None
    subscription_id: str | None = None
    owner_account_id: str | None = None
    account_number: str | None = None
    instance_type: str
    quota_type: str | None = None
    routes: list[RouteAnswer] | None = None
    routes_created: bool
    cluster_id: str | None = None
    namespace: str | None = None
    size_id: str
    max_data_retention_size: ByteCount | None = None


class AdminKafkaListAnswer(ListAnswer):
    """A page of Kafka requests of all organisations."""

    items: list[AdminKafkaAnswer]


class AdminKafkaPatch(Body):
    """Changes of a Kafka. `suspended` is refused: nothing acts on it."""

    strimzi_version: Text | None = None
    kafka_version: Text | None = None
    kafka_ibp_version: Text | None = None
    max_data_retention_size: Text | None = None
    suspended: bool | None = None


class CapacityAnswer(Answer):
    """The capacity of a cluster for one instance type."""

    max_nodes: int
    max_units: int
    remaining_units: int


class AdminClusterAnswer(ObjectReference):
    """A cluster row without its secrets."""

    created_at: datetime
    updated_at: datetime
    cluster_id: str | None = None
    external_id: str | None = None
    cloud_provider: str
    region: str
    multi_az: bool
    status: str
    status_details: str | None = None
    provider_type: str
    cluster_dns: str | None = None
    identity_provider_id: str | None = None
    client_id: str | None = None
    available_strimzi_versions: list[dict[str, Any]]
    supported_instance_type: str
    dynamic_capacity_info: dict[str, CapacityAnswer]
    cluster_type: str
    organization_id: str | None = None
    access_kafkas_via_private_network: bool
    schedulable: bool
    delete_requested_at: datetime | None = None
    retire_requested_at: datetime | None = None
    empty_since: datetime | None = None
    ready_at: datetime | None = None
    last_report_at: datetime | None = None
    cost_per_hour: float | None = None
    problems: list[str]


class AdminClusterListAnswer(ListAnswer):
    """A page of clusters. `problems`: clusters that a provider has under our names, and that no row knows."""

    items: list[AdminClusterAnswer]
    problems: list[str] = []


class ClusterPayload(Body):
    """A cluster that exists already. `name` is its context in the kubeconfig of the service."""

    provider_type: Literal["standalone", "cluster_api"] = "standalone"
    cluster_type: Literal["managed", "enterprise"] = "managed"
    name: Text = ""
    cluster_id: Annotated[
        str, Field(min_length=1, max_length=63, pattern=r"^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$")
    ]
    cloud_provider: Text
    region: Text
    multi_az: bool = False
    supported_instance_type: Text = "standard,developer"
    cluster_dns: Text = ""
    organization_id: Text = ""
    access_kafkas_via_private_network: bool = False
    max_nodes: dict[str, Nodes] = {}


class ClusterPatch(Body):
    """Changes of a cluster. `schedulable` false: it gets no new Kafkas."""

    schedulable: bool | None = None
    max_nodes: dict[str, Nodes] | None = None


class DecisionAnswer(Answer):
    """A decision about one object: what was done or not done, why, and how it ended."""

    id: str
    at: datetime
    worker: str
    subject: str
    decision: str
    reason: str
    inputs: dict[str, Any]
    message: str
    outcome: str | None = None


class DecisionListAnswer(ListAnswer):
    """A page of decisions, newest first."""

    items: list[DecisionAnswer]
