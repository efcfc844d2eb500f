"""The example of a provisioning class of one's own (examples/requests/night) does what it says."""

from __future__ import annotations

import tomllib
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import TYPE_CHECKING

from plimsoll.nodes import builder
from plimsoll.nodes.requests.classes import GROUP, load_classes
from plimsoll.simulation.files.scenario_reader import read_scenario
from plimsoll.simulation.runner import run_scenario

if TYPE_CHECKING:
    import pytest

EXAMPLE = Path(__file__).parents[3] / "examples/requests/night"


def test_the_night_class_adds_machines_when_it_is_night(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.syspath_prepend(EXAMPLE)
    named = tomllib.loads((EXAMPLE / "pyproject.toml").read_text())["project"]["entry-points"][GROUP]
    classes = load_classes(EntryPoint(name=name, value=value, group=GROUP) for name, value in named.items())
    monkeypatch.setattr(builder, "load_registered_classes", lambda: classes)

    story = run_scenario(read_scenario((EXAMPLE / "night.yaml").read_bytes(), source="night.yaml"))
    assert story.expectations == 7
    assert [str(failed_expectation) for failed_expectation in story.failed] == []
