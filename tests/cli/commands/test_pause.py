"""`plimsoll pause`, `resume`, `nodes status` and `nodes configure` as people type them, on a server in memory."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from plimsoll.nodes.cluster_state.registry import ClusterState
from plimsoll.nodes.config.configure import RuntimeConfig
from plimsoll.nodes.reporting.status.configmap import StatusConfigMapWriter
from plimsoll.nodes.reporting.status.reader import build_status_report
from plimsoll.objects.api.core import ConfigMap
from plimsoll.objects.api.meta import ObjectMeta
from tests.cli.runner import CommandResult, plimsoll
from tests.kube.embedded_api import EmbeddedApi
from tests.nodes.cluster_state import builders
from tests.nodes.planning.builders import NOON, policy
from tests.nodes.reporting.loop_results import later, loop_result

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.golden.reviewed_sentences import ReviewedSentences

MAPS = "/api/v1/namespaces/kube-system/configmaps"


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[EmbeddedApi]:
    with EmbeddedApi() as world:

        def with_client(_connection: Any, work: Any, **_more: Any) -> Any:
            return world.do(work(world.client))

        for module in ("commands.pause", "nodes.nodes"):
            monkeypatch.setattr(f"plimsoll.cli.{module}.run_with_client", with_client)
        yield world


def status_is_written(world: EmbeddedApi, *, ago_s: float = 3, **options: Any) -> None:
    now = datetime.now(UTC) - timedelta(seconds=ago_s)
    state = ClusterState(policy())
    state.observe(builders.world(2, *builders.ready_nodes(2)), now)
    reported = later(loop_result(health=state.assess_health(now), policy=policy(**options)), at=now)
    assert world.do(StatusConfigMapWriter(world.client).write(reported)) is None


def configure(*words: str) -> CommandResult:
    return plimsoll("nodes", "configure", *words)


# ---- pause and resume


def test_a_pause_with_its_reason_and_its_end(world: EmbeddedApi, reviewed: ReviewedSentences):
    ended = plimsoll("pause", "--reason", "maintenance, Ada")
    assert ended.returncode == 0
    reviewed(ended.stdout)
    notes = world.ask("GET", f"{MAPS}/plimsoll")["metadata"]["annotations"]
    assert notes == {"plimsoll.io/paused": "maintenance, Ada"}
    reviewed(plimsoll("resume").stdout)
    reviewed(plimsoll("resume").stdout)


def test_json_output_has_the_previous_state(world: EmbeddedApi):
    plimsoll("pause")
    reported = json.loads(plimsoll("pause", "--reason", "b", "-o", "json").stdout)
    assert reported == {"namespace": "kube-system", "paused": "b", "before": "true"}


def test_a_namespace_that_is_not_there_is_reported(world: EmbeddedApi):
    ended = plimsoll("pause", "-n", "nowhere")
    assert ended.returncode == 2
    assert "--namespace" in ended.stderr


# ---- status


def test_the_status_shows_groups_sizes_and_the_last_turn(world: EmbeddedApi):
    status_is_written(world)
    ended = plimsoll("nodes", "status")
    assert ended.returncode == 0
    assert ended.stderr == ""
    lines = ended.stdout.splitlines()
    assert lines[0].startswith("autoscaler   Running, Healthy, ")
    assert lines[1] == "held back    no"
    assert lines[2] == "nodes        2 of 2 ready"
    assert "last loop    nothing to do" in lines
    assert lines[-2].split()[:6] == ["NODE", "GROUP", "MIN", "TARGET", "MAX", "READY"]
    assert lines[-1].split() == ["g", "0", "2", "100", "2", "Healthy", "NoActivity", "0", "-"]


def test_a_pause_and_a_dry_run_hold_the_autoscaler_back(world: EmbeddedApi):
    status_is_written(world)
    plimsoll("pause", "--reason", "Ada")
    configure("--dry-run=true")
    assert "held back    paused: Ada, dry run\n" in plimsoll("nodes", "status").stdout


def test_an_old_status_is_warned_about(world: EmbeddedApi):
    status_is_written(world, ago_s=500)
    ended = plimsoll("nodes", "status")
    assert ended.returncode == 0
    assert "warning: the status is 500 s old" in ended.stderr or "501 s old" in ended.stderr
    assert json.loads(plimsoll("nodes", "status", "-o", "json").stdout)["stale"] is True


def test_a_long_scan_interval_makes_a_status_old_later(world: EmbeddedApi):
    status_is_written(world, ago_s=500, scan_interval="5m")
    assert plimsoll("nodes", "status").stderr == ""


def test_what_is_configured_and_not_used_is_warned_about(world: EmbeddedApi):
    status_is_written(world, max_cpu=10)
    configure("--max-cpu=20")
    reported = (
        "warning: max-cpu is configured as 20, and the last loop iteration ran with 10: that was before the change at "
    )
    assert reported in plimsoll("nodes", "status").stderr
    configure("--max-cpu=10")
    assert plimsoll("nodes", "status").stderr == ""


def test_what_the_autoscaler_did_not_take_is_distinguished_from_what_it_has_not_seen():
    now, notes = NOON, {"cluster-autoscaler.kubernetes.io/last-updated": "2026-01-01 11:59:55 +0000 UTC"}
    found = ConfigMap(metadata=ObjectMeta(annotations={**notes, "plimsoll.io/options": '{"max-cpu": 10}'}))

    def problems(seconds_ago: int | None, **options: Any) -> list[str]:
        when = None if seconds_ago is None else now - timedelta(seconds=seconds_ago)
        reported: list[str] = build_status_report(found, RuntimeConfig(options=options, configured_at=when), now=now)[
            "problems"
        ]
        return reported

    assert problems(60, **{"max-cpu": 10}) == []
    assert problems(2, **{"max-cpu": 20}) == [
        (
            "max-cpu is configured as 20, and the last loop iteration ran with 10: "
            "that was before the change at 11:59:58 UTC; the next one takes it up"
        )
    ]
    assert problems(60, **{"max-memory": 20}) == [
        (
            "max-memory is configured as 20, and the last loop iteration ran without it: "
            "although it was changed before, at 11:59:00 UTC: the autoscaler's log says why"
        )
    ]
    assert problems(None, **{"max-cpu": 20})[0].endswith(
        "the next one takes it up, or the autoscaler's log says why it cannot"
    )


def test_no_status_is_exit_3_with_what_to_do(world: EmbeddedApi):
    ended = plimsoll("nodes", "status")
    assert ended.returncode == 3
    assert "there is no ConfigMap kube-system/cluster-autoscaler-status" in ended.stderr
    assert "plimsoll run nodes" in ended.stderr


def test_names_are_those_of_groups(world: EmbeddedApi):
    status_is_written(world)
    assert plimsoll("nodes", "status", "-o", "name").stdout == "nodegroup/g\n"


@pytest.mark.parametrize(
    "text", ["", "- a", "{", "time: 5", "clusterWide: []\nnodeGroups: [1, {}]\n", "nodeGroups: {health: x}"]
)
def test_a_status_that_was_overwritten_is_no_reason_to_fail(text: str):
    report = build_status_report(ConfigMap(data={"status": text}), RuntimeConfig(), now=NOON)
    assert report["stale"] is True
    assert report["ageSeconds"] is None


def test_cluster_autoscalers_own_status_is_read():
    notes = {"cluster-autoscaler.kubernetes.io/last-updated": "2026-01-01 11:59:55.123456789 +0000 UTC"}
    backoff = {"status": "Backoff", "backoffInfo": {"errorCode": "QUOTA", "errorMessage": "no more"}}
    group = {"name": "g", "health": {"minSize": 1, "cloudProviderTarget": 2, "maxSize": 3}, "scaleUp": backoff}
    found = ConfigMap(
        metadata=ObjectMeta(annotations=notes),
        data={"status": yaml.safe_dump({"autoscalerStatus": "Running", "nodeGroups": [group]})},
    )
    report = build_status_report(found, RuntimeConfig(), now=NOON)
    assert (report["ageSeconds"], report["stale"]) == (5.0, False)
    (reported,) = report["groups"]
    assert (reported["min"], reported["target"], reported["max"], reported["backoff"]) == (1, 2, 3, "QUOTA: no more")


# ---- configure


def test_flags_are_written_and_the_difference_is_shown(world: EmbeddedApi):
    ended = configure("--enable-node-autoprovisioning", "--min-cpu", "4", "--max-memory=800", "--nodes=0:2:a")
    assert ended.returncode == 0, ended.stderr
    assert [line.split() for line in ended.stdout.splitlines()] == [
        ["FLAG", "BEFORE", "NOW"],
        ["--max-memory", "-", "800"],
        ["--min-cpu", "-", "4"],
        ["--node-autoprovisioning", "-", "true"],
        ["--nodes", "-", "0:2:a"],
    ]
    text = world.ask("GET", f"{MAPS}/plimsoll")["data"]["nodes"]
    assert yaml.safe_load(text) == {"max-memory": 800, "min-cpu": 4, "node-autoprovisioning": True, "nodes": "0:2:a"}
    assert configure("--show").stdout == text


def test_the_time_from_which_a_change_counts_is_reported(world: EmbeddedApi, reviewed: ReviewedSentences):
    reviewed(configure("--max-cpu=200").stderr)
    status_is_written(world, max_cpu=10)
    reviewed(configure("--max-cpu=20").stderr)
    assert configure("--max-cpu=20").stderr == ""


def test_a_misspelt_flag_with_its_value_is_what_is_wrong(world: EmbeddedApi):
    ended = configure("--max-cpuu", "3")
    assert ended.returncode == 2
    assert "max-cpuu: unknown option; did you mean max-cpu?" in ended.stderr
    assert "plimsoll run nodes" not in ended.stderr


def test_unset_and_nothing_changed(world: EmbeddedApi, reviewed: ReviewedSentences):
    configure("--max-cpu=4", "--max-memory=8")
    reported = json.loads(configure("--unset", "max-cpu", "-o", "json").stdout)
    assert reported["changed"] == [{"flag": "max-cpu", "before": 4, "after": None}]
    assert reported["options"] == {"max-memory": 8}
    assert configure("--max-memory=8").stdout == "nothing changed\n"
    assert configure("--unset", "max-memory").returncode == 0
    reviewed(configure("--show").stdout)


def test_every_mistake_is_reported_at_once_and_nothing_is_written(world: EmbeddedApi):
    ended = configure("--max-cpux=4", "--max-memory=much")
    assert ended.returncode == 2
    assert "max-cpux: unknown option; did you mean max-cpu?" in ended.stderr
    assert "max-memory: 'much' is not a whole number" in ended.stderr
    assert world.server.ask("GET", f"{MAPS}/plimsoll").status == 404


def test_options_of_the_running_autoscaler_count(world: EmbeddedApi):
    status_is_written(world, max_cpu=10)
    ended = configure("--min-cpu=20")
    assert ended.returncode == 2
    assert "min-cpu: is 20, above max-cpu, which is 10" in ended.stderr


def test_a_flag_that_is_read_at_the_start_only_is_refused(world: EmbeddedApi):
    ended = configure("--cloud-provider=clusterapi")
    assert ended.returncode == 2
    assert "--cloud-provider: is read at startup only" in ended.stderr


def test_a_flag_without_effect_is_warned_about(world: EmbeddedApi):
    assert "warning: --estimator has no effect" in configure("--estimator=binpacking").stderr


def test_no_flag_at_all_is_reported(world: EmbeddedApi, reviewed: ReviewedSentences):
    ended = configure()
    assert ended.returncode == 2
    reviewed(ended.stderr)
