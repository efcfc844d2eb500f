"""The limit of a region, as the API checks it before it accepts a Kafka (docs/design/fleet.md 3.2)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from plimsoll.core.values import Value
from plimsoll.fleet.model.statuses import ScalingType
from plimsoll.fleet.planning.capacity import get_assumed_units
from plimsoll.fleet.ports import RegionCheck

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from plimsoll.fleet.model.clusters import Locator
    from plimsoll.fleet.model.policy import FleetPolicy, Size
    from plimsoll.fleet.model.units import KafkaCount


class Refused(Value):
    """No Kafka of this type is accepted in the region. `reason`: `not_offered`, `closed` or `unknown_instance_type`."""

    reason: str
    message: str


def build_region_check(
    policy: FleetPolicy, locator: Locator, *, owner_limit: int | None = None
) -> RegionCheck | Refused:
    """What the transaction that inserts a Kafka checks. The scaling type `none` has no limits."""
    instance_type = policy.instance_types.get(locator.instance_type)
    if instance_type is None:
        return Refused(reason="unknown_instance_type", message=f"{locator}: this instance type is not configured")
    offer = policy.find_offer(locator)
    if offer is None:
        return Refused(reason="not_offered", message=f"{locator}: the region does not offer this instance type")
    limit = None if policy.scaling_type is ScalingType.NONE else offer.limit
    if limit == 0:
        return Refused(reason="closed", message=f"{locator}: the limit of the region is 0")
    return RegionCheck(
        limit=limit,
        sizes={size.id: size.capacity_consumed for size in instance_type.sizes},
        unknown_size_units=max(1, instance_type.biggest),
        owner_limit=owner_limit,
    )


def build_size_check(
    policy: FleetPolicy, locator: Locator, *, size_id: str, wanted: Size, counts_in_region: bool
) -> RegionCheck | Refused:
    """What the transaction that gives a Kafka another size checks.

    The limit of the region holds for a Kafka that grows, and not for one on an enterprise cluster.
    """
    if counts_in_region and wanted.capacity_consumed > get_assumed_units(policy, locator.instance_type, size_id):
        return build_region_check(policy, locator)
    known = policy.instance_types[locator.instance_type]
    return RegionCheck(
        limit=None,
        sizes={size.id: size.capacity_consumed for size in known.sizes},
        unknown_size_units=max(1, known.biggest),
    )


def sum_region_units(counts: Iterable[KafkaCount], policy: FleetPolicy) -> dict[Locator, int]:
    """What the limit counts: all live Kafkas, also those without a place and those in status `deleting`.

    `counts` must not have Kafkas on enterprise clusters.
    """
    used: dict[Locator, int] = {}
    for count in counts:
        units = get_assumed_units(policy, count.locator.instance_type, count.size_id)
        used[count.locator] = used.get(count.locator, 0) + units * (count.consuming + count.deleting)
    return used


def list_available_sizes(
    policy: FleetPolicy, locator: Locator, *, used: int, has_place: Callable[[Size], bool] | None = None
) -> tuple[str, ...]:
    """The sizes that would be accepted, smallest first: the biggest that is, and all smaller ones.

    `has_place` says whether placement finds a cluster; None in auto mode, where one would be created.
    """
    check = build_region_check(policy, locator)
    if isinstance(check, Refused):
        return ()
    sizes = policy.instance_types[locator.instance_type].sizes
    for number in range(len(sizes), 0, -1):
        size = sizes[number - 1]
        fits = check.limit is None or used + size.capacity_consumed <= check.limit
        if fits and (has_place is None or has_place(size)):
            return tuple(smaller.id for smaller in sizes[:number])
    return ()
