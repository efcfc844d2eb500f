from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plimsoll.local.apiserver.auth_types import User
from plimsoll.local.apiserver.authorization import Rule, check_escalation
from plimsoll.local.apiserver.authorization.rules import find_uncovered
from tests.local.apiserver.authorization.builders import (
    ADMIN,
    BOB,
    GROUP,
    AuthorizerHarness,
    binding,
    cluster_binding,
    cluster_role,
    role,
    rule,
)

if TYPE_CHECKING:
    from plimsoll.local.apiserver.status_errors import StatusError

POWERS = rule("get list", "pods")


def world_of_bob(*rules: dict, others: tuple[dict, ...] = ()) -> AuthorizerHarness:
    return AuthorizerHarness(
        cluster_role("bobs", *rules), cluster_binding("bobs", "ClusterRole/bobs", "User bob"), *others
    )


def refusal_of(
    world: AuthorizerHarness, obj: dict, user: User = BOB, *, old: dict | None = None, stored_as: str = ""
) -> StatusError | None:
    """Of a write where an object of this kind belongs, unless another place is given."""
    namespace = obj["metadata"].get("namespace", "")
    where = stored_as or f"{GROUP}/{obj['kind'].lower()}s"
    return check_escalation(world.authorizer, user, obj, stored_as=where, namespace=namespace, old=old)


def refusal_text(
    world: AuthorizerHarness, obj: dict, user: User = BOB, *, old: dict | None = None, stored_as: str = ""
) -> str | None:
    refusal = refusal_of(world, obj, user, old=old, stored_as=stored_as)
    return None if refusal is None else refusal.status["message"]


def test_a_role_may_hold_what_its_writer_has():
    assert refusal_text(world_of_bob(POWERS), role("new", rule("list", "pods"))) is None


def test_a_role_with_more_is_refused_and_what_is_missing_is_listed():
    new = role("new", rule("get create", "pods secrets"), rule("get", "nodes", named="n1 n2"))
    assert refusal_text(world_of_bob(POWERS), new) == (
        'roles.rbac.authorization.k8s.io "new" is forbidden: user "bob" (groups=["dev" "system:authenticated"])'
        " is attempting to grant RBAC permissions not currently held:\n"
        '{APIGroups:[""], Resources:["nodes"], ResourceNames:["n1"], Verbs:["get"]}\n'
        '{APIGroups:[""], Resources:["nodes"], ResourceNames:["n2"], Verbs:["get"]}\n'
        '{APIGroups:[""], Resources:["pods"], Verbs:["create"]}\n'
        '{APIGroups:[""], Resources:["secrets"], Verbs:["get" "create"]}'
    )


def test_paths_are_granted_only_by_users_with_access_to_them():
    world = world_of_bob(rule("get", urls="/api/*"))
    assert refusal_text(world, cluster_role("new", rule("get", urls="/api/v1 /api/*"))) is None
    assert "{NonResourceURLs:" in (refusal_text(world, cluster_role("new", rule("get", urls="*"))) or "")


def test_several_own_rules_cover_one_new_rule_together():
    world = world_of_bob(rule("get", "pods"), rule("get", "services"))
    assert refusal_text(world, role("new", rule("get", "pods services"))) is None


def test_a_named_rule_does_not_cover_an_unnamed_one():
    world = world_of_bob(rule("get", "pods", named="a"))
    assert refusal_text(world, role("new", rule("get", "pods", named="a"))) is None
    assert refusal_text(world, role("new", rule("get", "pods"))) is not None


def test_rights_in_another_namespace_do_not_count():
    world = AuthorizerHarness(cluster_role("cr", POWERS), binding("b", "ClusterRole/cr", "User bob", namespace="a"))
    assert refusal_text(world, role("new", POWERS, namespace="a")) is None
    assert refusal_text(world, role("new", POWERS, namespace="b")) is not None
    assert refusal_text(world, cluster_role("new", POWERS)) is not None


def test_a_user_with_escalate_may_write_any_role():
    world = world_of_bob(rule("escalate", "roles", of=GROUP))
    assert refusal_text(world, role("new", rule("*", "*", of="*"))) is None
    assert refusal_text(world, cluster_role("new", rule("*", "*", of="*"))) is not None


def test_masters_write_what_they_like():
    assert refusal_text(AuthorizerHarness(), cluster_role("new", rule("*", "*", of="*")), ADMIN) is None


def test_a_binding_grants_the_rules_of_its_role():
    world = world_of_bob(
        POWERS, others=(cluster_role("small", rule("get", "pods")), cluster_role("big", rule("*", "pods")))
    )
    assert refusal_text(world, binding("new", "ClusterRole/small", "User eve")) is None
    assert refusal_text(world, cluster_binding("new", "ClusterRole/small", "User eve")) is None
    assert refusal_text(world, binding("new", "ClusterRole/big", "User eve")) is not None


def test_a_user_with_bind_on_a_named_role_may_bind_it():
    others = (cluster_role("big", rule("*", "pods")), cluster_role("huge", rule("*", "*")))
    world = world_of_bob(rule("bind", "clusterroles", of=GROUP, named="big"), others=others)
    assert refusal_text(world, binding("new", "ClusterRole/big", "User eve")) is None
    assert refusal_text(world, binding("new", "ClusterRole/huge", "User eve")) is not None


def test_binding_a_role_that_is_not_there_is_not_found():
    refusal = refusal_of(AuthorizerHarness(), binding("b", "Role/gone", "User bob"))
    assert refusal is not None
    assert refusal.code == 404
    assert refusal.status["message"] == 'role.rbac.authorization.k8s.io "gone" not found'


def test_a_binding_to_something_that_is_no_role_is_left_to_validation():
    world = AuthorizerHarness()
    nonsense = binding("b", "Pod/x", "User bob")
    assert refusal_text(world, nonsense) is None
    world.put(nonsense)
    assert not world.allows(BOB, "get", "pods", namespace="default")


def test_an_aggregation_rule_needs_every_right():
    picking = cluster_role("new", picks={"a": "b"})
    assert refusal_text(world_of_bob(POWERS), picking) == (
        'clusterroles.rbac.authorization.k8s.io "new" is forbidden:'
        " must have cluster-admin privileges to use an aggregationRule"
    )
    everything = world_of_bob(rule("*", "*", of="*"), rule("*", urls="*"))
    assert refusal_text(everything, picking) is None
    plain = cluster_role("new")
    assert refusal_text(world_of_bob(POWERS), plain, old=picking) is not None, "nor may one be taken away"


def test_finalizers_may_be_taken_from_a_role_one_does_not_cover():
    old = role("big", rule("*", "*"))
    old["metadata"]["finalizers"] = ["example.com/x"]
    new = role("big", rule("*", "*"))
    assert refusal_text(AuthorizerHarness(), new, old=old) is None
    relabelled = role("big", rule("*", "*"))
    relabelled["metadata"]["labels"] = {"a": "b"}
    assert refusal_text(AuthorizerHarness(), relabelled, old=old) is not None


@pytest.mark.parametrize("stored_as", ["pods", "roles", "example.com/roles", f"{GROUP}/others"])
def test_resources_that_grant_nothing_are_not_looked_at(stored_as: str):
    assert refusal_text(AuthorizerHarness(), role("new", POWERS), stored_as=stored_as) is None


@pytest.mark.parametrize("kind", ["Foo", "Pod", "RoleBinding", "", None])
def test_a_role_is_checked_whatever_its_body_calls_itself(kind: str | None):
    disguised = {**cluster_role("new", POWERS), "kind": kind}
    text = refusal_text(AuthorizerHarness(), disguised, stored_as=f"{GROUP}/clusterroles") or ""
    assert text.startswith('clusterroles.rbac.authorization.k8s.io "new" is forbidden: user "bob"')


@pytest.mark.parametrize("kind", ["Foo", "Pod", "Role", "", None])
def test_a_binding_is_checked_whatever_its_body_calls_itself(kind: str | None):
    world = AuthorizerHarness(cluster_role("big", rule("*", "*", of="*")))
    disguised = {**cluster_binding("new", "ClusterRole/big", "User bob"), "kind": kind}
    text = refusal_text(world, disguised, stored_as=f"{GROUP}/clusterrolebindings") or ""
    assert text.startswith('clusterrolebindings.rbac.authorization.k8s.io "new" is forbidden: user "bob"')


def test_a_crafted_rule_is_refused_without_multiplying_it_out():
    many = [f"r{number}" for number in range(3_000)]
    huge = Rule(verbs=many, api_groups=many, resources=many, names=many)
    assert find_uncovered([Rule(verbs=["get"], api_groups=[""], resources=["pods"])], [huge]) == [huge]


@pytest.mark.parametrize("count", [30_000])
def test_many_rules_cost_no_more_than_their_number(count: int):
    rules = [Rule(verbs=["get"], api_groups=[""], resources=[f"r{number}"]) for number in range(count)]
    assert len(find_uncovered(rules, rules)) > 0, "beyond the measure rules count as not covered"


VERBS, RESOURCES, NAMES, NAMESPACES = ("get", "create"), ("pods", "secrets"), ("x", "y"), ("a", "b")
PEOPLE = (BOB, User(name="eve", groups=("dev",)))
some: dict[str, Any] = {"min_size": 1, "max_size": 2, "unique": True}
small_rules = st.lists(
    st.builds(
        lambda verbs, resources, named: rule(" ".join(verbs), " ".join(resources), named=named),
        st.lists(st.sampled_from((*VERBS, "*")), **some),
        st.lists(st.sampled_from((*RESOURCES, "*")), **some),
        st.sampled_from(("", "x")),
    ),
    max_size=2,
)
targets = st.sampled_from([f"{kind}/{name}" for kind in ("Role", "ClusterRole") for name in NAMES])
whom = st.sampled_from(["User bob", "User eve", "Group dev"])
places, labels = st.sampled_from(NAMESPACES), st.dictionaries(st.just("to"), st.just("top"))
attempts = st.one_of(
    st.builds(lambda name, rules, ns: role(name, *rules, namespace=ns), st.sampled_from(NAMES), small_rules, places),
    st.builds(
        lambda name, rules, marks, picks: cluster_role(name, *rules, labels=marks, picks=picks),
        st.sampled_from(NAMES), small_rules, labels, st.none() | labels,
    ),
    st.builds(
        lambda name, to, who, ns: binding(name, to, who, namespace=ns), st.sampled_from(NAMES), targets, whom, places
    ),
    st.builds(cluster_binding, st.sampled_from(NAMES), targets, whom),
)  # fmt: skip


def powers(world: AuthorizerHarness) -> set[tuple[str, ...]]:
    """Everything that one of the people may do, in one of the namespaces or everywhere."""
    return {
        (verb, resource, namespace, name)
        for user in PEOPLE
        for verb in (*VERBS, "other")
        for resource in (*RESOURCES, "nodes")
        for namespace in (*NAMESPACES, "")
        for name in ("", "x")
        if world.allows(user, verb, resource, namespace=namespace, name=name)
    }


@settings(max_examples=120)
@given(
    st.lists(attempts, max_size=3), st.lists(st.tuples(st.sampled_from(PEOPLE), attempts, st.booleans()), max_size=8)
)
def test_no_sequence_of_writes_gives_people_more_than_they_had_together(given_: list, tries: list):
    # A picking role of the administrator's is theirs to answer for: who joins it is checked when they join.
    world = AuthorizerHarness(*given_)
    before = powers(world)
    for user, obj, is_deletion in tries:
        old = world.get(obj)
        if is_deletion:
            world.remove(obj)
        elif refusal_of(world, obj, user, old=old) is None:
            world.put(obj)
    assert powers(world) <= before
