"""Which versions an administrator may give a Kafka (docs/design/fleet.md 3.4). Pure."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from plimsoll.core.errors import InvalidQuantity
from plimsoll.core.quantity import Quantity
from plimsoll.fleet.api.errors import Code, RequestRefused

if TYPE_CHECKING:
    from plimsoll.fleet.api.documents.admin import AdminKafkaPatch
    from plimsoll.fleet.model.clusters import Cluster, StrimziVersion
    from plimsoll.fleet.model.kafkas import KafkaRequest
    from plimsoll.fleet.ports import KafkaChanges

_VERSION: Final = re.compile(r"[0-9]{1,9}(\.[0-9]{1,9}){1,3}", re.ASCII)
_LARGEST_SIZE: Final = 2**63 - 1


def find_upgrade_changes(kafka: KafkaRequest, cluster: Cluster | None, patch: AdminKafkaPatch) -> KafkaChanges:
    """The columns that change. Raises `RequestRefused`."""
    changes: KafkaChanges = {}
    if patch.max_data_retention_size is not None:
        changes["max_data_retention_size"] = _check_retention(kafka, patch.max_data_retention_size)
    if patch.strimzi_version is None and patch.kafka_version is None and patch.kafka_ibp_version is None:
        return changes
    desired = (
        patch.strimzi_version or kafka.desired_strimzi_version,
        patch.kafka_version or kafka.desired_kafka_version,
        patch.kafka_ibp_version or kafka.desired_kafka_ibp_version,
    )
    _check_running_upgrades(kafka, patch)
    _check_availability(cluster, *desired)
    _check_downgrades(kafka, kafka_version=desired[1], ibp_version=desired[2])
    changes["desired_strimzi_version"] = desired[0]
    changes["desired_kafka_version"] = desired[1]
    changes["desired_kafka_ibp_version"] = desired[2]
    return changes


def _check_retention(kafka: KafkaRequest, wanted: str) -> str:
    try:
        size = Quantity.parse(wanted).round_up()
        current = Quantity.parse(kafka.max_data_retention_size or "0").round_up()
    except InvalidQuantity as error:
        raise RequestRefused(Code.FIELD_VALIDATION, f"max_data_retention_size: {error.problem}") from error
    if size < current or size >= _LARGEST_SIZE:  # a quantity ends there
        raise RequestRefused(
            Code.FIELD_VALIDATION, f"max_data_retention_size: it is {kafka.max_data_retention_size}, and only grows"
        )
    return wanted


def _check_running_upgrades(kafka: KafkaRequest, patch: AdminKafkaPatch) -> None:
    running = (
        (kafka.strimzi_upgrading, patch.strimzi_version, kafka.desired_strimzi_version, "Strimzi"),
        (kafka.kafka_upgrading, patch.kafka_version, kafka.desired_kafka_version, "Kafka"),
        (kafka.kafka_ibp_upgrading, patch.kafka_ibp_version, kafka.desired_kafka_ibp_version, "Kafka IBP"),
    )
    for is_running, wanted, desired, name in running:
        if is_running and wanted is not None and wanted != desired:
            raise RequestRefused(Code.BAD_REQUEST, f"a {name} upgrade to {desired} is running")


def _check_availability(cluster: Cluster | None, strimzi: str, kafka_version: str, ibp_version: str) -> None:
    known = () if cluster is None else cluster.available_strimzi_versions
    found: StrimziVersion | None = next((version for version in known if version.version == strimzi), None)
    if found is None:
        raise RequestRefused(Code.BAD_REQUEST, f"strimzi_version: {strimzi!r} is not on the cluster of the Kafka")
    if not found.ready:
        raise RequestRefused(Code.BAD_REQUEST, f"strimzi_version: {strimzi!r} is not ready")
    if kafka_version not in {item.version for item in found.kafkaVersions}:
        raise RequestRefused(Code.BAD_REQUEST, f"kafka_version: {strimzi!r} does not run {kafka_version!r}")
    if ibp_version not in {item.version for item in found.kafkaIBPVersions}:
        raise RequestRefused(Code.BAD_REQUEST, f"kafka_ibp_version: {strimzi!r} does not run {ibp_version!r}")


def _check_downgrades(kafka: KafkaRequest, *, kafka_version: str, ibp_version: str) -> None:
    wanted, ibp = _parse(kafka_version, "kafka_version"), _parse(ibp_version, "kafka_ibp_version")
    if ibp > wanted:
        raise RequestRefused(Code.BAD_REQUEST, f"kafka_ibp_version: {ibp_version} is above Kafka {kafka_version}")
    if kafka.actual_kafka_ibp_version and ibp < _parse(kafka.actual_kafka_ibp_version, "kafka_ibp_version"):
        raise RequestRefused(Code.BAD_REQUEST, f"kafka_ibp_version: {kafka.actual_kafka_ibp_version} cannot be lowered")
    if kafka.actual_kafka_version and wanted[:2] < _parse(kafka.actual_kafka_version, "kafka_version")[:2]:
        raise RequestRefused(
            Code.BAD_REQUEST, f"kafka_version: {kafka.actual_kafka_version} cannot be lowered to {kafka_version}"
        )


def _parse(version: str, name: str) -> tuple[int, ...]:
    """Numbers, filled up to four: 2.7 is 2.7.0.0."""
    if not _VERSION.fullmatch(version):
        raise RequestRefused(Code.BAD_REQUEST, f"{name}: {version[:50]!r} is not a version")
    numbers = tuple(int(part) for part in version.split("."))
    return numbers + (0,) * (4 - len(numbers))
