"""What `plimsoll up` says first, and what keeps it from starting. Running ones: tests/e2e/up; the parts: test_app."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import structlog

from plimsoll.app.up import UpStatus
from plimsoll.cli.commands.up import format_first_screen
from plimsoll.cli.shared.logs import log_sentences_to_stderr
from tests.cli.runner import plimsoll

if TYPE_CHECKING:
    from tests.golden.reviewed_sentences import ReviewedSentences


def up(ready: int, wanted: int, *, data: str = "/home/me/.plimsoll") -> UpStatus:
    return UpStatus("https://127.0.0.1:6443", Path(data, "kubeconfig"), nodes_ready=ready, nodes_expected=wanted)


@pytest.mark.parametrize(
    ("ready", "wanted", "reported"),
    [
        (3, 3, "3 nodes, ready"),
        (1, 1, "1 node, ready"),
        (0, 0, "no nodes yet"),
        (0, 1, "0 of 1 node ready"),
        (3, 5, "3 of 5 nodes ready"),
    ],
)
def test_it_says_what_runs(ready: int, wanted: int, reported: str):
    assert f"on this machine: {reported}.\n" in format_first_screen(up(ready, wanted))


def test_it_names_those_that_are_not_ready_and_why():
    waiting = up(6, 8)._replace(waiting_for=("workers-2: still booting", "workers-7: out of stock"))
    assert (
        "6 of 8 nodes ready.\n  not ready: workers-2: still booting\n  not ready: workers-7: out of stock\nNothing"
        in format_first_screen(waiting)
    )


def test_of_many_that_are_not_ready_it_names_the_first():
    waiting = up(0, 100)._replace(waiting_for=tuple(f"workers-{number}: still booting" for number in range(100)))
    screen = format_first_screen(waiting)
    assert screen.count("still booting") == 5
    assert "  and 95 more: kubectl get nodes,machines\n" in screen


def test_it_says_where_it_is_and_what_to_type():
    running = up(3, 3)._replace(fleet="http://127.0.0.1:8000", ocm="http://127.0.0.1:9100")
    lines = format_first_screen(running).splitlines()
    assert lines[0] == "ready at https://127.0.0.1:6443"
    assert "  export KUBECONFIG=/home/me/.plimsoll/kubeconfig" in lines
    assert sum(line.startswith("  kubectl ") for line in lines) == 3
    assert any("http://127.0.0.1:8000" in line and "http://127.0.0.1:9100" in line for line in lines)
    assert "Fleet" not in format_first_screen(up(3, 3))
    assert max(len(line) for line in lines) <= 90


def test_a_path_with_spaces_can_be_typed_off():
    assert "export KUBECONFIG='/my data/kubeconfig'\n" in format_first_screen(up(3, 3, data="/my data"))


@pytest.mark.parametrize(
    "arguments",
    [["--port-base", "59600"], ["--port-base", "-1"], ["--nodes", "-1"], ["--nodes", "many"], ["--data"]],
)
def test_options_that_make_no_sense(arguments: list[str]):
    ended = plimsoll("up", *arguments)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert arguments[0] in ended.stderr


@pytest.mark.parametrize("data", ["", "."])
def test_keys_are_not_strewn_among_other_files(data: str, reviewed: ReviewedSentences):
    ended = plimsoll("up", "--data", data)
    assert ended.returncode == 2
    reviewed(ended.stderr)


def test_a_file_for_a_directory_is_reported_with_what_to_use_instead(tmp_path: Path):
    file = tmp_path / "file"
    file.touch()
    ended = plimsoll("up", "--data", str(file))
    assert ended.returncode == 2
    assert f"{file} is a file; --data must name a directory, e.g. {file}.d" in ended.stderr


def log_all(*, is_verbose: bool) -> None:
    log_sentences_to_stderr(is_verbose=is_verbose)
    log = structlog.get_logger()
    log.info("service.started", service="informer")
    log.info("reconcile.done", controller="cloud", key="the cloud", summary="2 machines created")
    log.info("reconcile.done", controller="cloud", summary="")
    log.info("reconcile.done", controller="garbage-collector", summary="deleted a pod")
    log.info("loop.done", number=4, summary="scaled up workers 3->4 for 2 pods")
    log.info("reconcile.done", controller="tidb-autoscaler", summary="prod/as1 tikv: no change")
    log.info("cluster.reconciled", summary="kafka/kafka/c: ScalingUp")
    log.warning("planner.refused", component="tikv", detail="too young")
    log.warning("lease.lost", lease_name="x", problem="no answer")


def test_stderr_gets_a_sentence_per_loop_iteration_and_no_raw_events(capsys: pytest.CaptureFixture[str]):
    log_all(is_verbose=False)
    reported = capsys.readouterr().err.splitlines()
    assert all(re.match(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC ", line) for line in reported)
    assert [line.partition(" UTC ")[2] for line in reported] == [
        "cloud: 2 machines created",
        "nodes: scaled up workers 3->4 for 2 pods",
        "tidb: prod/as1 tikv: no change",
        "kafka: kafka/kafka/c: ScalingUp",
        "warning: lease lost (lease name x): no answer",
    ]


def test_stderr_gets_all_events_on_request(capsys: pytest.CaptureFixture[str]):
    log_all(is_verbose=True)
    assert len(capsys.readouterr().err.splitlines()) == 9


def test_it_says_where_metrics_health_and_plans_are():
    lines = format_first_screen(up(3, 3)._replace(pages="http://127.0.0.1:8085")).splitlines()
    assert "Metrics, health and plans: http://127.0.0.1:8085 (/metrics, /healthz, /plan, /explain)." in lines
    assert max(len(line) for line in lines) <= 90


def test_it_says_where_the_servers_of_tidb_and_kafka_answer():
    with_servers = up(3, 3)._replace(
        planner="http://127.0.0.1:9092", pd="http://127.0.0.1:12379", cruise_control="http://127.0.0.1:9091"
    )
    lines = format_first_screen(with_servers).splitlines()
    assert "TiDB planner at http://127.0.0.1:9092, PD at http://127.0.0.1:12379," in lines
    assert "Cruise Control's API of Kafka clusters at http://127.0.0.1:9091 (token: admin.token)." in lines
    assert max(len(line) for line in lines) <= 90
    assert "TiDB planner" not in format_first_screen(up(3, 3))
