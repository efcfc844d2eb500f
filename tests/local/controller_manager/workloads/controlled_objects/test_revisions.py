"""Revisions of sets: their hashes are a real cluster's, and only what is unused is removed."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plimsoll.local.controller_manager.workloads.controlled_objects.revisions import (
    build_revision_data,
    compute_data_hash,
    find_equal_revision,
    get_template,
    select_superfluous,
)
from plimsoll.objects.api.meta import ObjectMeta
from plimsoll.objects.api.workloads import ControllerRevision
from tests.conformance.recordings import by_id


@pytest.mark.parametrize("number", [0, 1])
def test_the_hash_of_a_recorded_revision_is_the_recorded_one(number: int):
    recorded = by_id("controllers-020").response["items"][number]
    assert compute_data_hash(recorded["data"], 0) == recorded["metadata"]["labels"]["controller.kubernetes.io/hash"]
    assert compute_data_hash(recorded["data"], 1) != compute_data_hash(recorded["data"], 0)


def test_a_template_goes_into_a_revision_and_comes_out_again():
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [], "gone": None}}
    revision = ControllerRevision(data=build_revision_data(template))
    assert get_template(revision) == {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": []}}


def _revision(number: int) -> ControllerRevision:
    return ControllerRevision(metadata=ObjectMeta(name=f"r{number}"), data={"n": number % 3}, revision=number)


def test_the_newest_of_equal_revisions_is_found():
    history = [_revision(number) for number in range(1, 6)]
    assert find_equal_revision(history, {"n": 1}) == history[3]
    assert find_equal_revision(history, {"n": 7}) is None


@given(
    count=st.integers(0, 12),
    live=st.frozensets(st.integers(0, 12).map(lambda number: f"r{number}")),
    limit=st.integers(0, 12),
)
@settings(max_examples=200, deadline=None)
def test_what_is_forgotten_is_old_unused_and_beyond_the_limit(count: int, live: frozenset[str], limit: int):
    history = [_revision(number) for number in range(count)]
    forgotten = select_superfluous(history, live=live, limit=limit)
    left = [controller_revision for controller_revision in history if controller_revision not in forgotten]
    unused = [controller_revision for controller_revision in left if controller_revision.metadata.name not in live]
    assert not any(controller_revision.metadata.name in live for controller_revision in forgotten)
    assert len(unused) <= limit
    assert not forgotten or len(unused) == limit
    assert all(controller_revision.revision < other.revision for controller_revision in forgotten for other in unused)
