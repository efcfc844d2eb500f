"""Bodies that agents send (docs/design/fleet.md 3.3), read with types and bounds."""

from __future__ import annotations

from typing import Annotated, Any, Final

import msgspec

from plimsoll.core.values import Wire

MOST_UNITS: Final = 2**31 - 1
_MOST_CONDITIONS: Final = 100
_MOST_VERSIONS: Final = 1000
_MOST_TYPES: Final = 100
_Text = Annotated[str, msgspec.Meta(max_length=4096)]
_Units = Annotated[int, msgspec.Meta(ge=0, le=MOST_UNITS)]
_Bytes = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
_Version = Annotated[str, msgspec.Meta(max_length=253)]
_Versions = Annotated[tuple[_Version, ...], msgspec.Meta(max_length=_MOST_VERSIONS)]


class UnreadableReport(Exception):
    """A body that is refused, with the code of the API's error."""

    def __init__(self, code: int, reason: str) -> None:
        super().__init__(reason)
        self.code = code


class Condition(Wire):
    """A condition. Null is the same as absent, here and below."""

    type: _Text | None = None
    status: _Text | None = None
    reason: _Text | None = None
    message: _Text | None = None


class ReportedUnits(Wire):
    """Streaming units of one instance type."""

    max_units: _Units | None = None
    remaining_units: _Units | None = None


class ReportedStrimzi(Wire):
    """A Strimzi operator in a cluster."""

    version: _Version | None = None
    ready: bool | None = None
    kafka_versions: _Versions | None = None
    kafka_ibp_versions: _Versions | None = None


class ClusterStatusBody(Wire):
    """The body of PUT /agent-clusters/{id}/status."""

    conditions: Annotated[tuple[Condition, ...], msgspec.Meta(max_length=_MOST_CONDITIONS)] | None = None
    capacity: Annotated[dict[str, ReportedUnits], msgspec.Meta(max_length=_MOST_TYPES)] | None = None
    strimzi: Annotated[tuple[ReportedStrimzi, ...], msgspec.Meta(max_length=_MOST_VERSIONS)] | None = None


class ReportedVersions(Wire):
    """Versions that a Kafka runs."""

    kafka: _Version | None = None
    strimzi: _Version | None = None
    kafka_ibp: _Version | None = None


class ReportedRoute(Wire):
    """A route of a Kafka: its domain is the prefix and the bootstrap host."""

    name: _Text | None = None
    prefix: _Text | None = None
    router: _Text | None = None


class KafkaStatusBody(Wire):
    """The status of one Kafka in PUT /agent-clusters/{id}/kafkas/status. `capacity` is not read."""

    conditions: Annotated[tuple[Condition, ...], msgspec.Meta(max_length=_MOST_CONDITIONS)] | None = None
    versions: ReportedVersions | None = None
    routes: tuple[ReportedRoute, ...] | None = None
    admin_server_uri: _Text | None = msgspec.field(default=None, name="adminServerURI")
    bytes_stored: _Bytes | None = None
    units: _Units | None = None
    resizing: bool | None = None
    refused_units: _Units | None = None


def convert_cluster_status(document: Any) -> ClusterStatusBody:
    """Raises `UnreadableReport` with the code for validation."""
    try:
        return msgspec.convert(document, ClusterStatusBody)
    except msgspec.ValidationError as error:
        raise UnreadableReport(8, str(error)) from error


def convert_kafka_status(document: Any) -> KafkaStatusBody:
    try:
        return msgspec.convert(document, KafkaStatusBody)
    except msgspec.ValidationError as error:
        raise UnreadableReport(8, str(error)) from error
