"""`plimsoll replay` on recordings, and how `plimsoll record` writes them; what is in them is tested in tests/nodes."""

from __future__ import annotations

import gzip
import json
import stat
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from msgspec import structs

from plimsoll.core.plans import Reason
from plimsoll.journal.recordings import read_recording, write_recording
from plimsoll.nodes.loop_result import LoopResult
from plimsoll.nodes.planning.scaledown.eligibility import ScaleDownState
from plimsoll.nodes.recording.replay import build_recording, replay_loop
from tests.cli.runner import CommandResult, plimsoll
from tests.nodes.planning.builders import policy
from tests.nodes.planning.scaledown.builders import NOON
from tests.nodes.recording.test_anonymising import ABOUT, SECRET, cluster

if TYPE_CHECKING:
    from pathlib import Path

    from tests.golden.reviewed_sentences import ReviewedSentences


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "cluster.json.gz"
    path.write_bytes(write_recording(build_recording(cluster(), policy(), ScaleDownState(), about=ABOUT, salt="s")))
    return path


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What the autoscaler of a cluster sees, and with which options it was asked."""
    turn = replay_loop(cluster(), policy(dry_run=True), ScaleDownState())
    asked: dict[str, Any] = {"turn": turn}

    def one_turn(_connection: Any, options: dict[str, Any]) -> LoopResult:
        asked["options"] = options
        found: LoopResult = asked["turn"]
        return found

    monkeypatch.setattr("plimsoll.cli.nodes.recording._run_one_loop", one_turn)
    monkeypatch.setattr("plimsoll.cli.nodes.recording.read_active_options", lambda *_: {"max-cpu": 10, "max-memory": 5})
    return asked


def changed(file: Path, **plan: Any) -> Path:
    recording = read_recording(file.read_bytes())
    file.write_bytes(write_recording(recording.with_part("plan", {**recording.get_part("plan"), **plan})))
    return file


def test_the_same_plan_is_exit_0(file: Path):
    ended = plimsoll("replay", file)
    assert ended.returncode == 0
    assert "the same plan, byte for byte, as recorded at 2026-01-01T12:00:00Z by Plimsoll 0" in ended.stdout


def test_another_plan_is_exit_1_and_shows_where(file: Path):
    ended = plimsoll("replay", changed(file, scaleUp={"helped": 7}))
    assert ended.returncode == 1
    assert "plan.scaleUp.helped" in ended.stdout
    assert "the plan differs from the recorded one in" in ended.stderr
    assert "recorded by Plimsoll 0" in ended.stderr


def test_json_output_has_all_differences(file: Path):
    ended = plimsoll("replay", changed(file, extra=1), "-o", "json")
    reported = json.loads(ended.stdout)
    assert reported["same"] is False
    assert reported["differences"] == [{"path": "plan.extra", "recorded": "1", "now": "(nothing)"}]
    assert reported["plan"]["scaleUp"]["helped"] == 2
    assert plimsoll("replay", file, "-o", "name").stdout == "plan.extra\n"


@pytest.mark.parametrize(
    "content",
    [b"", b"hello", gzip.compress(b"{}"), gzip.compress(b"[1]")[:-4]],
    ids=["empty", "plain", "no-format", "cut"],
)
def test_what_is_no_recording_is_exit_2_with_the_file(tmp_path: Path, content: bytes):
    path = tmp_path / "odd.gz"
    path.write_bytes(content)
    ended = plimsoll("replay", path)
    assert ended.returncode == 2
    assert str(path) in ended.stderr


def test_a_recording_without_a_plan_is_reported(file: Path, reviewed: ReviewedSentences):
    recording = read_recording(file.read_bytes())
    file.write_bytes(write_recording(replace_parts(recording, snapshot=recording.get_part("snapshot"))))
    ended = plimsoll("replay", file)
    assert ended.returncode == 2
    reviewed(ended.stderr)


def replace_parts(recording: Any, **parts: Any) -> Any:
    return structs.replace(recording, parts=parts)


def test_a_file_that_is_not_there_is_exit_2(tmp_path: Path):
    assert plimsoll("replay", tmp_path / "none").returncode == 2


# ---- record


def recorded(tmp_path: Path, *words: str) -> tuple[Path, CommandResult]:
    path = tmp_path / "out.json.gz"
    return path, plimsoll("record", "--out", path, *words)


def test_a_recording_hides_names_and_is_for_its_owner_only(seen: dict[str, Any], tmp_path: Path):
    path, ended = recorded(tmp_path)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout == f"{path}: 3 nodes, 1 pods, 2 pending, 1 groups; names are hidden\n"
    assert SECRET not in gzip.decompress(path.read_bytes()).decode()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert plimsoll("replay", path).returncode == 0


def test_two_recordings_have_no_name_in_common(seen: dict[str, Any], tmp_path: Path):
    path, _ = recorded(tmp_path)
    first = read_recording(path.read_bytes()).get_part("snapshot")["groups"][0]["id"]
    recorded(tmp_path)
    assert read_recording(path.read_bytes()).get_part("snapshot")["groups"][0]["id"] != first


def test_names_stay_where_that_is_asked_for(seen: dict[str, Any], tmp_path: Path):
    path, ended = recorded(tmp_path, "--keep-names", "-o", "json")
    assert json.loads(ended.stdout)["anonymised"] is False
    assert "secret-n0" in gzip.decompress(path.read_bytes()).decode()
    assert plimsoll("replay", path).returncode == 0


def test_options_are_those_in_force_then_the_files_then_those_typed(seen: dict[str, Any], tmp_path: Path):
    config = tmp_path / "flags.yaml"
    config.write_text("max-memory: 6\nmax-nodes-total: 7\n")
    recorded(tmp_path, "--config", str(config), "--max-nodes-total=8")
    assert seen["options"] == {
        "max-cpu": 10,
        "max-memory": 6,
        "max-nodes-total": "8",
        "namespace": "kube-system",
    }


def test_that_it_was_seen_in_a_dry_run_is_not_part_of_the_policy(seen: dict[str, Any], tmp_path: Path):
    path, _ = recorded(tmp_path)
    assert "dry-run" not in read_recording(path.read_bytes()).get_part("policy")["flags"]


def test_a_cluster_that_cannot_be_seen_is_exit_3(seen: dict[str, Any], tmp_path: Path, reviewed: ReviewedSentences):
    blind = Reason(code="CannotSee", message="the provider does not answer")
    seen["turn"] = replace(LoopResult(number=1, at=NOON, policy=policy()), ended_early=blind)
    path, ended = recorded(tmp_path)
    assert ended.returncode == 3
    reviewed(ended.stderr)
    assert not path.exists()


def test_a_file_that_cannot_be_written_is_exit_2(seen: dict[str, Any], tmp_path: Path, reviewed: ReviewedSentences):
    ended = plimsoll("record", "--out", tmp_path / "no" / "such" / "folder")
    assert ended.returncode == 2
    reviewed(ended.stderr)


def test_an_unknown_flag_is_exit_2(seen: dict[str, Any], tmp_path: Path, reviewed: ReviewedSentences):
    _, ended = recorded(tmp_path, "--max-cpux=3")
    assert ended.returncode == 2
    reviewed(ended.stderr)
