"""The file of clusters that an operator makes (docs/design/fleet.md 2.5). Read with the scaling type `manual`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field, model_validator

from plimsoll.fleet.config.strict import (
    MOST,
    Document,
    Mistake,
    Name,
    Text,
    check_whole,
    find_repeated_values,
    raise_mistakes,
)
from plimsoll.fleet.model.policy import ManualCluster
from plimsoll.fleet.model.statuses import ProviderType

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from plimsoll.fleet.model.policy import CloudProvider, Region, RegionType


class ManualClusterDocument(Document):
    """A cluster that exists already."""

    name: Text = Field(default="", description="Name for people; of a standalone cluster: its kubeconfig context.")
    cluster_id: Name = Field(description="The provider's id.")
    cloud_provider: Text = Field(default="", description="Its provider.")
    region: Text = Field(default="", description="Its region.")
    multi_az: bool = Field(default=False, description="Whether it has machines in several zones.")
    schedulable: bool = Field(default=False, description="Whether it gets Kafkas.")
    kafka_instance_limit: Annotated[int, Field(ge=-1, le=MOST)] = Field(
        default=0, description="Streaming units that it can hold; -1: no limit."
    )
    status: Literal["cluster_provisioning", "cluster_provisioned", "ready"] = Field(
        default="cluster_provisioning", description="The status of its row when it is made."
    )
    provider_type: Literal["ocm", "aws_eks", "standalone"] = Field(default="ocm", description="How it is accessed.")
    cluster_dns: Text = Field(default="", description="Domain of its routes; required if it is standalone.")
    supported_instance_type: Text = Field(
        default="standard,developer", description="Instance types that it runs, separated by commas."
    )

    @model_validator(mode="after")
    def _check(self) -> ManualClusterDocument:
        if self.provider_type == "standalone":
            missing = [name for name in ("cluster_dns", "name") if not getattr(self, name)]
            raise_mistakes("cluster", [((name,), "is required for a standalone cluster") for name in missing])
        return self

    def build_cluster(self) -> ManualCluster:
        return ManualCluster(
            name=self.name,
            cluster_id=self.cluster_id,
            cloud_provider=self.cloud_provider,
            region=self.region,
            multi_az=self.multi_az,
            schedulable=self.schedulable,
            kafka_instance_limit=self.kafka_instance_limit,
            status=self.status,
            provider_type=ProviderType(self.provider_type),
            cluster_dns=self.cluster_dns,
            supported_instance_type=self.supported_instance_type or "standard,developer",
        )


class ManualClustersDocument(Document):
    """`dataplane-cluster-configuration.yaml`: clusters in the order in which they are filled."""

    clusters: list[ManualClusterDocument] = Field(default=[], description="The clusters.")

    check_ids = check_whole(lambda document: find_repeated_values(document, "clusters", "cluster_id", "the cluster_id"))

    def build_clusters(self) -> tuple[ManualCluster, ...]:
        return tuple(cluster.build_cluster() for cluster in self.clusters)


def find_limit_mistakes(providers: Iterable[CloudProvider], clusters: Iterable[ManualCluster]) -> Iterator[Mistake]:
    """Limits of regions that the clusters of the manual file cannot keep (docs/design/fleet.md 2.3)."""
    given = [cluster for cluster in clusters if cluster.schedulable]
    for position, provider in enumerate(providers):
        for number, region in enumerate(provider.regions):
            here = [found for found in given if (found.cloud_provider, found.region) == (provider.name, region.name)]
            path = f"supported_providers[{position}].regions[{number}].supported_instance_type"
            yield from (mistake.with_parent(path) for mistake in _find_region_mistakes(region, here))


def _find_region_mistakes(region: Region, clusters: list[ManualCluster]) -> Iterator[Mistake]:
    for offer in region.types:
        least, most = _sum_limits(offer, clusters, is_only=len(region.types) == 1)
        if offer.limit and (offer.limit < least or (most is not None and offer.limit > most)):
            allowed = f"{least}" if least == most else f"between {least} and {most}"
            reason = f"{offer.limit} must be {allowed}: what the clusters of the manual file can hold"
            yield Mistake(f"{offer.instance_type}.limit", reason)
    capacity = _sum_units(clusters)
    if len(region.types) > 1 and capacity is not None and all(offer.limit is not None for offer in region.types):
        total = sum(offer.limit or 0 for offer in region.types)
        if total != capacity:
            yield Mistake("", f"the limits of {region.name} sum up to {total}, and its clusters can hold {capacity}")


def _sum_limits(offer: RegionType, clusters: list[ManualCluster], *, is_only: bool) -> tuple[int, int | None]:
    """What clusters for this type alone can hold, and what all clusters that support it can; None: no limit."""
    supporting = [found for found in clusters if offer.instance_type in found.supported_instance_type.split(",")]
    alone = [found for found in supporting if is_only or found.supported_instance_type == offer.instance_type]
    return _sum_units(alone) or 0, _sum_units(supporting)


def _sum_units(clusters: list[ManualCluster]) -> int | None:
    if any(found.kafka_instance_limit < 0 for found in clusters):
        return None
    return sum(found.kafka_instance_limit for found in clusters)
