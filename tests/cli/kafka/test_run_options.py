"""`plimsoll run kafka`: mistakes in options are named before anything is connected, and `--once` has exit codes."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from plimsoll.app.kafka.kafka_operator import ReconciledOnce
from plimsoll.core.plans import Reason
from plimsoll.kafka.reporting.cluster_reporter import ClusterResult
from plimsoll.objects.api.kafka import Kafka
from plimsoll.objects.api.meta import ObjectMeta
from plimsoll.operator.pause import DRY_RUN
from tests.cli.runner import plimsoll


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["--cruise-control-address", ":9090"], "give --users-file, so that clients must log in"),
        (["--cruise-control-address", "9090"], "'9090' is not HOST:PORT"),
        (["--cruise-control-address", "localhost:0", "--tls-cert", "x"], "--tls-cert and --tls-key belong together"),
        (
            ["--cruise-control-address", "localhost:0", "--rebalance-engine", "cruise-control"],
            "there is no engine to serve with --rebalance-engine=cruise-control",
        ),
        (["--cruise-control-address", "localhost:0", "--once"], "there is no engine to serve with --once"),
        (["--users-file", "users"], "--users-file has no effect without --cruise-control-address"),
        (["--tls-cert", "x"], "--tls-cert has no effect without --cruise-control-address"),
    ],
)
def test_options_of_the_served_engines_are_checked(arguments: list[str], problem: str):
    result = plimsoll("run", "kafka", "--server", "http://127.0.0.1:1", *arguments)
    assert result.returncode == 2
    assert problem in " ".join(result.stderr.split())


UNSEEN = Reason(code="KafkaUnavailable", message="the brokers cannot be seen: no route")
OTHER = Reason(code="NodeIdsOverlap", message="ranges overlap")
DRY = Reason(code=DRY_RUN, message="dry run")


@pytest.mark.parametrize(
    ("warning", "pause", "code", "sentence"),
    [
        (UNSEEN, None, 1, "nothing to rebalance: the brokers cannot be seen: no route"),
        (UNSEEN, DRY, 1, "the brokers cannot be seen: no route"),
        (OTHER, None, 0, "nothing to rebalance: ranges overlap"),
        (OTHER, DRY, 0, "there is nothing to do"),
    ],
)
def test_a_reconcile_that_could_not_see_the_brokers_it_needed_has_failed(
    warning: Reason, pause: Reason | None, code: int, sentence: str, monkeypatch: pytest.MonkeyPatch
):
    kafka = Kafka(metadata=ObjectMeta(name="c", namespace="kafka"))
    result = ClusterResult(kafka=kafka, at=datetime(2026, 1, 1, tzinfo=UTC), warnings=(warning,), pause=pause)
    results = ReconciledOnce(clusters=(result,), rebalances=())
    monkeypatch.setattr("plimsoll.cli.kafka.run.reconcile_once", lambda _process, _output: results)
    ended = plimsoll("run", "kafka", "--server", "http://127.0.0.1:1", "--once")
    assert (ended.returncode, ended.stdout) == (code, f"kafka/kafka/c: {sentence}\n")
