"""A provider over the simulated cloud, in virtual time: what tests of providers start from.

with ProviderCluster() as world:
    world.group("g", target=1)
    group = world.refreshed("g")
    assert world.do(group.increase_size(2, expected=1)) == Done()
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from plimsoll.nodes.providers.simulated.provider import SimulatedProvider
from plimsoll.nodes.providers.values import Blueprint, GroupOptions, NodeRef, Span
from plimsoll.objects.api.nodes import Taint
from tests.local.apiserver.builders import START
from tests.local.cloud.builders import CloudCluster

if TYPE_CHECKING:
    from typing import Self

    from plimsoll.nodes.providers.ports import Group

DEFAULTS = GroupOptions(
    utilization_threshold=0.5,
    gpu_utilization_threshold=0.5,
    unneeded_s=600.0,
    unready_s=1200.0,
    provision_s=900.0,
    startup_s=900.0,
)
AN_HOUR = Span(start=START, end=START + timedelta(hours=1))


def blueprint(**changes: Any) -> Blueprint:
    plain: dict[str, Any] = {
        "id": "nap-small-1",
        "machine_type": "small",
        "max_size": 100,
        "labels": {"team": "red"},
        "taints": (Taint(key="dedicated", value="red", effect="NoSchedule"),),
    }
    return Blueprint(**{**plain, **changes})


def named(*names: str) -> list[NodeRef]:
    return [NodeRef(provider_id="", name=name) for name in names]


class ProviderCluster(CloudCluster):
    """`provider` is one process' provider; `restarted` is the next one's."""

    def __enter__(self) -> Self:
        super().__enter__()
        self.provider = self.restarted()
        return self

    def restarted(self) -> SimulatedProvider:
        return SimulatedProvider(self.cloud)

    def refreshed(self, group: str = "g") -> Group:
        self.do(self.provider.refresh())
        return {group.id: group for group in self.do(self.provider.node_groups())}[group]

    def calls(self) -> list[tuple[str, str, Any, bool]]:
        return [(call_record.call, call_record.group, call_record.arg, call_record.ok) for call_record in self.log]
