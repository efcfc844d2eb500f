"""What a provider says otherwise for one group than the operator's flags say for all, in the running autoscaler."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from msgspec import structs

from plimsoll.nodes.providers.simulated.groups import SimulatedGroup
from tests.nodes.autoscaler.loop_scenarios import TYPES, group, lived

if TYPE_CHECKING:
    from plimsoll.nodes.providers.values import GroupOptions

TOLD: dict[str, Any] = {"unneeded_s": 60.0}


@pytest.fixture(autouse=True)
def _provider_with_options_of_b(monkeypatch: pytest.MonkeyPatch) -> None:
    async def get_options(self: SimulatedGroup, defaults: GroupOptions) -> GroupOptions:
        return structs.replace(defaults, **TOLD) if self.id == "b" else defaults

    monkeypatch.setattr(SimulatedGroup, "get_options", get_options)


def test_a_group_shrinks_by_the_time_of_its_provider():
    end = lived(
        {"loop": 8},
        nodeGroups=[group("a", target=2), group("b", target=2)],
        machineTypes=TYPES,
        options={"scale-down-delay-after-add": "0s"},
    )

    groups = end.outcome["nodeGroups"]
    assert (groups["a"]["target"], groups["b"]["target"]) == (2, 0)
    assert end.outcome["loops"][-1]["scaleDown"]["unremovable"] == dict.fromkeys(
        ("a-0", "a-1"), "NotUnneededLongEnough"
    )
