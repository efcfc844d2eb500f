"""A configuration that cannot be used refuses the start."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from plimsoll.fleet.config.files import InvalidConfiguration
from plimsoll.fleet.config.policy_documents import NODE_PREWARMING
from tests.cli.runner import plimsoll

if TYPE_CHECKING:
    from pathlib import Path

    from tests.fleet.service import FleetScenario


@pytest.mark.parametrize(
    ("document", "named"),
    [
        ({"standard": {"num_reserved_instances": -1}}, "standard"),
        ({"standard": {"num_reserved_instances": 1, "base_streaming_unit_size": "x9"}}, "standard"),
        ({"premium": {"num_reserved_instances": 1}}, "premium"),
    ],
)
def test_f21_a_wrong_reserve_refuses_the_start_and_names_the_type(
    fleet: FleetScenario, tmp_path: Path, document: dict[str, Any], named: str
):
    fleet.offer(standard={}).documents[NODE_PREWARMING] = document
    with pytest.raises(InvalidConfiguration, match=named):
        fleet.start()
    ended = plimsoll(
        *("run", "fleet", "--config-dir", tmp_path, "--dataplane-cluster-scaling-type", "auto"),
        *("--data", tmp_path / "data", "--once"),
    )
    assert ended.returncode == 2
    assert named in ended.stderr
    assert not (tmp_path / "data").exists()
