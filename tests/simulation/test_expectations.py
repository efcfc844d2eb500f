from __future__ import annotations

from typing import Any

import pytest

from plimsoll.simulation.expectations import Absent, find, find_unmet
from plimsoll.simulation.scenario import Expectation

OUTCOME: dict[str, Any] = {
    "nodeGroups": {"g": {"target": 3, "autoprovisioned": False}},
    "nodes": {"n1": {"pods": 2}, "n1.zone": {"x": 1}},
    "pods": {"default/web-0": "g-0", "default/web-1": None},
    "loops": [{"time": "2025-01-01T00:00:00Z"}, {"time": "2025-01-01T00:00:10Z"}],
    "metrics": {'total{reason="a.b/c"}': 2},
}


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("/nodeGroups/g/target", 3),
        ("nodeGroups.g.target", 3),
        ("/pods/default~1web-0", "g-0"),
        ("/pods/default/web-0", "g-0"),
        ("pods.default/web-0", "g-0"),
        ("/pods/default~1web-1", None),
        ("/loops/1/time", "2025-01-01T00:00:10Z"),
        ("loops[-1].time", "2025-01-01T00:00:10Z"),
        ('/metrics/total{reason="a.b/c"}', 2),
        ('metrics.total{reason="a.b/c"}', 2),
        ("nodes.n1.zone.x", 1),
        ("nodes.n1.pods", 2),
        ("nodes.n1.zone.y", Absent(at="zone")),
        ("/nodeGroups/h/target", Absent(at="h")),
        ("/loops/2", Absent(at="2")),
    ],
)
def test_paths(path: str, value: Any):
    assert find(OUTCOME, path) == value


@pytest.mark.parametrize(
    ("path", "holds", "fails"),
    [
        ("/nodeGroups/g/target", {"eq": 3}, {"eq": 4}),
        ("/nodeGroups/g/target", {"eq": 3.0}, {"eq": True}),
        ("/nodeGroups/g/target", {"ne": 4}, {"ne": 3}),
        ("/nodeGroups/g/target", {"gt": 2, "lt": 4}, {"gt": 2, "lt": 3}),
        ("/nodeGroups/g/target", {"ge": 3, "le": 3}, {"ge": 4}),
        ("/nodeGroups/g/target", {"in": [1, 3]}, {"in": ["3"]}),
        ("/nodeGroups/g/autoprovisioned", {"eq": False}, {"eq": 0}),
        ("/loops/0/time", {"lt": "2025-01-01T00:00:01Z"}, {"lt": 5}),
        ("/loops/0/time", {"matches": "^2025-.*Z$"}, {"matches": "^2026"}),
        ("/loops", {"count": 2}, {"count": 3}),
        ("/pods", {"count": {"ge": 2}}, {"count": {"gt": 2}}),
        ("/pods", {"contains": "default/web-0"}, {"contains": "default/web-9"}),
        ("/loops", {"contains": {"time": "2025-01-01T00:00:10Z"}}, {"contains": {"time": "never"}}),
        ("/pods/default~1web-0", {"contains": "g-"}, {"contains": "h-"}),
        ("/nodeGroups/h", {"absent": True}, {"absent": False}),
        ("/nodeGroups/g", {"absent": False}, {"absent": True}),
        ("/pods/default~1web-1", {"eq": None}, {"eq": "g-0"}),
    ],
)
def test_operators(path: str, holds: dict[str, Any], fails: dict[str, Any]):
    assert find_unmet(Expectation(path=path, operators=tuple(holds.items())), OUTCOME) is None
    assert find_unmet(Expectation(path=path, operators=tuple(fails.items())), OUTCOME) is not None


@pytest.mark.parametrize("name", ["eq", "ne", "lt", "contains", "matches", "count", "in"])
def test_nothing_can_be_expected_of_what_is_absent(name: str):
    assert find_unmet(Expectation(path="/nodeGroups/h", operators=((name, ["x"]),)), OUTCOME) is not None


def test_a_failure_says_path_wanted_and_got():
    missed = find_unmet(Expectation(path="/nodeGroups/g/target", operators=(("ge", 4),)), OUTCOME)
    assert str(missed) == '/nodeGroups/g/target: wanted {"ge": 4}, got 3'
    missed = find_unmet(Expectation(path="/nodeGroups/h/target", operators=(("eq", 4),)), OUTCOME)
    assert str(missed) == "/nodeGroups/h/target: wanted 4, got nothing (no h)"
