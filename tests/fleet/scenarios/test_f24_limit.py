"""The limit of a region, from outside."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.fleet.service import FleetScenario


def test_f24_a_third_kafka_does_not_fit_into_a_limit_of_two(fleet: FleetScenario):
    fleet.offer(standard={"limit": 2})
    fleet.add_cluster("a")
    fleet.start()
    assert [fleet.create_kafka(name).status for name in ("orders", "bills")] == [202, 202]
    fleet.run_passes(2)
    refused = fleet.create_kafka("late")
    assert (refused.status, refused.code) == (403, "24")
    listed = fleet.call("GET", "/kafkas").document["items"]
    assert {kafka["status"] for kafka in listed} == {"provisioning"}
