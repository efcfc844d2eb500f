"""Whose is an object: the rules of taking over and letting go."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from plimsoll.core.selectors import LabelSelector
from plimsoll.local.controller_manager.workloads.controlled_objects.controller_refs import Claim, claim_on
from plimsoll.local.controller_manager.workloads.controlled_objects.template_hash import (
    compute_fingerprint,
    compute_template_hash,
)
from plimsoll.objects.api.meta import ObjectMeta, OwnerReference

NOW = datetime(2026, 1, 1, tzinfo=UTC)
SELECTOR = LabelSelector.from_parts({"app": "a"})


def candidate(*, app: str = "a", owner: str = "", is_ending: bool = False) -> ObjectMeta:
    references = (OwnerReference(kind="ReplicaSet", name="r", uid=owner, controller=True),) if owner else ()
    ending = NOW if is_ending else None
    return ObjectMeta(name="p", labels={"app": app}, owner_references=references, deletion_timestamp=ending)


@pytest.mark.parametrize(
    ("what", "is_owner_ending", "claim"),
    [
        ({}, False, Claim.ADOPT),
        ({}, True, Claim.NOT_OURS),
        ({"is_ending": True}, False, Claim.NOT_OURS),
        ({"app": "b"}, False, Claim.NOT_OURS),
        ({"owner": "ours"}, False, Claim.OURS),
        ({"owner": "ours", "app": "b"}, False, Claim.RELEASE),
        ({"owner": "ours", "app": "b"}, True, Claim.NOT_OURS),
        ({"owner": "theirs"}, False, Claim.NOT_OURS),
    ],
)
def test_an_orphan_is_taken_what_no_longer_matches_let_go_and_nothing_stolen(
    what: dict[str, Any], is_owner_ending: bool, claim: Claim
):
    owner = ObjectMeta(name="r", uid="ours", deletion_timestamp=NOW if is_owner_ending else None)
    one = candidate(**what)
    assert claim_on(one, owner, matches=SELECTOR.matches(one.labels)) is claim


def test_the_hash_label_does_not_tell_templates_apart_and_everything_else_does():
    plain = {"metadata": {"labels": {"app": "a"}}, "spec": {"volumes": [{"name": "v", "emptyDir": {}}]}}
    labelled = {**plain, "metadata": {"labels": {"app": "a", "pod-template-hash": "x"}}}
    other = {**plain, "spec": {"volumes": [{"name": "v"}]}}
    assert compute_fingerprint(plain) == compute_fingerprint(labelled) != compute_fingerprint(other)


def test_the_hash_depends_on_collisions_and_not_on_the_order_of_fields():
    one, other = {"a": 1, "b": {"c": 2, "d": 3}}, {"b": {"d": 3, "c": 2}, "a": 1}
    assert compute_template_hash(one) == compute_template_hash(other)
    assert len({compute_template_hash(one), compute_template_hash(one, 1), compute_template_hash(one, 2)}) == 3
    assert set(compute_template_hash(one)) <= set("bcdfghjklmnpqrstvwxz2456789")
