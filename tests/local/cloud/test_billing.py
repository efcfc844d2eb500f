"""The cost meter."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal

from plimsoll.local.cloud.billing import compute_costs_by_group
from plimsoll.objects.api.simulated_cloud import CloudStatus, Machine, Spending
from tests.local.cloud.builders import CloudCluster


def costs(world: CloudCluster) -> dict[tuple[str, str], tuple[Decimal, Decimal]]:
    return {
        (cost.group, cost.currency): (cost.machine_hours, cost.amount) for cost in world.do(world.cloud.compute_costs())
    }


def test_machines_cost_from_their_start_by_group_and_currency():
    with CloudCluster() as world:
        world.group("g", target=2, bootSeconds=600)
        world.group("h", target=1, machineType="large", currency="EUR")
        world.after(5400)
        assert costs(world) == {
            ("g", "USD"): (Decimal(3), Decimal("0.3")),
            ("h", "EUR"): (Decimal("1.5"), Decimal("0.6")),
        }


def test_what_machines_cost_stays_when_they_are_gone():
    with CloudCluster() as world:
        world.group("g", target=2)
        world.after(3600)
        world.do(world.cloud.delete_nodes("g", ["g-0"]))
        world.after(3600)
        assert costs(world) == {("g", "USD"): (Decimal(3), Decimal("0.3"))}


def test_a_machine_deleted_by_hand_is_paid_for():
    with CloudCluster() as world:
        world.group("g", target=1)
        world.after(1800)
        world.do(world.client.delete(Machine, "g-0"))
        world.after(1800)
        assert costs(world) == {("g", "USD"): (Decimal(1), Decimal("0.1"))}


def test_the_bill_is_in_the_status_and_at_most_five_minutes_old():
    with CloudCluster() as world:
        world.group("g", target=1)
        world.after(3599)
        cloud = world.get_cloud()
        (bill,) = cloud.status.bills
        assert cloud.status.machines == 1
        assert cloud.status.billed_until is not None
        assert (world.clock.now() - cloud.status.billed_until).total_seconds() < 300
        assert (bill.currency, bill.machine_hours, bill.amount) == ("USD", "0.916667", "0.091667")


def test_what_is_settled_is_forgotten_when_the_machine_is_gone():
    with CloudCluster() as world:
        world.group("g", target=2)
        world.after(60)
        world.do(world.cloud.delete_nodes("g", ["g-0"]))
        world.do(world.cloud.delete_nodes("g", ["g-1"]))
        # The last one settled is only known to be gone when the next one is.
        assert len(world.get_cloud().status.settled) == 1


def test_a_price_that_cannot_be_true_costs_nothing():
    with CloudCluster() as world:
        world.group("g", target=1, price=1e308)
        world.group("h", target=1)
        world.after(3600)
        assert costs(world) == {("g", "USD"): (Decimal(1), Decimal(0)), ("h", "USD"): (Decimal(1), Decimal("0.1"))}


def test_books_that_the_cloud_cannot_have_written_count_as_empty():
    odd = tuple(
        Spending(group="g", currency="USD", machine_seconds=text, amount=text)
        for text in ("x", "NaN", "-Infinity", "1e308", "-1", "")
    )
    fine = Spending(group="g", currency="USD", machine_seconds="3600", amount="0.5")
    (cost,) = compute_costs_by_group(CloudStatus(spent=(*odd, fine)), (), now=datetime(2026, 1, 1, tzinfo=UTC))
    assert (cost.machine_hours, cost.amount) == (Decimal(1), Decimal("0.5"))
