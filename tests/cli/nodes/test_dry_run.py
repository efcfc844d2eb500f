"""A dry run reads the options of the autoscaler that runs in the cluster; flags take precedence."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.cli.runner import plimsoll
from tests.kube.embedded_api import EmbeddedApi

if TYPE_CHECKING:
    from collections.abc import Iterator

    from plimsoll.app.node_autoscaling import NodeAutoscalingSettings
    from tests.golden.reviewed_sentences import ReviewedSentences

RUNNING = {"max-cpu": 1000, "node-autoprovisioning": True, "address": ":8085", "dry-run": False}


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[dict[str, Any]]]:
    """The options of each autoscaler that a command would start, beside one that runs."""
    options: list[dict[str, Any]] = []

    def run(settings: NodeAutoscalingSettings, _once: bool, _output: object) -> None:
        options.append(dict(settings.options))

    with EmbeddedApi() as world:
        annotations = {"plimsoll.io/options": json.dumps(RUNNING)}
        metadata = {"name": "cluster-autoscaler-status", "annotations": annotations}
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}
        world.made("/api/v1/namespaces/kube-system/configmaps", body)
        monkeypatch.setattr(
            "plimsoll.cli.nodes.active_options.run_with_client",
            lambda _connection, work, **_more: world.do(work(world.client)),
        )
        monkeypatch.setattr("plimsoll.cli.nodes.run._run", run)
        yield options


def test_a_dry_run_reads_the_options_of_the_running_autoscaler(
    started: list[dict[str, Any]], reviewed: ReviewedSentences
):
    ended = plimsoll("run", "nodes", "--dry-run", "--once", "--max-cpu=20", "-s", "https://127.0.0.1:1")
    assert ended.returncode == 0, ended.stderr
    assert started == [{"max-cpu": "20", "node-autoprovisioning": True, "dry-run": "true"}]
    reviewed(ended.stderr)


def test_an_autoscaler_that_acts_has_the_options_it_is_given(started: list[dict[str, Any]]):
    assert plimsoll("run", "nodes", "--once", "--max-cpu=20", "-s", "https://127.0.0.1:1").returncode == 0
    assert started == [{"max-cpu": "20"}]
