"""`plimsoll tidb simulate`: the command, its pictures, and the example that newcomers run."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

import pytest
import yaml

from tests.cli.runner import REPOSITORY, CommandResult, plimsoll
from tests.cli.tidb.tidb_commands import cluster

if TYPE_CHECKING:
    from pathlib import Path

EXAMPLES = REPOSITORY / "examples" / "tidb"
PNG = b"\x89PNG\r\n\x1a\n"
HOT_HOUR = """\
seconds,tikv_cores,hot_instances,hot_share
0,      6,         1,            0.6
3600,   6,         1,            0.6
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write(tmp_path, autoscaler())
    (tmp_path / "tc.yaml").write_text(yaml.safe_dump(cluster()))
    (tmp_path / "hot.csv").write_text(HOT_HOUR)
    return tmp_path


def autoscaler(**tikv: Any) -> dict[str, Any]:
    small = {"cpu": "2", "memory": "4Gi", "storage": "20Gi", "count": 4}
    rules = {"cpu": {"max_threshold": 0.8, "min_threshold": 0.2}}
    return {
        "apiVersion": "pingcap.com/v1alpha1",
        "kind": "TidbClusterAutoScaler",
        "metadata": {"name": "as1", "namespace": "prod"},
        "spec": {"cluster": {"name": "db"}, "tikv": {"rules": rules, "resources": {"small": small}, **tikv}},
    }


def write(folder: Path, one: dict[str, Any]) -> None:
    (folder / "tac.yaml").write_text(yaml.safe_dump(one))


def run(folder: Path, *arguments: str | Path, load: str = "hot.csv") -> CommandResult:
    files = ("--load", folder / load, "-f", folder / "tac.yaml", "--tc", folder / "tc.yaml")
    return plimsoll("tidb", "simulate", *files, *arguments, cwd=folder)


def answered(ended: CommandResult) -> dict[str, Any]:
    assert ended.returncode == 0, ended.stderr
    found: dict[str, Any] = json.loads(ended.stdout)
    return found


def test_the_table_has_sums_and_decisions(folder: Path) -> None:
    ended = run(folder)
    assert ended.returncode == 0
    head, tikv, *_ = ended.stdout.splitlines()
    assert head.startswith("COMPONENT")
    assert tikv.split()[:4] == ["tikv", "5", "to", "5"]
    assert "new group of 2" in ended.stdout


def test_json_has_sums_and_decisions_with_reasons(folder: Path) -> None:
    reported = answered(run(folder, "-o", "json", "--price-per-core-hour", "0.5"))
    (summary,) = reported["summaries"]
    assert (summary["component"], summary["peakInstances"], summary["scaleOuts"]) == ("tikv", 5, 1)
    assert summary["cost"] == pytest.approx(16 * 0.5)
    (decision,) = reported["decisions"]
    assert (decision["atS"], decision["kind"], decision["added"]) == (0, "small", 2)
    assert any("hot" in why for why in decision["why"])


def test_nodes_limit_what_is_added(folder: Path) -> None:
    (decision,) = answered(run(folder, "-o", "json", "--nodes", "4"))["decisions"]
    assert decision["what"] == "new group of 1"


def test_a_load_that_changes_nothing_is_reported_as_such(folder: Path) -> None:
    (folder / "calm.csv").write_text("seconds,tikv_cores\n0,6\n600,6\n")
    assert "No decisions" in run(folder, load="calm.csv").stdout


# ---- pictures


def test_a_png(folder: Path) -> None:
    assert run(folder, "--plot", "day.png").returncode == 0
    assert (folder / "day.png").read_bytes().startswith(PNG)


def test_an_svg_is_the_same_every_time_and_shows_units_and_thresholds(folder: Path) -> None:
    run(folder, "--plot", "first.svg")
    run(folder, "--plot", "second.svg")
    first = (folder / "first.svg").read_bytes()
    assert first == (folder / "second.svg").read_bytes()
    ET.fromstring(first)
    # What is drawn as outlines is written down beside them.
    drawn = first.decode()
    for reported in (
        "hours since the beginning",
        "cores",
        "instances",
        "core hours",
        "max_threshold (0.8)",
        "group small",
    ):
        assert reported in drawn


def test_a_page_holds_picture_sums_and_decisions(folder: Path) -> None:
    assert run(folder, "--plot", "day.html").returncode == 0
    page = (folder / "day.html").read_text()
    assert page.startswith("<!doctype html>")
    assert page.count("<svg") == 1
    assert "new group of 2" in page
    assert "<script" not in page
    assert "http-equiv" not in page


def test_names_of_users_stay_text(folder: Path) -> None:
    (folder / "<b>.csv").write_text(HOT_HOUR)
    run(folder, "--plot", "day.html", load="<b>.csv")
    page = (folder / "day.html").read_text()
    assert "&lt;b&gt;.csv" in page
    assert "<b>" not in page


# ---- what is refused


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        pytest.param(("--plot", "day.pdf"), "does not end in one of .png, .svg, .html", id="unknown picture"),
        pytest.param(("--plot", "no/such/day.png"), "cannot be written", id="no folder"),
        pytest.param(("--step", "soon"), "'soon' is not a duration", id="step"),
        pytest.param(("--step", "0s"), "'0s' is not a duration", id="no step"),
        pytest.param(("--price-per-core-hour", "inf"), "is not a price", id="price"),
    ],
)
def test_wrong_usage(folder: Path, arguments: tuple[str, ...], problem: str) -> None:
    ended = run(folder, *arguments)
    assert ended.returncode == 2
    assert problem in ended.stderr


@pytest.mark.parametrize(
    ("curve", "problem"),
    [
        pytest.param("seconds,cpu\n0,1\n", "line 1: 'cpu' is none of the columns", id="unknown column"),
        pytest.param("seconds\n0\n", "lasts no time", id="one point"),
    ],
)
def test_a_curve_that_is_none_names_file_and_line(folder: Path, curve: str, problem: str) -> None:
    (folder / "bad.csv").write_text(curve)
    ended = run(folder, load="bad.csv")
    assert ended.returncode == 2
    assert "bad.csv" in ended.stderr
    assert problem in ended.stderr


def test_bytes_that_are_no_text(folder: Path) -> None:
    (folder / "bad.csv").write_bytes(b"\xff\xfe\x00")
    ended = run(folder, load="bad.csv")
    assert (ended.returncode, "is not text" in ended.stderr) == (2, True)


def test_an_invalid_autoscaler_is_reported_as_validate_reports_it(folder: Path) -> None:
    write(folder, autoscaler(rules={"cpu": {"max_threshold": 2}}))
    ended = run(folder)
    assert ended.returncode == 1
    assert ended.stderr.startswith("spec.tikv.rules.cpu.max_threshold: ")


def test_what_an_external_service_sizes_cannot_be_played(folder: Path) -> None:
    external = {"endpoint": {"host": "advice", "port": 80, "path": "/"}, "maxReplicas": 3}
    write(folder, autoscaler(external=external, rules={}, resources={}))
    ended = run(folder)
    assert ended.returncode == 2
    assert "external service" in ended.stderr


# ---- the example


def test_the_example_shows_what_it_says() -> None:
    """A hot morning makes a group that goes at noon, a busy evening makes the cluster itself grow."""
    files = ("--load", EXAMPLES / "day.csv", "-f", EXAMPLES / "tac.yaml", "--tc", EXAMPLES / "tc.yaml")
    reported = answered(plimsoll("tidb", "simulate", *files, "--step", "2m", "-o", "json"))
    done = [
        (decision["component"], decision["kind"], decision["added"])
        for decision in reported["decisions"]
        if decision["added"]
    ]
    assert done == [
        ("tidb", "base", 1),
        ("tikv", "small", 2),
        ("tikv", "small", -1),
        ("tikv", "small", -1),
        ("tikv", "base", 2),
    ]
    assert all(summary["savedShare"] > 0 for summary in reported["summaries"])
