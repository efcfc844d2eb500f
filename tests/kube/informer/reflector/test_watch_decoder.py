"""Frames come out of chunks as the server wrote them, wherever the chunks are cut; each is read as far as it can be."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.kube.errors import Expired, ServerFailed, TooManyRequests, UnreadableAnswer
from plimsoll.kube.informer.reflector.watch_decoder import (
    Bookmark,
    FrameReader,
    FrameSplitter,
    Present,
    UnreadableFrame,
    WatchDeleted,
    WatchError,
)
from plimsoll.objects.api.coordination import Lease
from plimsoll.objects.api.pods import Pod
from plimsoll.objects.codec.decode_problems import BadObject
from plimsoll.objects.codec.decoding import RawObject
from tests.kube.informer.widget_server import Widget, widget


def frame(kind: str, value: Any) -> bytes:
    return json.dumps({"type": kind, "object": value}).encode()


def read(text: bytes, struct: Any = Widget, *, keep_raw: bool = False) -> Any:
    reader: FrameReader[Any] = FrameReader(struct, keep_raw=keep_raw)
    return reader.read(text)


@given(
    frames=st.lists(st.binary(min_size=1).map(lambda data: data.replace(b"\n", b"x") + b"|"), max_size=6),
    cuts=st.lists(st.integers(0, 60)),
)
def test_frames_do_not_depend_on_where_chunks_are_cut(frames: list[bytes], cuts: list[int]):
    text = b"".join(frame + b"\n" for frame in frames)
    edges = sorted({0, len(text), *(cut for cut in cuts if cut < len(text))})
    splitter = FrameSplitter()
    got = [frame for start, end in itertools.pairwise(edges) for frame in splitter.feed(text[start:end])]
    assert got == frames


def test_a_frame_that_is_not_ended_is_not_reported():
    splitter = FrameSplitter()
    assert splitter.feed(b'{"a":1}\n{"b"') == [b'{"a":1}']
    assert splitter.feed(b":2}\n\n  \n") == [b'{"b":2}']


def test_a_frame_without_end_is_refused():
    splitter = FrameSplitter(longest_bytes=10)
    splitter.feed(b"12345")
    with pytest.raises(UnreadableAnswer):
        splitter.feed(b"678901")


@pytest.mark.parametrize(("kind", "event"), [("ADDED", Present), ("MODIFIED", Present), ("DELETED", WatchDeleted)])
def test_an_object_is_there_or_gone(kind: str, event: type[Any]):
    got = read(frame(kind, widget("a", 3)))
    assert isinstance(got, event)
    assert got.value.spec.size == 3


def test_bytes_of_the_object_are_kept_where_asked_for():
    got = read(frame("ADDED", widget("a", 3)), keep_raw=True)
    assert isinstance(got.value, RawObject)
    assert json.loads(got.value.raw) == {"metadata": {"name": "a"}, "spec": {"size": 3}}, "all but its type"


def test_null_is_absent():
    assert read(frame("ADDED", {**widget("a"), "spec": None})).value.spec.size == 0


def test_an_odd_object_is_bad_and_has_its_name():
    got = read(frame("MODIFIED", widget("a", "many")))
    assert isinstance(got, Present)
    assert isinstance(got.value, BadObject)
    assert got.value.name == "a"


def test_an_object_of_another_kind_is_bad():
    assert isinstance(read(frame("ADDED", {**widget("a"), "kind": "Gadget"})).value, BadObject)


def test_an_object_nested_too_deeply_is_bad_and_has_its_name():
    text = frame("ADDED", {**widget("a"), "x": "HERE"}).replace(b'"HERE"', b"[" * 5000 + b"]" * 5000)
    assert read(text).value.name == "a"


def test_times_with_microseconds_are_read():
    lease = {"kind": "Lease", "metadata": {"name": "a"}, "spec": {"renewTime": "2025-01-01T00:00:00.000001Z"}}
    assert read(frame("ADDED", lease), Lease).value.spec.renew_time.microsecond == 1


def test_a_bookmark_of_a_real_server_has_nulls_in_it():
    blank = {
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": {"resourceVersion": "12", "creationTimestamp": None},
        "spec": {"containers": None},
        "status": {},
    }
    assert read(frame("BOOKMARK", blank), Pod) == Bookmark("12")


def test_the_bookmark_that_ends_the_first_events_is_known_by_its_annotation():
    metadata = {"resourceVersion": "12", "annotations": {"k8s.io/initial-events-end": "true"}}
    assert read(frame("BOOKMARK", {"kind": "Widget", "metadata": metadata})) == Bookmark("12", ends_initial=True)


@pytest.mark.parametrize(("code", "error"), [(410, Expired), (429, TooManyRequests), (500, ServerFailed)])
def test_an_error_is_what_its_status_says(code: int, error: Any):
    got = read(frame("ERROR", {"kind": "Status", "status": "Failure", "code": code, "metadata": {}}))
    assert isinstance(got, WatchError)
    assert isinstance(got.error, error)


def test_an_error_that_is_no_status_is_the_servers_failure():
    assert isinstance(read(frame("ERROR", {"oops": 1})).error, ServerFailed)


@pytest.mark.parametrize(
    "text",
    [
        b"{",
        b"[]",
        b"\xff",
        frame("ADDED", widget("a"))[:-5],
        frame("NOVEL", widget("a")),
        frame("ADDED", {"metadata": {"name": 5}}),
        frame("ADDED", {"kind": "Widget", "metadata": {"uid": "u", "resourceVersion": "7"}}),
        frame("DELETED", {"kind": "Widget", "metadata": {"name": ""}}),
        frame("ADDED", None),
        frame("BOOKMARK", {"metadata": 5}),
    ],
)
def test_what_nothing_can_be_learnt_from_is_garbled(text: bytes):
    assert isinstance(read(text), UnreadableFrame)
    assert isinstance(read(text, keep_raw=True), UnreadableFrame)
