"""The file of providers, their regions and what these offer (docs/design/fleet.md 2.3)."""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import AfterValidator, Field, model_validator

from plimsoll.fleet.config.strict import NULL_IS_EMPTY, Count, Document, Name, Text, find_repeated, raise_mistakes
from plimsoll.fleet.model.policy import CloudProvider, Region, RegionType

KNOWN: Final = ("aws", "gcp", "azure")


def _check_provider(name: str) -> str:
    if name.lower() not in KNOWN:
        raise ValueError(f"must be {', '.join(KNOWN[:-1])} or {KNOWN[-1]}")
    return name.lower()


class RegionTypeDocument(Document):
    """What a region offers of an instance type."""

    limit: Count | None = Field(default=None, description="Streaming units; absent: no limit; 0: closed.")
    min_available_capacity_slack_streaming_units: Count = Field(
        default=0, description="Streaming units that are kept free: with fewer another cluster is created."
    )

    @model_validator(mode="after")
    def _check(self) -> RegionTypeDocument:
        slack = self.min_available_capacity_slack_streaming_units
        if self.limit and slack > self.limit:
            key = "min_available_capacity_slack_streaming_units"
            raise_mistakes("region", [((key,), f"{slack} is more than the limit of {self.limit}")])
        return self


class RegionDocument(Document):
    """A region of a provider."""

    name: Name = Field(description="Name of the region, unique within its provider.")
    default: bool = Field(default=False, description="One region per provider is the default.")
    supported_instance_type: dict[Name, Annotated[RegionTypeDocument, NULL_IS_EMPTY]] = Field(
        default={}, description="Instance types by name, in the order in which they are evaluated."
    )
    cluster_class: Text = Field(
        default="", description="Clusters are made here by Cluster API, of this ClusterClass: NAME or NAMESPACE/NAME."
    )

    def build_region(self) -> Region:
        return Region(
            name=self.name,
            is_default=self.default,
            types=tuple(
                RegionType(
                    instance_type=name,
                    limit=offered.limit,
                    slack=offered.min_available_capacity_slack_streaming_units,
                )
                for name, offered in self.supported_instance_type.items()
            ),
            cluster_class=self.cluster_class,
        )


class ProviderDocument(Document):
    """A provider of machines."""

    name: Annotated[Name, AfterValidator(_check_provider)] = Field(description="`aws`, `gcp` or `azure`.")
    default: bool = Field(default=False, description="One provider is the default.")
    regions: list[RegionDocument] = Field(description="Regions; one of them is the default.")

    @model_validator(mode="after")
    def _check(self) -> ProviderDocument:
        mistakes: list[tuple[tuple[str | int, ...], str]] = []
        defaults = sum(region.default for region in self.regions)
        if defaults != 1:
            mistakes.append((("regions",), f"{defaults} regions of {self.name} are the default; it must be one"))
        repeated = find_repeated(region.name for region in self.regions)
        mistakes += [(("regions",), f"the region {name!r} occurs twice") for name in repeated]
        raise_mistakes("provider", mistakes)
        return self


class ProvidersDocument(Document):
    """`provider-configuration.yaml`: where clusters and Kafkas may be."""

    supported_providers: list[ProviderDocument] = Field(description="Providers; one of them is the default.")

    @model_validator(mode="after")
    def _check(self) -> ProvidersDocument:
        mistakes: list[tuple[tuple[str | int, ...], str]] = []
        defaults = sum(provider.default for provider in self.supported_providers)
        if defaults != 1:
            mistakes.append((("supported_providers",), f"{defaults} providers are the default; it must be one"))
        repeated = find_repeated(provider.name for provider in self.supported_providers)
        mistakes += [(("supported_providers",), f"the provider {name!r} occurs twice") for name in repeated]
        raise_mistakes("providers", mistakes)
        return self

    def build_providers(self) -> tuple[CloudProvider, ...]:
        return tuple(
            CloudProvider(
                name=provider.name,
                is_default=provider.default,
                regions=tuple(region.build_region() for region in provider.regions),
            )
            for provider in self.supported_providers
        )
