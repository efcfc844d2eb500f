"""The record on disk: durable, bounded, and never ignored when it is damaged."""

from __future__ import annotations

import asyncio
import json
import os
from typing import TYPE_CHECKING

import pytest

from plimsoll.kafka.executor import record_stores
from plimsoll.kafka.executor.errors import RecordUnusable
from plimsoll.kafka.executor.record import RecordedPlan, RecordedState, ThrottledReplica, ThrottleRate
from plimsoll.kafka.executor.record_stores import FileExecutionStore, read_record
from plimsoll.kafka.model.description import TopicPartition
from plimsoll.kafka.model.executions import ExecutionOptions
from plimsoll.kafka.model.proposals import LogDirMove, Proposal

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.golden.reviewed_sentences import ReviewedSentences

PLAN = RecordedPlan(
    execution_id="e1",
    cluster_id="c",
    proposals=(
        Proposal(
            topic="a.b-" + "x" * 240,
            partition=7,
            old_leader=1,
            old_replicas=(1, 2),
            new_replicas=(3, 2),
            size_bytes=1 << 59,
            log_dir_moves=(LogDirMove(broker=2, source="/a", destination="/b"),),
        ),
    ),
    started_at="2026-01-01T00:00:00+00:00",
)
STATE = RecordedState(
    execution_id="e1",
    options=ExecutionOptions(replication_throttle=5, max_bytes_per_hour=1),
    is_stopping=True,
    active=(TopicPartition("a", 1), TopicPartition("b", 2)),
    throttled_replicas=(ThrottledReplica(topic="a", key="k", replica="1:2"),),
    rates=(ThrottleRate(broker=3, key="k", value="5"),),
    started_bytes=((1_700_000_000, 1 << 50),),
)


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return tmp_path / "record"


@pytest.fixture
def store(directory: Path) -> Iterator[FileExecutionStore]:
    opened = FileExecutionStore(directory)
    yield opened
    opened.close()


def write(store: FileExecutionStore) -> None:
    asyncio.run(store.write_plan(PLAN))
    asyncio.run(store.write_state(STATE))


def test_what_is_written_is_read_back(store: FileExecutionStore, directory: Path):
    assert asyncio.run(store.read()) is None
    write(store)
    read = asyncio.run(store.read())
    assert read is not None
    assert (read.plan, read.state) == (PLAN, STATE)
    assert {file.stat().st_mode & 0o777 for file in directory.iterdir()} == {0o600}
    assert sorted(file.name for file in directory.iterdir()) == ["lock", "plan.json", "state.json"]


def test_the_end_of_an_execution_keeps_only_what_is_left(store: FileExecutionStore, directory: Path):
    write(store)
    asyncio.run(store.write_state(RecordedState(rates=STATE.rates)))
    read = asyncio.run(store.read())
    assert read is not None
    assert (read.plan, read.state.rates) == (None, STATE.rates)
    assert not (directory / "plan.json").exists()
    asyncio.run(store.write_state(RecordedState()))
    assert asyncio.run(store.read()) is None
    assert [file.name for file in directory.iterdir()] == ["lock"]


def test_a_plan_that_was_never_begun_is_no_execution(store: FileExecutionStore):
    asyncio.run(store.write_plan(PLAN))
    assert asyncio.run(store.read()) is None


@pytest.mark.parametrize("name", ["state.json", "plan.json"])
@pytest.mark.parametrize("damage", ["empty", "cut", "flipped", "text", "other format", "other type"])
def test_a_damaged_file_is_an_error_that_names_it(store: FileExecutionStore, directory: Path, name: str, damage: str):
    write(store)
    file = directory / name
    content = file.read_bytes()
    envelope = json.loads(content)
    file.write_bytes(
        {
            "empty": b"",
            "cut": content[: len(content) // 2],
            "flipped": content.replace(b'"e1"', b'"e2"'),
            "text": b"hello",
            "other format": json.dumps(envelope | {"format": "plimsoll.dev/other"}).encode(),
            "other type": json.dumps(envelope | {"content": [1]}).encode(),
        }[damage]
    )
    with pytest.raises(RecordUnusable, match=name):
        asyncio.run(store.read())


def test_every_single_lost_or_changed_byte_is_noticed(store: FileExecutionStore, directory: Path):
    write(store)
    file = directory / "state.json"
    content = file.read_bytes()
    for place in range(len(content)):
        for changed in (content[:place], content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :]):
            file.write_bytes(changed)
            with pytest.raises(RecordUnusable):
                read_record(directory)


def test_a_missing_or_foreign_plan_is_an_error(store: FileExecutionStore, directory: Path, reviewed: ReviewedSentences):
    write(store)
    asyncio.run(store.write_plan(RecordedPlan(execution_id="e9", cluster_id="", proposals=(), started_at="")))
    with pytest.raises(RecordUnusable) as raised:
        asyncio.run(store.read())
    reviewed(str(raised.value))
    (directory / "plan.json").unlink()
    with pytest.raises(RecordUnusable) as raised:
        asyncio.run(store.read())
    reviewed(str(raised.value))


def test_a_second_process_is_kept_out(store: FileExecutionStore, directory: Path):
    with pytest.raises(RecordUnusable, match=str(os.getpid())):
        FileExecutionStore(directory)


def test_a_file_beyond_all_bounds_is_not_read(
    store: FileExecutionStore, directory: Path, monkeypatch: pytest.MonkeyPatch, reviewed: ReviewedSentences
):
    write(store)
    monkeypatch.setattr(record_stores, "LARGEST_FILE_BYTES", 100)
    with pytest.raises(RecordUnusable) as refused:
        asyncio.run(store.read())
    reviewed(str(refused.value))


def test_a_directory_that_cannot_be_written_is_named(tmp_path: Path):
    (tmp_path / "file").write_text("")
    with pytest.raises(RecordUnusable, match="file"):
        FileExecutionStore(tmp_path / "file" / "record")


def test_what_a_crash_left_beside_does_not_disturb(store: FileExecutionStore, directory: Path):
    (directory / ".state.json.new").write_bytes(b"half")
    write(store)
    read = asyncio.run(store.read())
    assert read is not None
    assert read.state == STATE
