"""Chance that repeats, and chance that does not."""

from __future__ import annotations

import re
import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.core.names import SAFE_ALPHABET
from plimsoll.runtime.entropy import SeededEntropy, SystemEntropy

BOTH = pytest.mark.parametrize("entropy", [SystemEntropy(), SeededEntropy(1)], ids=["system", "seeded"])


RECORDED = ["6f91a736-5af1-44fb-8138-72583075fdb0", "k9j48", 0.16700836697229715, "Gs-ZC42RKLw"]


def test_seeded_streams_are_the_same_for_ever():
    """These very values: a change of Python, platform or code that alters them alters every recorded scenario."""
    entropy = SeededEntropy(42)
    assert [
        entropy.generate_uid(),
        entropy.generate_suffix(),
        entropy.draw_uniform(0, 1),
        entropy.generate_token(8),
    ] == RECORDED


@BOTH
def test_uids_are_version_4_uuids(entropy: SystemEntropy | SeededEntropy):
    uids = {entropy.generate_uid() for _ in range(100)}
    assert len(uids) == 100
    for uid in uids:
        assert (uuid.UUID(uid).version, uuid.UUID(uid).variant, str(uuid.UUID(uid))) == (4, uuid.RFC_4122, uid)


@BOTH
def test_suffixes_use_the_alphabet_of_kubernetes(entropy: SystemEntropy | SeededEntropy):
    assert SAFE_ALPHABET == "bcdfghjklmnpqrstvwxz2456789"
    assert re.fullmatch(f"[{SAFE_ALPHABET}]{{5}}", entropy.generate_suffix())
    assert set(entropy.generate_suffix(5_000)) == set(SAFE_ALPHABET)
    assert entropy.generate_suffix(0) == ""


@BOTH
def test_tokens_are_url_safe_and_carry_the_bytes_asked_for(entropy: SystemEntropy | SeededEntropy):
    assert re.fullmatch(r"[A-Za-z0-9_-]{43}", entropy.generate_token())
    assert re.fullmatch(r"[A-Za-z0-9_-]{22}", entropy.generate_token(16))


@given(st.integers(), st.floats(-1e6, 1e6), st.floats(-1e6, 1e6))
def test_uniform_numbers_stay_between_their_bounds(seed: int, one: float, other: float):
    low, high = sorted((one, other))
    assert low <= SeededEntropy(seed).draw_uniform(low, high) <= high


def test_uniform_numbers_are_spread_evenly():
    entropy = SeededEntropy("spread")
    numbers = [entropy.draw_uniform(0, 10) for _ in range(10_000)]
    for tenth in range(10):
        assert 850 < sum(tenth <= number < tenth + 1 for number in numbers) < 1150


@given(st.one_of(st.integers(), st.text()))
def test_the_same_seed_gives_the_same_stream(seed: int | str):
    one, other = SeededEntropy(seed), SeededEntropy(seed)
    assert [one.generate_uid(), one.generate_suffix(), one.generate_token()] == [
        other.generate_uid(),
        other.generate_suffix(),
        other.generate_token(),
    ]


def test_different_seeds_give_different_streams():
    assert len({SeededEntropy(seed).generate_uid() for seed in (0, 1, -1, "0", "1", "")}) == 6


def test_a_child_does_not_depend_on_what_others_drew():
    parent = SeededEntropy(1)
    early = parent.spawn_child("kubelet").generate_uid()
    parent.generate_uid()
    parent.spawn_child("scheduler").generate_uid()
    assert parent.spawn_child("kubelet").generate_uid() == early


def test_a_child_does_not_disturb_its_parent():
    disturbed, alone = SeededEntropy(1), SeededEntropy(1)
    disturbed.spawn_child("kubelet").generate_uid()
    assert disturbed.generate_uid() == alone.generate_uid()


def test_children_differ_by_name_and_by_parent():
    one, other = SeededEntropy(1), SeededEntropy(2)
    streams = [
        one,
        one.spawn_child("a"),
        one.spawn_child("b"),
        one.spawn_child("a").spawn_child("a"),
        other.spawn_child("a"),
    ]
    assert len({stream.generate_uid() for stream in streams}) == len(streams)
