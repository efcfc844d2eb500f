"""The autoscaler dies after every call of its provider, or loses the answer: no double growth, no second group."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from plimsoll.kube.errors import TimedOut
from plimsoll.local.cloud.api import SimulatedCloud
from plimsoll.nodes.model.call_outcomes import CallFailed, FailureKind
from plimsoll.nodes.providers.simulated.provider import SimulatedProvider
from plimsoll.nodes.providers.values import ProviderFailed
from plimsoll.objects.api.simulated_cloud import NodeGroup
from plimsoll.objects.api.simulated_cloud_errors import CloudTimedOut
from tests.faults import LoseAnswers, sweep_crashes, sweep_faults
from tests.local.cloud.test_controller_crashes import CrashingCloudCluster, build_world
from tests.nodes.providers.simulated.simulated_clusters import blueprint

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

_TRIES = 4


def over_the_api(world: CrashingCloudCluster, through: Callable[[Any], Any]) -> SimulatedProvider:
    """The fault is between us and the API server."""
    return SimulatedProvider(SimulatedCloud(world.client_through(through), clock=world.clock))


def over_the_cloud(world: CrashingCloudCluster, through: Callable[[Any], Any]) -> SimulatedProvider:
    """The fault is between us and the cloud."""
    return SimulatedProvider(through(SimulatedCloud(world.client, clock=world.clock)))


async def grow(provider: SimulatedProvider) -> None:
    """What a plan says: a new group with one node, and two more nodes in `g`. Repeated until all of it is done."""
    wanted = await _reported(lambda: provider.new_node_group(blueprint(taints=())))
    await _done(wanted.create)
    groups = {group.id: group for group in await _reported(provider.node_groups)}
    await _done(lambda: groups["nap-small-1"].increase_size(1, expected=0))
    await _done(lambda: groups["g"].increase_size(2, expected=0))


async def _reported(ask: Callable[[], Awaitable[Any]]) -> Any:
    for _ in range(_TRIES):
        try:
            return await ask()
        except ProviderFailed:
            continue
    raise AssertionError("asked too often")


async def _done(act: Callable[[], Awaitable[Any]]) -> None:
    for _ in range(_TRIES):
        outcome = await _reported(act)
        if not isinstance(outcome, CallFailed):
            return
        assert outcome.kind is FailureKind.UNKNOWN
    raise AssertionError("tried too often")


async def check(world: CrashingCloudCluster) -> None:
    groups = (await world.client.list(NodeGroup)).items
    assert {group.metadata.name: group.spec.target for group in groups} == {"g": 2, "nap-small-1": 1}


def test_a_crash_after_any_write_neither_doubles_nor_loses_growth():
    crashes = sweep_crashes(build_world=build_world, build_instance=over_the_api, run=grow, check=check)
    assert crashes >= 3


def test_a_crash_after_any_call_to_the_cloud_neither_doubles_nor_loses_growth():
    crashes = sweep_crashes(build_world=build_world, build_instance=over_the_cloud, run=grow, check=check)
    assert crashes >= 7


def test_an_answer_lost_on_the_way_from_the_api_server_neither_doubles_nor_loses_growth():
    lost = sweep_faults(
        lambda number: LoseAnswers(number, error=lambda: TimedOut("lost")),
        build_world=build_world,
        build_instance=over_the_api,
        run=grow,
        check=check,
    )
    assert lost >= 3


def test_an_answer_lost_on_the_way_from_the_cloud_neither_doubles_nor_loses_growth():
    lost = sweep_faults(
        lambda number: LoseAnswers(number, error=lambda: CloudTimedOut("lost")),
        build_world=build_world,
        build_instance=over_the_cloud,
        run=grow,
        check=check,
    )
    assert lost >= 7
