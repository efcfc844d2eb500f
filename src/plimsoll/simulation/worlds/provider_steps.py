"""The effect of a `{provider: …}` step on the cloud: faults, stock, limits, and calls like those of an autoscaler.

Names are checked here and not when the file is read, because groups are created and deleted during the run.
"""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

from plimsoll.core.errors import InvalidInput
from plimsoll.kube.errors import ApiError
from plimsoll.local.cloud.faults.injection import FaultInjector
from plimsoll.objects.api.simulated_cloud_errors import CloudError
from plimsoll.simulation.document import join_path

if TYPE_CHECKING:
    from collections.abc import Iterable

    from plimsoll.simulation.scenario import ProviderCall, ProviderStep
    from plimsoll.simulation.worlds.world import World


def apply_provider_step(world: World, step: ProviderStep, *, path: str) -> None:
    """Apply the step. Raises `InvalidInput` for an unknown name, before anything is changed."""
    world.run_now(_check_names(world, step, path=path))
    world.run_now(_intervene(world, step, path=path))
    for call in step.calls:
        # Its answer may come late: the caller waits while the scenario continues.
        world.run.spawn(_call(world, call), name=f"{call.call} {call.group}")
        world.run.settle()


async def _check_names(world: World, step: ProviderStep, *, path: str) -> None:
    groups = {world.group_names.get_id(group.metadata.name): group for group in await world.cloud.node_groups()}
    # Scale-ups of a group with `exist: false` may be set to fail before the group is created.
    growing = [*groups, *(group_entry.id for group_entry in world.scenario.node_groups)]
    sold = [machine_type_.name for machine_type_ in await world.cloud.list_machine_types()]
    types = [*sold, *(group.spec.machine_type for group in groups.values() if group.spec.machine_type)]
    for failing in step.fail_increases:
        _check(failing.group, growing, "node group", path=f"{path}.failIncrease")
    for machine_type, _ in step.stockouts:
        _check(machine_type, types, "machine type", path=f"{path}.stockout")
    for limits in step.limits:
        _check(limits.group, groups, "node group", path=f"{path}.setGroup")


def _check(name: str, known: Iterable[str], what: str, *, path: str) -> None:
    names = list(dict.fromkeys(known))
    if name in names:
        return
    near = difflib.get_close_matches(name, names, n=1)
    hint = f"did you mean {near[0]}?" if near else f"known are {', '.join(names[:10])}" if names else "there are none"
    raise InvalidInput(f"there is no {what} {name}; {hint}", path=join_path(path, name))


async def _intervene(world: World, step: ProviderStep, *, path: str) -> None:
    at, hand, names = path, FaultInjector(world.client), world.group_names
    try:
        for failing in step.fail_increases:
            at = join_path(f"{path}.failIncrease", failing.group)
            await hand.fail_increase(names.get_name(failing.group), failing.message, until=failing.until)
        for machine_type, left in step.stockouts:
            at = join_path(f"{path}.stockout", machine_type)
            await hand.limit_stock(machine_type, left=left)
        for limits in step.limits:
            at = join_path(f"{path}.setGroup", limits.group)
            await hand.set_group(names.get_name(limits.group), min_size=limits.min, max_size=limits.max)
    except ApiError as error:
        raise InvalidInput(str(error), path=at) from error


async def _call(world: World, call: ProviderCall) -> None:
    """Make the call. A refusal of the cloud is in its call log."""
    cloud, arg, group = world.cloud, call.arg, world.group_names.get_name(call.group)
    try:
        match call.call, arg:
            case "IncreaseSize", int():
                await cloud.increase_size(group, arg)
            case "AtomicIncreaseSize", int():
                await cloud.atomic_increase_size(group, arg)
            case "DecreaseTargetSize", int():
                await cloud.decrease_target_size(group, arg)
            case "DeleteNodes", tuple():
                await cloud.delete_nodes(group, arg)
            case "ForceDeleteNodes", tuple():
                await cloud.force_delete_nodes(group, arg)
            case _:
                await cloud.delete_group(group)
    except CloudError:
        return
