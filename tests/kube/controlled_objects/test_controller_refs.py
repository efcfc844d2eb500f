"""Whose is an object: the rules of taking over and letting go."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from plimsoll.core.selectors import LabelSelector
from plimsoll.kube.controlled_objects.controller_refs import ObjectClaim, classify_claim
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
        ({}, False, ObjectClaim.ADOPT),
        ({}, True, ObjectClaim.NOT_OURS),
        ({"is_ending": True}, False, ObjectClaim.NOT_OURS),
        ({"app": "b"}, False, ObjectClaim.NOT_OURS),
        ({"owner": "ours"}, False, ObjectClaim.OURS),
        ({"owner": "ours", "app": "b"}, False, ObjectClaim.RELEASE),
        ({"owner": "ours", "app": "b"}, True, ObjectClaim.NOT_OURS),
        ({"owner": "theirs"}, False, ObjectClaim.NOT_OURS),
    ],
)
def test_an_orphan_is_taken_what_no_longer_matches_let_go_and_nothing_stolen(
    what: dict[str, Any], is_owner_ending: bool, claim: ObjectClaim
):
    owner = ObjectMeta(name="r", uid="ours", deletion_timestamp=NOW if is_owner_ending else None)
    one = candidate(**what)
    assert classify_claim(one, owner, matches=SELECTOR.matches(one.labels)) is claim
