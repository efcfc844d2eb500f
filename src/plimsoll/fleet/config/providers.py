"""The file of providers, their regions and what these offer (docs/design/fleet.md 2.3)."""

from __future__ import annotations

from typing import Annotated, Any, Final

from pydantic import AfterValidator, Field, model_validator

from plimsoll.fleet.config.strict import (
    NULL_IS_EMPTY,
    Count,
    Document,
    Finding,
    Name,
    Text,
    check_whole,
    find_repeated_values,
    list_values,
    raise_mistakes,
)
from plimsoll.fleet.model.policy import CloudProvider, Region, RegionType

KNOWN: Final = ("aws", "gcp", "azure")


def _check_provider(name: str) -> str:
    if name.lower() not in KNOWN:
        raise ValueError(f"must be {', '.join(KNOWN[:-1])} or {KNOWN[-1]}")
    return name.lower()


def _find_default_mistakes(document: dict[str, Any], name: str, noun: str) -> list[Finding]:
    """Exactly one item of a list is the default. Without a list, or with odd marks, these are the mistakes."""
    marks = [mark for mark in list_values(document, name, "default") if mark is not None]
    if not isinstance(document.get(name), list) or not all(isinstance(mark, bool) for mark in marks):
        return []
    defaults = sum(marks)
    of_provider = f" of {document['name']}" if isinstance(document.get("name"), str) else ""
    return [] if defaults == 1 else [((name,), f"{defaults} {noun}{of_provider} are the default; it must be one")]


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

    check_regions = check_whole(
        lambda document: [
            *_find_default_mistakes(document, "regions", "regions"),
            *find_repeated_values(document, "regions", "name", "the region"),
        ]
    )


class ProvidersDocument(Document):
    """`provider-configuration.yaml`: where clusters and Kafkas may be."""

    supported_providers: list[ProviderDocument] = Field(description="Providers; one of them is the default.")

    check_providers = check_whole(
        lambda document: [
            *_find_default_mistakes(document, "supported_providers", "providers"),
            *find_repeated_values(document, "supported_providers", "name", "the provider", ignores_case=True),
        ]
    )

    def build_providers(self) -> tuple[CloudProvider, ...]:
        return tuple(
            CloudProvider(
                name=provider.name,
                is_default=provider.default,
                regions=tuple(region.build_region() for region in provider.regions),
            )
            for provider in self.supported_providers
        )
