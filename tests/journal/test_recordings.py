"""Recordings: read back as written, the same bytes for the same content, and clear words about what is none."""

import gzip
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plimsoll.journal import recordings
from plimsoll.journal.anonymising import Anonymiser
from plimsoll.journal.errors import RecordingTooNew, UnreadableRecording
from plimsoll.journal.recordings import About, Recording, read_recording, write_recording
from tests.golden.reviewed_sentences import ReviewedSentences
from tests.journal.builders import NOON


def recording(**parts: Any) -> Recording:
    return Recording(subsystem="nodes", made_at=NOON, plimsoll="1.0", anonymised=True, parts=parts)


def packed(value: Any) -> bytes:
    return gzip.compress(json.dumps(value).encode())


def test_a_recording_reads_back_as_it_was_written():
    made = recording(snapshot={"nodes": [1, "ä", None]}, policy={})
    assert read_recording(write_recording(made)) == made


def test_the_order_of_keys_and_the_time_of_writing_do_not_change_the_bytes():
    one = write_recording(recording(snapshot={"a": 1, "b": 2}))
    assert one == write_recording(recording(snapshot={"b": 2, "a": 1}))
    assert one[4:8] == bytes(4)


def test_names_are_hidden_unless_a_person_asks_to_keep_them():
    about = About(subsystem="nodes", made_at=NOON, plimsoll="1.0")
    parts = {"snapshot": {"nodes": [{"metadata": {"name": "secret"}}]}, "policy": {"maxCpu": 5}}
    hidden = Recording.from_parts(parts, about, Anonymiser("salt"))
    assert hidden.anonymised
    assert b"secret" not in gzip.decompress(write_recording(hidden))
    assert hidden.get_part("policy") == {"maxCpu": 5}
    kept = Recording.from_parts(parts, about, None)
    assert (kept.anonymised, kept.parts) == (False, parts)


def test_a_plan_made_from_the_hidden_snapshot_is_added():
    assert recording(snapshot=1).with_part("plan", 2).parts == {"snapshot": 1, "plan": 2}


def test_a_part_that_is_not_there_is_named(reviewed: ReviewedSentences):
    with pytest.raises(UnreadableRecording) as refused:
        recording(snapshot={}, policy={}).get_part("plan")
    reviewed(str(refused.value))
    assert recording(plan=3).get_part("plan") == 3


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"not gzip at all",
        packed([]),
        packed({"format": "other", "version": 1}),
        packed({"format": "plimsoll-recording", "version": 1}),
        packed({"format": "plimsoll-recording", "version": "x"}),
        gzip.compress(b"\xff\xfe"),
        gzip.compress(b'{"format":"plimsoll-recording","version":1,"recording":' + b"[" * 100_000),
    ],
    # The id of compressed bytes would hold the second they were made in.
    ids=["empty", "plain", "list", "other", "hollow", "versionless", "no-utf8", "too-deep"],
)
def test_what_is_no_recording_is_refused(data: bytes):
    with pytest.raises(UnreadableRecording) as refused:
        read_recording(data)
    assert refused.value.exit_code == 2


def test_a_newer_recording_is_refused_by_its_version(reviewed: ReviewedSentences):
    with pytest.raises(RecordingTooNew) as raised:
        read_recording(packed({"format": "plimsoll-recording", "version": 2, "sections": []}))
    reviewed(str(raised.value))


def test_a_recording_cut_anywhere_is_refused():
    whole = write_recording(recording(snapshot={"nodes": list(range(1000))}))
    for cut in range(0, len(whole), 97):
        with pytest.raises(UnreadableRecording):
            read_recording(whole[:cut])


def test_a_bit_that_fell_over_is_noticed():
    whole = bytearray(write_recording(recording(snapshot={"nodes": list(range(1000))})))
    whole[len(whole) // 2] ^= 4
    with pytest.raises(UnreadableRecording):
        read_recording(bytes(whole))


def test_a_small_file_that_unpacks_to_too_much_is_refused(monkeypatch: pytest.MonkeyPatch, reviewed: ReviewedSentences):
    monkeypatch.setattr(recordings, "_LARGEST_BYTES", 3 * 1024 * 1024)
    with pytest.raises(UnreadableRecording) as refused:
        read_recording(gzip.compress(bytes(20 * 1024 * 1024)))
    reviewed(str(refused.value))


plain = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=20,
)


@settings(max_examples=100, deadline=None)
@given(value=plain)
def test_any_plain_data_is_carried(value: Any):
    made = recording(snapshot=value)
    assert read_recording(write_recording(made)) == made
