"""Dashboards, alerts and the page of metrics name what a process really exposes, with the labels that it has."""

from __future__ import annotations

import ast
import json
import re
import shutil
import subprocess
from functools import cache
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from tests.deploy.chart.rendered_manifests import CHART
from tests.deploy.watching.dashboards import render_dashboards
from tests.deploy.watching.metric_catalogue import collect_catalogue
from tests.deploy.watching.metric_page import page

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

ROOT = CHART.parents[2]
RUNBOOKS = ROOT / "docs" / "runbooks"
ALERTS = CHART / "files" / "alerts.yaml"
EXPOSING_MODULES = {
    "fleet/agent/metrics.py",
    "fleet/reporting/metrics.py",
    "kafka/reporting/metrics.py",
    "kafka/reporting/operator_metrics.py",
    "nodes/reporting/metrics/families.py",
    "operator/metrics.py",
    "tidb/reporting/metrics.py",
}
"""The modules that make metrics: the catalogue collects them all."""
WORDS = frozenset(
    {"by", "and", "on", "time", "max", "min", "sum", "count", "rate", "increase", "histogram_quantile", "le"}
)
OF_PROMETHEUS = frozenset({"instance", "job", "le"})


@cache
def find_labels() -> dict[str, frozenset[str]]:
    """The labels of each series."""
    return {
        series: frozenset(metric.labels) | OF_PROMETHEUS
        for metrics in collect_catalogue().values()
        for metric in metrics
        for series in metric.list_series()
    }


def read_alerts() -> list[dict[str, Any]]:
    (group,) = yaml.safe_load(ALERTS.read_text())["groups"]
    rules: list[dict[str, Any]] = group["rules"]
    return rules


def list_queries() -> Iterator[tuple[str, str]]:
    """Queries of dashboards and alerts, each with the text that shows its labels."""
    for rule in read_alerts():
        shown = " ".join(re.findall(r"\$labels\.(\w+)", str(rule["annotations"])))
        yield rule["expr"], shown
    for path in sorted((CHART / "files" / "dashboards").glob("*.json")):
        for panel in json.loads(path.read_text())["panels"]:
            for target in panel["targets"]:
                yield target["expr"], " ".join(re.findall(r"{{(\w+)}}", target["legendFormat"]))


@pytest.mark.parametrize(("query", "shown"), list(list_queries()))
def test_a_query_names_metrics_and_labels_that_exist(query: str, shown: str):
    labels = find_labels()
    without_text = re.sub(r'"[^"]*"|\[\w+\]', "", query)
    named = {word for word in re.findall(r"[a-z][a-z_]*\w*", without_text) if word not in WORDS}
    metrics = {word for word in named if word in labels}
    assert metrics
    known = frozenset[str]().union(*(labels[metric] for metric in metrics))
    assert named - metrics - known == set()
    assert set(shown.split()) <= known


@pytest.mark.parametrize(("name", "text"), list(render_dashboards().items()))
def test_a_dashboard_is_written_as_it_is_defined(name: str, text: str):
    assert (CHART / "files" / "dashboards" / name).read_text() == text, "make render"


def test_the_page_of_metrics_lists_all_that_exist():
    written = (ROOT / "docs/reference/metrics.md").read_text()
    assert written == page(), "python -m tests.deploy.watching.metric_page > docs/reference/metrics.md"


def test_no_other_module_makes_metrics():
    found = {path.relative_to(ROOT / "src/plimsoll").as_posix() for path in _list_modules() if _makes_metrics(path)}
    assert found == EXPOSING_MODULES


def _list_modules() -> Iterator[Path]:
    return (ROOT / "src/plimsoll").rglob("*.py")


def _makes_metrics(path: Path) -> bool:
    text = path.read_text()
    if "prometheus_client" not in text:
        return False
    imports = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.ImportFrom)]
    return any((imported.module or "").split(".")[0] == "prometheus_client" for imported in imports)


def test_every_alert_has_a_runbook_and_a_unit_test():
    names = [rule["alert"] for rule in read_alerts()]
    assert len(names) == len(set(names))
    assert {path.stem for path in RUNBOOKS.glob("Plimsoll*.md")} == set(names)
    tested = {
        test["name"] for test in yaml.safe_load((ROOT / "tests/deploy/watching/alerts_test.yaml").read_text())["tests"]
    }
    assert tested == set(names)
    index = (RUNBOOKS / "README.md").read_text()
    for rule in read_alerts():
        assert f"({rule['alert']}.md)" in index
        assert rule["annotations"]["runbook"] == f"docs/runbooks/{rule['alert']}.md"
        assert set(rule["annotations"]) == {"summary", "description", "runbook"}


def need_promtool() -> str:
    found = shutil.which("promtool")
    if found is None:
        pytest.skip("promtool is not installed: apt-get install prometheus")
    return found


def test_promtool_accepts_the_rules_and_every_alert_fires_when_it_should(tmp_path: Path):
    promtool = need_promtool()
    checked = subprocess.run([promtool, "check", "rules", str(ALERTS)], capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    rules = yaml.safe_load(ALERTS.read_text())
    for rule in rules["groups"][0]["rules"]:
        del rule["annotations"]  # the unit tests compare names, labels and times, not sentences
    (tmp_path / "alerts-without-annotations.yaml").write_text(yaml.safe_dump(rules))
    shutil.copy(ROOT / "tests/deploy/watching/alerts_test.yaml", tmp_path)
    run = [promtool, "test", "rules", "alerts_test.yaml"]
    tested = subprocess.run(run, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert tested.returncode == 0, tested.stdout + tested.stderr
