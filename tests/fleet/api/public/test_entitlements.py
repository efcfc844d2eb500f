"""Quotas: which instance type a caller may create, and how many."""

from __future__ import annotations

from datetime import timedelta

import pytest

from plimsoll.fleet.auth.issuer import UserIdentity
from plimsoll.fleet.model.access import AccessPolicy, BillingQuota, GrantedQuota, Grantee, QuotaPolicy
from tests.fleet.api.api_world import ApiWorld
from tests.fleet.fleet_rows import NOW

ALICE = UserIdentity(user="alice", organisation="org-1")
BOB = UserIdentity(user="bob", organisation="org-1")
ROBOT = UserIdentity(user="robot", organisation="org-9")
STANDARD = GrantedQuota(instance_type="standard")
EXPIRED = GrantedQuota(
    instance_type="standard",
    billing_models=(BillingQuota(billing_model="standard", expires_at=NOW - timedelta(days=1)),),
)


def make_world(**quota: object) -> ApiWorld:
    settings = {
        "is_enforced": True,
        "organisations": {
            "org-1": Grantee(id="org-1", instances=3, users=frozenset({"alice"}), granted=(STANDARD,)),
            "org-2": Grantee(id="org-2", instances=3, granted=(EXPIRED,)),
        },
        "service_accounts": {"robot": Grantee(id="robot", instances=1)},
    } | quota
    return ApiWorld(access=AccessPolicy(quota=QuotaPolicy(**settings)))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("identity", "plan", "expected"),
    [
        (ALICE, "standard.x1", (202, "")),
        (ALICE, "", (202, "")),
        (ALICE, "developer.x1", (400, "21")),
        (BOB, "standard.x1", (400, "21")),
        (BOB, "developer.x1", (202, "")),
        (ROBOT, "standard.x1", (202, "")),
        (UserIdentity(user="zoe", organisation="org-2"), "standard.x1", (400, "21")),
        (UserIdentity(user="zoe", organisation="org-3"), "", (202, "")),
    ],
)
def test_the_quota_decides_the_instance_type(identity: UserIdentity, plan: str, expected: tuple[int, str]):
    world = make_world()
    answer = world.create("orders", plan, token=world.user_token(identity))
    assert (answer.status, answer.code) == expected
    world.close()


def test_the_quota_of_an_organisation_is_in_streaming_units():
    world = make_world()
    token = world.user_token(ALICE)
    assert world.create("big", "standard.x2", token=token).status == 202
    too_much = world.create("other", "standard.x2", token=token)
    assert (too_much.status, too_much.code) == (403, "120")
    assert world.create("small", "standard.x1", token=token).status == 202
    world.close()


def test_the_quota_of_a_service_account_counts_its_own_instances():
    world = make_world()
    token = world.user_token(ROBOT)
    assert world.create("one", token=token).status == 202
    second = world.create("two", token=token)
    assert (second.status, second.code) == (403, "120")
    world.close()


def test_without_a_quota_and_developer_instances_nothing_is_created():
    world = make_world(allow_developer_instances=False)
    answer = world.create("orders", "", token=world.user_token(BOB))
    assert (answer.status, answer.code) == (403, "120")
    world.close()
