"""The file of instance types and their sizes (docs/design/fleet.md 2.4)."""

from __future__ import annotations

import re
from typing import Annotated, Final, Literal

from pydantic import AfterValidator, ConfigDict, Field, model_validator
from pydantic.alias_generators import to_camel

from plimsoll.core.quantity import Quantity
from plimsoll.fleet.config.strict import (
    Count,
    Document,
    Name,
    Positive,
    QuantityText,
    check_whole,
    find_repeated,
    find_repeated_values,
    raise_mistakes,
)
from plimsoll.fleet.model.policy import BillingModel, InstanceType, Size

TYPE_IDS: Final = ("standard", "developer")
_ISO_DURATION: Final = re.compile(
    r"P(?=[0-9T])(?:(\d+)Y)?(?:(\d+)M)?(?:(\d+)W)?(?:(\d+)D)?"
    r"(?:T(?=[0-9])(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?",
    re.ASCII,
)


def _check_period(text: str) -> str:
    found = _ISO_DURATION.fullmatch(text)
    if found is None:
        raise ValueError("must be an ISO 8601 duration like P14D or PT12H")
    if not any(float(number) for number in found.groups() if number):
        raise ValueError("must be longer than 0")
    return text


def _check_positive_quantity(text: str) -> str:
    if Quantity.parse(text) < Quantity.from_int(1):
        raise ValueError("must be at least 1")
    return text


def _check_quantity_sign(text: str) -> str:
    if Quantity.parse(text) < Quantity.from_int(0):
        raise ValueError("must not be negative")
    return text


Period = Annotated[str, Field(max_length=100), AfterValidator(_check_period)]
PositiveQuantity = Annotated[QuantityText, AfterValidator(_check_positive_quantity)]
UnsignedQuantity = Annotated[QuantityText, AfterValidator(_check_quantity_sign)]


def _convert_key(name: str) -> str:
    """Keys of sizes are in camel case, except for two."""
    return {"display_name": "display_name", "supported_az_modes": "supportedAZModes"}.get(name, to_camel(name))


class SizeSettings(Document):
    """A size: what a Kafka may use, and what it costs."""

    model_config = ConfigDict(alias_generator=_convert_key)

    id: Name = Field(description="Name of the size, unique within its type.")
    display_name: Name = Field(description="Name for people.")
    ingress_throughput_per_sec: PositiveQuantity = Field(description="Bytes per second that clients may send.")
    egress_throughput_per_sec: PositiveQuantity = Field(description="Bytes per second that clients may receive.")
    total_max_connections: Positive = Field(description="Connections of clients.")
    max_connection_attempts_per_sec: Positive = Field(description="New connections per second.")
    max_data_retention_size: PositiveQuantity = Field(description="Bytes of data that are kept.")
    max_data_retention_period: Period = Field(description="How long data is kept, as an ISO 8601 duration.")
    max_partitions: Positive = Field(description="Partitions.")
    max_message_size: UnsignedQuantity = Field(description="Bytes of one message.")
    min_in_sync_replicas: Positive = Field(description="`min.insync.replicas` of topics.")
    replication_factor: Positive = Field(description="Replicas of a partition.")
    quota_consumed: Positive = Field(description="What a Kafka of this size consumes of a quota.")
    quota_type: Name = Field(description="Deprecated, and still required.")
    capacity_consumed: Positive = Field(description="Streaming units of a Kafka of this size.")
    supported_az_modes: list[Literal["single", "multi"]] = Field(min_length=1, description="Zones of a cluster for it.")
    maturity_status: Literal["stable", "preview"] = Field(description="`stable` or `preview`.")
    lifespan_seconds: Positive | None = Field(default=None, description="After this time the Kafka is removed.")

    def build_size(self) -> Size:
        return Size(
            id=self.id,
            display_name=self.display_name,
            ingress_throughput_per_sec=self.ingress_throughput_per_sec,
            egress_throughput_per_sec=self.egress_throughput_per_sec,
            total_max_connections=self.total_max_connections,
            max_connection_attempts_per_sec=self.max_connection_attempts_per_sec,
            max_data_retention_size=self.max_data_retention_size,
            max_data_retention_size_bytes=Quantity.parse(self.max_data_retention_size).round_up(),
            max_data_retention_period=self.max_data_retention_period,
            max_partitions=self.max_partitions,
            max_message_size=self.max_message_size,
            min_in_sync_replicas=self.min_in_sync_replicas,
            replication_factor=self.replication_factor,
            quota_consumed=self.quota_consumed,
            quota_type=self.quota_type,
            capacity_consumed=self.capacity_consumed,
            supported_az_modes=tuple(self.supported_az_modes),
            maturity_status=self.maturity_status,
            lifespan_seconds=self.lifespan_seconds,
        )


class BillingModelSettings(Document):
    """A billing model. It is stored and shown; nothing acts on it."""

    id: Name = Field(description="Name of the billing model, unique within its type.")
    ams_resource: Literal["rhosak"] = Field(description="`rhosak`.")
    ams_product: Literal["RHOSAK", "RHOSAKTrial", "RHOSAKEval", "RHOSAKCC"] = Field(description="The product.")
    ams_billing_models: list[Literal["standard", "marketplace", "marketplace-rhm", "marketplace-aws"]] = Field(
        min_length=1, description="How the product is billed; no value twice."
    )
    grace_period_days: Count = Field(default=0, description="Days after the end of a quota.")

    @model_validator(mode="after")
    def _check(self) -> BillingModelSettings:
        repeated = find_repeated(self.ams_billing_models)
        raise_mistakes("billing model", [(("ams_billing_models",), f"{name!r} occurs twice") for name in repeated])
        return self


class InstanceTypeSettings(Document):
    """An instance type."""

    id: Literal["standard", "developer"] = Field(description="`standard` or `developer`.")
    display_name: Name = Field(description="Name for people.")
    supported_billing_models: list[BillingModelSettings] = Field(min_length=1, description="At least one.")
    sizes: list[SizeSettings] = Field(min_length=1, description="At least one, the smallest first.")

    check_ids = check_whole(
        lambda document: [
            *find_repeated_values(document, "sizes", "id", "the size"),
            *find_repeated_values(document, "supported_billing_models", "id", "the billing model"),
        ]
    )

    @model_validator(mode="after")
    def _check(self) -> InstanceTypeSettings:
        units = [size.capacity_consumed for size in self.sizes]
        if units != sorted(units):
            raise_mistakes("instance type", [(("sizes",), "must be listed smallest first")])
        return self

    def build_instance_type(self) -> InstanceType:
        return InstanceType(
            id=self.id,
            display_name=self.display_name,
            sizes=tuple(size.build_size() for size in self.sizes),
            billing_models=tuple(
                BillingModel(
                    id=model.id,
                    ams_resource=model.ams_resource,
                    ams_product=model.ams_product,
                    ams_billing_models=tuple(model.ams_billing_models),
                    grace_period_days=model.grace_period_days,
                )
                for model in self.supported_billing_models
            ),
        )


class InstanceTypesDocument(Document):
    """`kafka-instance-types-configuration.yaml`: instance types with their sizes."""

    supported_instance_types: list[InstanceTypeSettings] = Field(
        min_length=1, max_length=len(TYPE_IDS), description="The instance types."
    )

    check_ids = check_whole(
        lambda document: find_repeated_values(document, "supported_instance_types", "id", "the instance type")
    )

    def build_instance_types(self) -> dict[str, InstanceType]:
        return {document.id: document.build_instance_type() for document in self.supported_instance_types}
