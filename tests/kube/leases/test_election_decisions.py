from __future__ import annotations

from typing import Any

import pytest

from plimsoll.core.errors import InvalidInput
from plimsoll.kube.leases import LeaseSettings, generate_identity
from plimsoll.kube.leases.election import Election, Step
from plimsoll.kube.leases.lease_record import UNREADABLE_HOLDER, LeaseRecord, read_lease_record
from plimsoll.runtime.entropy import SeededEntropy

SETTINGS = LeaseSettings(name="lock", namespace="here")
ELECTION = Election(identity="us", settings=SETTINGS)


def record(version: str = "1", **fields: Any) -> LeaseRecord:
    return LeaseRecord(**{"version": version, "holder": "them", "duration_s": 15, "renew_time": version, **fields})


def step(election: Election, now_s: float) -> Step:
    return election.decide(now_s).step


def test_nothing_is_decided_before_looking():
    assert step(ELECTION, 0) is Step.LOOK


def test_a_candidate_that_never_saw_a_lease_creates_it_at_once():
    assert step(ELECTION.observe(None, now_s=5), 5) is Step.CREATE


def test_a_record_is_waited_for_from_when_it_was_first_seen_not_from_when_it_was_last_seen():
    election = ELECTION.observe(record(), now_s=100).observe(record(), now_s=114)
    assert election.decide(114.9).until_s == 115
    assert step(election, 114.9) is Step.WAIT
    assert step(election, 115) is Step.TAKE


def test_every_new_version_begins_the_wait_anew():
    election = ELECTION.observe(record("1"), now_s=100).observe(record("2"), now_s=114)
    assert election.decide(120).until_s == 129


def test_a_version_that_cannot_be_read_is_never_the_same():
    election = ELECTION.observe(record(""), now_s=100).observe(record(""), now_s=114)
    assert election.decide(115).until_s == 129


def test_losing_sight_does_not_begin_the_wait_anew():
    election = ELECTION.observe(record(), now_s=100).mark_stale()
    assert step(election, 120) is Step.LOOK
    assert step(election.observe(record(), now_s=120), 120) is Step.TAKE


def test_a_record_gone_after_it_was_seen_held_is_respected_from_when_it_was_gone():
    election = ELECTION.observe(record(), now_s=100).observe(None, now_s=110)
    assert election.decide(110).until_s == 125
    assert step(election, 125) is Step.CREATE


def test_a_released_record_that_is_gone_is_created_at_once():
    election = ELECTION.observe(record(holder=""), now_s=100).observe(None, now_s=110)
    assert step(election, 110) is Step.CREATE


@pytest.mark.parametrize(("gone_at_s", "expected"), [(114, Step.CREATE), (115, Step.WAIT)])
def test_our_own_record_gone_is_created_at_once_only_while_it_is_good(gone_at_s: float, expected: Step):
    election = ELECTION.observe(None, now_s=0)
    claim = election.build_claim("t1")
    ours = record("1", holder="us", acquire_time="t1", renew_time="t1")
    election = election.remember_write(claim, now_s=100).observe(ours, now_s=101)
    assert step(election, 101) is Step.RENEW
    assert step(election.observe(None, now_s=gone_at_s), gone_at_s) is expected


def test_only_what_this_process_wrote_is_its_own():
    election = ELECTION.observe(record(holder="us", renew_time="t0"), now_s=0)
    assert election.own_write is None
    assert step(election, 1) is Step.WAIT


def test_a_late_write_counts_from_when_it_was_sent():
    election = ELECTION.observe(record("1", holder="", transitions=3), now_s=0)
    first = election.build_claim("t1")
    election = election.remember_write(first, now_s=1).mark_stale()
    election = election.remember_write(election.build_claim("t2"), now_s=7).mark_stale()
    landed = record("2", holder="us", acquire_time="t1", renew_time="t1", transitions=4)
    own = election.observe(landed, now_s=8).own_write
    assert own is not None
    assert own.sent_at_s == 1
    assert first.transitions == 4


def leading(renewed_at_s: float = 100.0) -> Election:
    election = ELECTION.observe(None, now_s=0)
    ours = record("1", holder="us", acquire_time="t", renew_time="t")
    return election.remember_write(election.build_claim("t"), now_s=renewed_at_s).observe(ours, now_s=renewed_at_s)


def failed(election: Election, *, times: int, every_s: float) -> Election:
    """After renewals that went astray."""
    for number in range(times):
        election = election.remember_write(
            election.build_claim(f"t{number}"), now_s=100 + number * every_s
        ).mark_stale()
    return election


def test_the_record_that_stands_is_ours_however_many_renewals_failed_since():
    election = failed(leading(), times=100, every_s=0.1)
    seen = election.observed
    assert seen is not None
    assert step(election.observe(seen.record, now_s=111), 111) is Step.RENEW


def test_any_write_that_may_still_count_is_ours_when_it_lands():
    election = failed(leading(), times=100, every_s=0.1)
    landed = record("2", holder="us", acquire_time="t", renew_time="t0")
    assert step(election.observe(landed, now_s=111), 111) is Step.RENEW


def test_writes_that_no_longer_count_are_forgotten():
    assert len(failed(leading(), times=1000, every_s=2).writes) < 12


@pytest.mark.parametrize(
    "garbage", [None, [], "text", {"spec": 5, "metadata": "x"}, {"spec": {"leaseTransitions": {}}}]
)
def test_any_json_is_a_record(garbage: Any):
    read = read_lease_record(garbage, SETTINGS)
    assert (read.holder, read.duration_s, read.transitions) == ("", 15, 0)


@pytest.mark.parametrize("duration", [0, -3, True, 1.5, "15", None])
def test_a_duration_that_makes_no_sense_is_counted_as_our_own_and_reported(duration: Any):
    read = read_lease_record({"spec": {"holderIdentity": "x", "leaseDurationSeconds": duration}}, SETTINGS)
    assert read.duration_s == 15
    assert read.problems[0].startswith("leaseDurationSeconds: ")


def test_a_holder_that_cannot_be_read_is_one():
    assert read_lease_record({"spec": {"holderIdentity": {"a": 1}}}, SETTINGS).holder == UNREADABLE_HOLDER


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"duration_s": 0}, "duration_s"),
        ({"duration_s": 1.5}, "duration_s"),
        ({"duration_s": 3601}, "duration_s"),
        ({"longest_duration_s": 14}, "duration_s"),
        ({"renew_deadline_s": 15.0}, "renew_deadline_s"),
        ({"renew_deadline_s": 2.4}, "renew_deadline_s"),
        ({"retry_period_s": 0.0}, "retry_period_s"),
        ({"margin_s": 15.0}, "margin_s"),
        ({"margin_s": 6.0}, "renew_deadline_s"),
        ({"jitter": -1.0}, "jitter"),
        ({"release_timeout_s": 0.0}, "release_timeout_s"),
        ({"name": ""}, "name"),
        ({"name": "Big"}, "name"),
        ({"name": "a/b"}, "name"),
        ({"name": "x" * 254}, "name"),
        ({"namespace": ""}, "namespace"),
        ({"namespace": "a.b"}, "namespace"),
        ({"namespace": "../x"}, "namespace"),
    ],
)
def test_settings_that_cannot_work_are_refused_by_name(change: Any, path: str):
    with pytest.raises(InvalidInput) as caught:
        LeaseSettings(**{"name": "lock", "namespace": "here", **change})
    assert caught.value.path == path


def test_two_processes_of_one_host_have_two_identities():
    entropy = SeededEntropy(1)
    assert generate_identity("h", entropy) != generate_identity("h", entropy)
