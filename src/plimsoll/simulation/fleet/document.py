"""The document of `plimsoll fleet simulate`: configuration, provider, demand, and variants to compare.

The configuration is that of `plimsoll fleet evaluate`. Every mistake is found with its path.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from msgspec import structs
from pydantic import Field

from plimsoll.fleet.config.strict import MOST, Count, Document, Duration, Mistake, Name, find_repeated, parse_document
from plimsoll.fleet.model.clusters import Locator
from plimsoll.fleet.model.policy import PlacementStrategy
from plimsoll.fleet.wire.fleet_document import ConfigurationDocument, read_configuration_policy
from plimsoll.fleet.wire.row_documents import Moment  # noqa: TC001 - pydantic reads annotations at run time

if TYPE_CHECKING:
    from plimsoll.fleet.model.policy import FleetPolicy

BASE: Final = "as configured"
_LONGEST_S: Final = 31 * 86_400.0
_MOST_PER_HOUR: Final = 1_000.0
Share = Annotated[float, Field(ge=0, le=1)]
Rate = Annotated[float, Field(ge=0, le=_MOST_PER_HOUR)]
Span = Annotated[Duration, Field(ge=0, le=_LONGEST_S)]
Length = Annotated[Duration, Field(ge=1, le=_LONGEST_S)]


class ProviderDocument(Document):
    """How long a provider takes, and how often a creation fails."""

    creation: Span = 2400.0
    setup: Span = 300.0
    """Pools, add-ons and the first report of the agent, once the provider has made the cluster."""
    deletion: Span = 900.0
    failing_share: Share = 0.0
    failure: Span = 1800.0
    """After which a creation fails that fails."""
    retired_after: Span = 3600.0
    """After which an operator retires a failed cluster."""


class DemandDocument(Document):
    """Requests for Kafkas of one type in one region."""

    cloud_provider: Name
    region: Name
    instance_type: Name
    sizes: Annotated[dict[str, Annotated[float, Field(gt=0, le=MOST)]], Field(min_length=1)]
    """By id, with their weights."""
    per_hour: Rate
    lifetime: Length
    """The mean; lifetimes are exponential."""
    swing: Share = 0.0
    """By which part of the mean the rate rises at `peak`, and falls twelve hours later."""
    peak: Span = 50_400.0
    noise: Share = 0.0
    """By which part of itself the rate of an hour differs at most."""

    @property
    def locator(self) -> Locator:
        return Locator(self.cloud_provider, self.region, self.instance_type)


class VariantDocument(Document):
    """The same day with other options."""

    name: Name
    slack: Count | None = None
    cool_down: Span | None = None
    minimum_empty: Span | None = None
    count_backlog: bool | None = None
    max_parallel: Annotated[int, Field(ge=1, le=100)] | None = None
    placement: Literal["first", "best_fit", "spread"] | None = None


class DayDocument(Document):
    """The whole document."""

    start: Moment = datetime(2026, 1, 1, tzinfo=UTC)
    duration: Length = 86_400.0
    period: Length = 30.0
    """Between two passes of the workers."""
    seed: Count = 1
    configuration: ConfigurationDocument
    provider: ProviderDocument = ProviderDocument()
    demand: Annotated[list[DemandDocument], Field(min_length=1)]
    variants: list[VariantDocument] = []


@dataclass(frozen=True, slots=True)
class Variant:
    """A policy under which the day is played."""

    name: str
    policy: FleetPolicy


@dataclass(frozen=True, slots=True)
class DayInput:
    """A document without mistakes. The first variant is the configuration as it is."""

    document: DayDocument
    variants: tuple[Variant, ...]


def read_day_document(document: Any) -> DayInput | list[Mistake]:
    """The document, or all its mistakes with their paths."""
    model = parse_document(DayDocument, document)
    configuration = document.get("configuration") if isinstance(document, dict) else None
    policy, mistakes = read_configuration_policy(configuration if isinstance(configuration, dict) else {})
    if isinstance(model, list):
        return [*model, *(mistakes if isinstance(configuration, dict) else [])]
    if policy is None or mistakes:
        return mistakes
    mistakes = [*_find_unknown(model, policy), *_find_repeated(model)]
    if mistakes:
        return mistakes
    changed = (Variant(variant.name, _change_policy(policy, variant)) for variant in model.variants)
    return DayInput(document=model, variants=(Variant(BASE, policy), *changed))


def _find_unknown(model: DayDocument, policy: FleetPolicy) -> list[Mistake]:
    found = []
    for number, demand in enumerate(model.demand):
        path = f"demand[{number}]"
        if policy.find_offer(demand.locator) is None:
            found.append(Mistake(path, f"{demand.locator} is not offered by the configuration"))
        found += [
            Mistake(f"{path}.sizes.{size}", f"is no size of {demand.instance_type}")
            for size in demand.sizes
            if policy.find_size(demand.instance_type, size) is None
        ]
    return found


def _find_repeated(model: DayDocument) -> list[Mistake]:
    names = [BASE, *(variant.name for variant in model.variants)]
    return [Mistake("variants", f"the name {name!r} occurs twice") for name in find_repeated(names)]


def _change_policy(policy: FleetPolicy, variant: VariantDocument) -> FleetPolicy:
    removal, creation = policy.removal, policy.creation
    if variant.cool_down is not None:
        removal = structs.replace(removal, cool_down_s=variant.cool_down)
    if variant.minimum_empty is not None:
        removal = structs.replace(removal, minimum_empty_s=variant.minimum_empty)
    if variant.count_backlog is not None:
        creation = structs.replace(creation, count_backlog=variant.count_backlog)
    if variant.max_parallel is not None:
        creation = structs.replace(creation, max_parallel=variant.max_parallel)
    placement = policy.placement if variant.placement is None else PlacementStrategy(variant.placement)
    changed = structs.replace(policy, removal=removal, creation=creation, placement=placement)
    return changed if variant.slack is None else _change_slack(changed, variant.slack)


def _change_slack(policy: FleetPolicy, slack: int) -> FleetPolicy:
    providers = tuple(
        structs.replace(
            provider,
            regions=tuple(
                structs.replace(region, types=tuple(structs.replace(offer, slack=slack) for offer in region.types))
                for region in provider.regions
            ),
        )
        for provider in policy.providers
    )
    return structs.replace(policy, providers=providers)
