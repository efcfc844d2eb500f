"""How `plimsoll why` and `plimsoll journal` are called; what they print is tested in tests/journal."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from plimsoll.core.plans import NotDone, Outcome, Reason, Ref, Result
from plimsoll.journal.entries import Entry
from plimsoll.journal.journal_file import JOURNAL_FILE, JournalFile
from plimsoll.journal.last_plans import build_last_plans
from plimsoll.kube.errors import NotSent
from plimsoll.objects.custom_kinds import OUR_KINDS
from tests.cli.commands.test_doctor import HEAVY
from tests.cli.runner import plimsoll
from tests.journal.builders import done, failed, grow, left, plan
from tests.kube.embedded_api import EmbeddedApi
from tests.objects.crds.kafka_definitions import list_our_definitions

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.golden.reviewed_sentences import ReviewedSentences

GPU = Ref(kind="nodegroup", name="projects/p/gpu")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Three entries: a group grows, fails to grow, and pods are left."""
    directory = tmp_path / "data"
    journal = JournalFile(directory / JOURNAL_FILE)
    journal.append(plan(1, seconds=0), (done(),))
    journal.append(plan(2, seconds=60, not_done=(left("web-0", "web-1"),)), (failed("no quota"),))
    journal.append(plan(3, seconds=120, subsystem="kafka", actions=(grow(GPU),)))
    journal.close()
    return directory


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[EmbeddedApi]:
    """What commands find when they ask a cluster."""
    with EmbeddedApi(kinds=OUR_KINDS) as world:
        asked: dict[str, Any] = {}

        def run_with_client(connection: Any, work: Any, **_more: Any) -> Any:
            asked["connection"] = connection
            return world.do(work(world.client))

        monkeypatch.setattr("plimsoll.cli.journal.why.run_with_client", run_with_client)
        yield world


def keep_in_cluster(world: EmbeddedApi, *entries: Entry, name: str = "plimsoll-nodes-last-plans") -> None:
    body = {"metadata": {"name": name}, "data": build_last_plans({}, entries)}
    world.made("/api/v1/namespaces/kube-system/configmaps", {"apiVersion": "v1", "kind": "ConfigMap", **body})


def write_kubeconfig(path: Path, server: str) -> Path:
    path.parent.mkdir(exist_ok=True)
    context = {"name": "c", "context": {"cluster": "c", "user": "u"}}
    body = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": {"server": server}}],
        "contexts": [context],
        "users": [{"name": "u", "user": {"token": "t"}}],
        "current-context": "c",
    }
    path.write_text(yaml.safe_dump(body))
    return path


@pytest.fixture
def folder(data: Path, tmp_path: Path) -> Path:
    """A folder in which `plimsoll up` ran."""
    (tmp_path / "folder").mkdir()
    data.rename(tmp_path / "folder" / ".plimsoll")
    write_kubeconfig(tmp_path / "folder" / ".plimsoll" / "kubeconfig", "https://127.0.0.1:6443")
    return tmp_path / "folder"


# ---- which cluster


@pytest.mark.usefixtures("world")
def test_the_journal_of_another_cluster_than_the_chosen_one_does_not_answer(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reviewed: ReviewedSentences
):
    monkeypatch.setenv("KUBECONFIG", str(write_kubeconfig(tmp_path / "other", "https://127.0.0.1:7443")))
    asked = plimsoll("why", "pod/default/web-0", cwd=folder)
    assert (asked.returncode, asked.stdout) == (3, "")
    listed = plimsoll("journal", cwd=folder)
    assert listed.returncode == 0
    reviewed(asked.stderr.splitlines()[0], *listed.stderr.splitlines())
    assert plimsoll("journal", "-o", "json", cwd=folder).stderr == ""
    assert "fits no machine type" in plimsoll("why", "pod/web-0", "--data", ".plimsoll", cwd=folder).stdout


@pytest.mark.parametrize("chosen", ["", ".plimsoll/kubeconfig", "copy", "broken", "missing"])
def test_the_journal_of_the_chosen_cluster_answers(folder: Path, chosen: str, monkeypatch: pytest.MonkeyPatch):
    write_kubeconfig(folder / "copy", "https://127.0.0.1:6443")
    (folder / "broken").write_text("[")
    monkeypatch.setenv("KUBECONFIG", chosen)
    asked = plimsoll("why", "pod/default/web-0", cwd=folder)
    assert (asked.returncode, asked.stderr) == (0, "")
    assert (plimsoll("journal", cwd=folder).stderr) == ""


def test_a_journal_beside_the_chosen_kubeconfig_answers(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    tried = write_kubeconfig(tmp_path / ".plimsoll-kafka" / "kubeconfig", "https://127.0.0.1:7443")
    journal = JournalFile(tried.with_name(JOURNAL_FILE))
    journal.append(plan(1, seconds=0, subsystem="kafka", actions=(grow(GPU),)))
    journal.close()
    monkeypatch.setenv("KUBECONFIG", str(tried))
    assert plimsoll("why", "pod/default/web-0", cwd=folder).returncode == 3
    assert "kafka" in plimsoll("journal", cwd=folder).stdout
    assert "nodes" not in plimsoll("journal", cwd=folder).stdout


# ---- objects without a decision


@pytest.fixture
def of_kafka(world: EmbeddedApi, tmp_path: Path) -> Path:
    """A folder of a cluster with the quiet Kafka kafka/quiet, and a journal that names kafka/my-cluster."""
    world.namespace("kafka")
    for definition in list_our_definitions():
        world.made("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition)
    quiet = {"apiVersion": "kafka.strimzi.io/v1", "kind": "Kafka", "metadata": {"name": "quiet"}, "spec": {"kafka": {}}}
    world.made("/apis/kafka.strimzi.io/v1/namespaces/kafka/kafkas", quiet)
    directory = tmp_path / "kafka"
    write_kubeconfig(directory / "kubeconfig", "https://127.0.0.1:1")
    journal = JournalFile(directory / JOURNAL_FILE)
    named = Ref(kind="kafka", namespace="kafka", name="my-cluster")
    waits = NotDone(what="waits", about=(named,), reason=Reason(code="ScalingUp", message="broker 3 is not ready"))
    journal.append(plan(1, seconds=0, subsystem="kafka", actions=(), not_done=(waits,)))
    journal.close()
    return directory


@pytest.mark.parametrize("asked", ["kafka/my-cluster", "kafka/kafka/quiet", "kafka/kafka/missing", "broker/9"])
def test_an_object_without_a_decision_is_quiet_missing_or_named_otherwise(
    of_kafka: Path, asked: str, reviewed: ReviewedSentences
):
    ended = plimsoll("why", asked, "--data", of_kafka)
    assert (ended.returncode, ended.stdout) == (3, "")
    reviewed(ended.stderr.splitlines()[0])


def test_a_server_that_does_not_answer_says_nothing_about_an_object(of_kafka: Path, monkeypatch: pytest.MonkeyPatch):
    def fail(*_given: object, **_more: object) -> None:
        raise NotSent("no route")

    monkeypatch.setattr("plimsoll.cli.journal.why.run_with_client", fail)
    ended = plimsoll("why", "kafka/kafka/missing", "--data", of_kafka)
    assert (ended.returncode, "exist" in ended.stderr.splitlines()[0]) == (3, False)


# ---- why


def test_a_pod_is_reported_with_its_reason(data: Path):
    ended = plimsoll("why", "pod/default/web-0", "--data", data)
    assert ended.returncode == 0
    first, when, *rest = ended.stdout.splitlines()
    assert first == "pod/default/web-0"
    assert when.startswith("2026-01-01 12:01:00 UTC (")
    assert when.endswith("), nodes, entry 2")
    assert rest == ["  left pending (and 1 more like it)", "    fits no machine type"]


def test_the_newest_story_comes_first_and_as_many_as_asked_for(data: Path):
    reported = plimsoll("why", "nodegroup/batch", "--data", data).stdout
    assert reported.index("entry 2") < reported.index("entry 1")
    assert "failed: no quota" in reported
    assert "grow size=5: done" in reported
    assert "entry 1" not in plimsoll("why", "nodegroup/batch", "--data", data, "--limit", "1").stdout


@pytest.mark.parametrize("written", ["pod/web-0", "po/default/web-0", "PODS/web-0"])
def test_kinds_have_short_names_and_the_namespace_may_be_left_out(data: Path, written: str):
    assert "fits no machine type" in plimsoll("why", written, "--data", data).stdout


@pytest.mark.parametrize("written", ["kafkanodepool/kafka/p", "knp/kafka/p", "kafkanodepools.kafka.strimzi.io/kafka/p"])
def test_node_pools_of_kafka_are_a_kind(data: Path, written: str):
    ended = plimsoll("why", written, "--data", data)
    assert (ended.returncode, "nothing is known about kafkanodepool/kafka/p" in ended.stderr) == (3, True)


def test_the_namespace_may_be_an_option(data: Path, reviewed: ReviewedSentences):
    assert plimsoll("why", "pod/web-0", "-n", "default", "--data", data).returncode == 0
    assert plimsoll("why", "pod/web-0", "-n", "other", "--data", data).returncode == 3
    reviewed(plimsoll("why", "pod/default/web-0", "-n", "x", "--data", data).stderr)


def test_ids_of_groups_may_hold_slashes(data: Path):
    assert "grow size=5: planned" in plimsoll("why", "nodegroup/projects/p/gpu", "--data", data).stdout


def test_programs_get_all_of_it(data: Path):
    (story,) = json.loads(plimsoll("why", "pod/web-0", "--data", data, "-o", "json").stdout)
    assert story["ref"] == {"kind": "pod", "namespace": "default", "name": "web-0"}
    assert story["notDone"][0]["reason"]["code"] == "NoFit"
    assert yaml.safe_load(plimsoll("why", "pod/web-0", "--data", data, "-o", "yaml").stdout) == [story]
    assert plimsoll("why", "nodegroup/batch", "--data", data, "-o", "name").stdout == "entry/2\nentry/1\n"


@pytest.mark.parametrize("written", ["web-0", "pod/", "pod/a/b/c", "pod//b", "pod/a/", "service/x"])
def test_a_name_that_cannot_be_is_reported(data: Path, written: str):
    ended = plimsoll("why", written, "--data", data)
    assert ended.returncode == 2
    assert ended.stderr.startswith("error: ")


@pytest.mark.parametrize("written", ["default/web-0", "pod.v1/web-0", "pods/default/web-0"])
def test_names_that_other_commands_print_are_accepted(data: Path, written: str):
    assert "fits no machine type" in plimsoll("why", written, "--data", data).stdout


def test_kind_and_name_may_be_two_words(data: Path):
    assert "fits no machine type" in plimsoll("why", "pod", "web-0", "--data", data).stdout


def test_an_entry_is_accepted_as_it_is_printed(data: Path):
    (name,) = plimsoll("why", "pod/web-0", "--data", data, "-o", "name").stdout.split()
    assert plimsoll("journal", name, "--data", data).stdout == plimsoll("journal", "2", "--data", data).stdout
    assert plimsoll("why", name, "--data", data).stdout == plimsoll("journal", "2", "--data", data).stdout


def test_a_misspelled_kind_is_reported_with_the_nearest(data: Path, reviewed: ReviewedSentences):
    ended = plimsoll("why", "deploymnt/web", "--data", data)
    assert ended.returncode == 2
    reviewed(ended.stderr)


@pytest.mark.parametrize(
    ("written", "pods"), [("deploy/web", 2), ("deployment.apps/web", 2), ("rs/default/web-5f7", 2), ("deploy/w", 0)]
)
def test_a_workload_is_reported_by_its_pods(tmp_path: Path, written: str, pods: int, reviewed: ReviewedSentences):
    found = NotDone(
        what="stays unschedulable",
        about=tuple(Ref(kind="pod", namespace="default", name=name) for name in ("web-5f7-a", "web-5f7-b", "other-0")),
        reason=Reason(code="NoFit", message="fits no machine type"),
        concerns=tuple(
            Ref(kind=kind, namespace="default", name=name)
            for kind, name in (("deployment", "web"), ("replicaset", "web-5f7"), ("statefulset", "other"))
        ),
    )
    journal = JournalFile(tmp_path / JOURNAL_FILE)
    journal.append(plan(1, actions=(), not_done=(found,)))
    journal.close()
    ended = plimsoll("why", written, "--data", tmp_path)
    if pods:
        assert ended.stdout.splitlines()[2:] == ["  2 of its pods stay unschedulable", "    fits no machine type"]
    else:
        assert ended.returncode == 3
        reviewed(ended.stderr)


def test_actions_that_were_held_back_do_not_count_as_done(tmp_path: Path):
    journal = JournalFile(tmp_path / JOURNAL_FILE)
    paused = Reason(code="Paused", message="paused: change freeze")
    journal.append(plan(1), (Outcome(action=grow(), result=Result.HELD_BACK, reason=paused),))
    journal.close()
    _, row = plimsoll("journal", "--data", tmp_path).stdout.splitlines()
    assert row.split()[6:9] == ["0", "1", "0"]
    assert row.endswith("nodes: nothing done; held back: grow x1")
    assert "held back: paused: change freeze" in plimsoll("why", "nodegroup/batch", "--data", tmp_path).stdout


@pytest.mark.parametrize(
    ("config", "reported"),
    [
        ({"metadata": {"annotations": {"plimsoll.io/paused": "freeze"}}}, "held back: paused: freeze"),
        ({"data": {"nodes": "dry-run: true"}}, "held back: dry run"),
    ],
)
def test_a_cluster_that_may_not_act_says_so_instead_of_nothing(world: EmbeddedApi, config: Any, reported: str):
    body = {"apiVersion": "v1", "kind": "ConfigMap", **config}
    body["metadata"] = {"name": "plimsoll", **config.get("metadata", {})}
    world.made("/api/v1/namespaces/kube-system/configmaps", body)
    ended = plimsoll("why", "pod/web-0", "--context", "prod")
    assert ended.returncode == 0
    assert reported in ended.stdout


def test_nothing_known_is_exit_3_with_what_to_do(data: Path):
    ended = plimsoll("why", "pod/default/nobody", "--data", data)
    assert ended.returncode == 3
    assert "nothing is known about pod/default/nobody" in ended.stderr
    assert "kubectl describe pod" in ended.stderr


def test_no_journal_is_exit_3_with_what_to_do(tmp_path: Path):
    ended = plimsoll("why", "node/n1", "--data", tmp_path / "none", "-o", "json")
    assert ended.returncode == 3
    error = json.loads(ended.stderr)["error"]
    assert error["exitCode"] == 3
    assert "plimsoll up" in error["hint"]


def test_a_file_that_is_no_journal_is_reported(tmp_path: Path, reviewed: ReviewedSentences):
    (tmp_path / JOURNAL_FILE).write_text("no database " * 100)
    ended = plimsoll("why", "node/n1", "--data", tmp_path)
    assert ended.returncode == 2
    reviewed(ended.stderr)


def test_a_cluster_shows_the_last_report(world: EmbeddedApi):
    keep_in_cluster(world, Entry(number=2, plan=plan(2, not_done=(left("web-0"),)), outcomes=(failed("no quota"),)))
    ended = plimsoll("why", "nodegroup/batch", "--kubeconfig", "x")
    assert ended.returncode == 0, ended.stderr
    assert "  grow size=5: failed: no quota\n    41 pods wait\n" in ended.stdout
    assert plimsoll("why", "pod/web-0", "--context", "c", "-o", "name").stdout == "pod/default/web-0\n"


def test_a_cluster_is_asked_where_there_is_no_journal(world: EmbeddedApi, tmp_path: Path):
    keep_in_cluster(world, Entry(number=2, plan=plan(2)))
    assert plimsoll("why", "nodegroup/batch", cwd=tmp_path).returncode == 0


def test_what_a_cluster_does_not_know_is_exit_3(world: EmbeddedApi):
    ended = plimsoll("why", "node/n1", "--kubeconfig", "x")
    assert ended.returncode == 3
    assert "there is no ConfigMap kube-system/plimsoll-nodes-last-plans" in ended.stderr
    keep_in_cluster(world, Entry(number=2, plan=plan(2)))
    ended = plimsoll("why", "node/n1", "--kubeconfig", "x")
    assert ended.returncode == 3
    assert "nothing is known about node/n1" in ended.stderr


def test_tidb_autoscalers_report_in_an_object_of_their_own(world: EmbeddedApi):
    held = Ref(kind="tidbclusterautoscaler", namespace="prod", name="as1")
    ended = plimsoll("why", "ta/prod/as1", "--kubeconfig", "x")
    assert ended.returncode == 3
    assert "there is no ConfigMap kube-system/plimsoll-tidb-last-plans" in ended.stderr
    reported = NotDone(what="tikv left as it is", about=(held,), reason=Reason(code="CoolingDown", message="not yet"))
    entry = Entry(number=1, plan=plan(1, subsystem="tidb", actions=(), not_done=(reported,)))
    keep_in_cluster(world, entry, name="plimsoll-tidb-last-plans")
    ended = plimsoll("why", "ta/prod/as1", "--kubeconfig", "x")
    assert "tikv left as it is\n    not yet\n" in ended.stdout


def test_a_cluster_that_cannot_be_reached_is_exit_4(monkeypatch: pytest.MonkeyPatch):
    def run_with_client(*_arguments: Any, **_more: Any) -> Any:
        raise NotSent("https://x: refused")

    monkeypatch.setattr("plimsoll.cli.journal.why.run_with_client", run_with_client)
    assert plimsoll("why", "node/n1", "--kubeconfig", "x").returncode == 4


# ---- journal


def test_entries_are_lines_newest_first(data: Path):
    head, *rows = plimsoll("journal", "--data", data).stdout.splitlines()
    assert head.split() == ["NUMBER", "TIME", "SUBSYSTEM", "SNAPSHOT", "DONE", "HELD", "BACK", "LEFT", "SENTENCE"]
    assert [row.split()[0] for row in rows] == ["3", "2", "1"]
    assert rows[1].endswith("nodes: nothing done; failed: grow x1; 2 unchanged")


@pytest.mark.parametrize(
    ("options", "numbers"),
    [
        (["--subsystem", "kafka"], [3]),
        (["--about", "pod/web-1"], [2]),
        (["--limit", "2"], [3, 2]),
        (["--limit", "0"], [3, 2, 1]),
        (["--since", "2026-01-01T12:01:00Z"], [3, 2]),
        (["--until", "2026-01-01T12:01:00Z", "--since", "2026-01-01T12:00:30Z"], [2]),
        (["--since", "1h"], []),
    ],
)
def test_entries_are_chosen_by_time_subsystem_and_thing(data: Path, options: list[str], numbers: list[int]):
    reported = plimsoll("journal", "--data", data, *options, "-o", "name")
    assert reported.stdout.splitlines() == [f"entry/{number}" for number in numbers]
    assert reported.returncode == 0


def test_no_entry_is_reported_as_such(data: Path, reviewed: ReviewedSentences):
    ended = plimsoll("journal", "--data", data, "--since", "1h")
    assert ended.stdout == ""
    reviewed(ended.stderr)


def test_one_entry_is_reported_in_full(data: Path):
    ended = plimsoll("journal", "2", "--data", data)
    assert "+ grow nodegroup/batch size=5: 41 pods wait [failed: no quota]" in ended.stdout
    assert "- pod/default/web-0, pod/default/web-1 left pending: fits no machine type" in ended.stdout
    assert json.loads(plimsoll("journal", "2", "--data", data, "-o", "json").stdout)["number"] == 2


def test_an_entry_that_is_not_there_is_exit_3(data: Path):
    ended = plimsoll("journal", "9", "--data", data)
    assert ended.returncode == 3
    assert "the newest is 3" in ended.stderr


@pytest.mark.parametrize("time", ["soon", "1x", "2026-13-01T00:00:00Z", "2026-01-01T00:00:00"])
def test_a_time_that_cannot_be_read_is_reported_with_the_option(data: Path, time: str):
    ended = plimsoll("journal", "--data", data, "--since", time)
    assert ended.returncode == 2
    assert ended.stderr.startswith("error: --since: ")


@pytest.mark.parametrize("command", ["why", "journal", "record", "replay", "pause", "resume", "nodes status"])
def test_help_has_examples_and_costs_nothing_heavy(command: str):
    words = [*command.split(), "--help"]
    script = f"""
import sys
from plimsoll.cli.main import main
try:
    main({words!r})
except SystemExit:
    print([name for name in {HEAVY!r} if name in sys.modules], file=sys.stderr)
"""
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert f"Examples:\n    plimsoll {command}" in ended.stdout
    assert ended.stderr.strip() == "[]"


def test_help_names_the_kinds_of_tidb_too():
    reported = " ".join(plimsoll("why", "--help").stdout.replace("│", " ").split())
    assert "tidbclusterautoscaler (ta) or tidbcluster (tc)" in reported
