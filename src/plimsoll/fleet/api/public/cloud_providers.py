"""Public routes of what can be created where: cloud providers, regions, instance types."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated, Final

from fastapi import Path

from plimsoll.core.quantity import Quantity
from plimsoll.fleet.api.documents.base import build_document_response
from plimsoll.fleet.api.documents.public import (
    BillingModelAnswer,
    ByteCount,
    CloudProviderAnswer,
    CloudProviderListAnswer,
    CloudRegionAnswer,
    CloudRegionListAnswer,
    InstanceTypeAnswer,
    InstanceTypeListAnswer,
    RegionCapacityAnswer,
    SizeAnswer,
)
from plimsoll.fleet.api.errors import Code, RequestRefused
from plimsoll.fleet.api.operations import Group, Operation, PageNumber, PageSize, RowId, answer_errors
from plimsoll.fleet.api.parsing.paging import cut_page, parse_page
from plimsoll.fleet.api.public.entitlements import STANDARD
from plimsoll.fleet.model.clusters import Locator
from plimsoll.fleet.model.kafkas import KafkaRequest
from plimsoll.fleet.model.statuses import ClusterType, ScalingType
from plimsoll.fleet.planning.placement import place_kafkas
from plimsoll.fleet.planning.region_check import list_available_sizes, sum_region_units

if TYPE_CHECKING:
    from datetime import datetime

    from plimsoll.fleet.api.ports import ApiPorts
    from plimsoll.fleet.model.clusters import Cluster
    from plimsoll.fleet.model.policy import CloudProvider, FleetPolicy, InstanceType, Region, Size
    from plimsoll.fleet.model.units import KafkaCount
    from plimsoll.web.responses import PageResponse

ProviderName = Annotated[str, Path(alias="cloud_provider")]
RegionName = Annotated[str, Path(alias="cloud_region")]
_DISPLAY_NAMES: Final = {"aws": "Amazon Web Services", "gcp": "Google Cloud Platform", "azure": "Microsoft Azure"}


class CloudProviders:
    """What the provider file and the instance types say, and which sizes have room."""

    def __init__(self, ports: ApiPorts) -> None:
        self._ports = ports
        self._policy = ports.policy

    def list_operations(self) -> tuple[Operation, ...]:
        return (
            Operation(
                method="GET",
                path="/cloud_providers",
                operation_id="getCloudProviders",
                group=Group.PUBLIC,
                endpoint=self.list_providers,
                answers={200: CloudProviderListAnswer, **answer_errors(400, 401, 403, 429, 500)},
                summary="The cloud providers.",
            ),
            Operation(
                method="GET",
                path="/cloud_providers/{id}/regions",
                operation_id="getCloudProviderRegions",
                group=Group.PUBLIC,
                endpoint=self.list_regions,
                answers={200: CloudRegionListAnswer, **answer_errors(400, 401, 403, 429, 500)},
                summary="The regions of a cloud provider, with the sizes that can be created now.",
            ),
            Operation(
                method="GET",
                path="/instance_types/{cloud_provider}/{cloud_region}",
                operation_id="getInstanceTypesByCloudProviderAndRegion",
                group=Group.PUBLIC,
                endpoint=self.list_instance_types,
                answers={200: InstanceTypeListAnswer, **answer_errors(400, 401, 403, 429, 500)},
                summary="The instance types of a region.",
            ),
        )

    async def list_providers(self, number: PageNumber = "", size: PageSize = "") -> PageResponse:
        page = parse_page(number, size)
        documents = [_present_provider(provider) for provider in self._policy.providers]
        items = cut_page(documents, page)
        return build_document_response(
            CloudProviderListAnswer(
                kind="CloudProviderList", page=page.number, size=len(items), total=len(documents), items=items
            )
        )

    async def list_regions(self, provider_name: RowId, number: PageNumber = "", size: PageSize = "") -> PageResponse:
        """A provider that is not configured has no regions."""
        page = parse_page(number, size)
        provider = self._policy.find_provider(provider_name)
        regions = () if provider is None else provider.regions
        available = await self._read_availability()
        items = [available.present_region(provider_name, region) for region in cut_page(regions, page)]
        return build_document_response(
            CloudRegionListAnswer(
                kind="CloudRegionList", page=page.number, size=len(items), total=len(regions), items=items
            )
        )

    async def list_instance_types(self, provider_name: ProviderName, region_name: RegionName) -> PageResponse:
        provider = self._policy.find_provider(provider_name)
        if provider is None:
            raise RequestRefused(Code.PROVIDER_NOT_SUPPORTED, f"provider {provider_name[:50]!r} is not supported")
        region = provider.find_region(region_name)
        if region is None:
            raise RequestRefused(Code.REGION_NOT_SUPPORTED, f"region {region_name[:50]!r} is not supported")
        offered = sorted(found.instance_type for found in region.types)
        known = [self._policy.instance_types[name] for name in offered if name in self._policy.instance_types]
        items = [_present_instance_type(found) for found in known]
        return build_document_response(InstanceTypeListAnswer(instance_types=items, items=items))

    async def _read_availability(self) -> _Availability:
        clusters = await self._ports.store.list_clusters()
        counts = await self._ports.store.count_kafkas(self._policy)
        return _Availability(clusters, counts, self._policy, self._ports.clock.now())


class _Availability:
    """The sizes that would be accepted now, from rows that were read once for all regions."""

    def __init__(
        self, clusters: tuple[Cluster, ...], counts: tuple[KafkaCount, ...], policy: FleetPolicy, now: datetime
    ) -> None:
        self._clusters = clusters
        self._counts = counts
        self._policy = policy
        self._now = now
        enterprise = {found.cluster_id for found in clusters if found.cluster_type is ClusterType.ENTERPRISE} - {""}
        limited = [count for count in counts if count.cluster_id not in enterprise]
        self._used = sum_region_units(limited, policy)

    def present_region(self, provider_name: str, region: Region) -> CloudRegionAnswer:
        capacity = [
            RegionCapacityAnswer(
                instance_type=offered.instance_type,
                available_sizes=list(self._list_sizes(Locator(provider_name, region.name, offered.instance_type))),
            )
            for offered in region.types
        ]
        return CloudRegionAnswer(
            kind="CloudRegion", id=region.name, display_name=region.name, enabled=bool(region.types), capacity=capacity
        )

    def _list_sizes(self, locator: Locator) -> tuple[str, ...]:
        is_auto = self._policy.scaling_type is ScalingType.AUTO
        has_place = None if is_auto else partial(self._has_place, locator)
        return list_available_sizes(self._policy, locator, used=self._used.get(locator, 0), has_place=has_place)

    def _has_place(self, locator: Locator, size: Size) -> bool:
        """Whether a Kafka of this size would be placed, by placing one that does not exist."""
        kafka = KafkaRequest(
            id="",
            created_at=self._now,
            updated_at=self._now,
            name="",
            cloud_provider=locator.cloud_provider,
            region=locator.region,
            instance_type=locator.instance_type,
            size_id=size.id,
            multi_az=locator.instance_type == STANDARD,
        )
        (decision,) = place_kafkas((kafka,), self._clusters, self._counts, self._policy, self._now)
        return decision.cluster is not None


def _present_provider(provider: CloudProvider) -> CloudProviderAnswer:
    return CloudProviderAnswer(
        kind="CloudProvider",
        id=provider.name,
        display_name=_DISPLAY_NAMES.get(provider.name.lower(), provider.name),
        name=provider.name,
        enabled=bool(provider.regions),
    )


def _present_instance_type(found: InstanceType) -> InstanceTypeAnswer:
    return InstanceTypeAnswer(
        id=found.id,
        display_name=found.display_name,
        supported_billing_models=[
            BillingModelAnswer(
                id=model.id,
                ams_resource=model.ams_resource,
                ams_product=model.ams_product,
                ams_billing_models=list(model.ams_billing_models),
            )
            for model in found.billing_models
        ],
        sizes=[_present_size(size) for size in found.sizes],
    )


def _present_size(size: Size) -> SizeAnswer:
    return SizeAnswer(
        id=size.id,
        display_name=size.display_name,
        ingress_throughput_per_sec=_count_bytes(size.ingress_throughput_per_sec),
        egress_throughput_per_sec=_count_bytes(size.egress_throughput_per_sec),
        total_max_connections=size.total_max_connections,
        max_data_retention_size=ByteCount(bytes=size.max_data_retention_size_bytes),
        max_partitions=size.max_partitions,
        max_data_retention_period=size.max_data_retention_period,
        max_connection_attempts_per_sec=size.max_connection_attempts_per_sec,
        max_message_size=_count_bytes(size.max_message_size),
        min_in_sync_replicas=size.min_in_sync_replicas,
        replication_factor=size.replication_factor,
        supported_az_modes=list(size.supported_az_modes),
        lifespan_seconds=size.lifespan_seconds,
        quota_consumed=size.quota_consumed,
        quota_type=size.quota_type,
        capacity_consumed=size.capacity_consumed,
        maturity_status=size.maturity_status,
    )


def _count_bytes(quantity: str) -> ByteCount:
    """The configuration has checked the quantity."""
    return ByteCount(bytes=Quantity.parse(quantity).round_up())
