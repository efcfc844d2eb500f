"""Taints from tolerations: docs/design/nodes.md 5.7."""

from typing import Any

import pytest

from plimsoll.nodes.planning.autoprovisioning.taints import TaintSet, TransientTaints, choose_taints, merge_taint_sets
from plimsoll.objects.api.affinity import Toleration
from plimsoll.objects.api.nodes import Taint
from tests.nodes.planning.builders import policy

ML = Taint(key="dedicated", value="ml", effect="NoSchedule")


def taints(
    *tolerations: Toleration, how: str = "custom", selector: dict[str, str] | None = None, **more: Any
) -> TaintSet:
    passing = TransientTaints(policy(startup_taint="starting").pods)
    return choose_taints(tolerations, selector=selector or {}, how=how, transient=passing, **more)


def equal(key: str, value: str = "", effect: str = "NoSchedule") -> Toleration:
    return Toleration(key=key, operator="Equal", value=value, effect=effect)


def test_a_custom_toleration_becomes_a_taint():
    assert taints(equal("dedicated", "ml")) == (ML,)


def test_exists_gives_an_empty_value_and_no_effect_means_no_schedule():
    assert taints(Toleration(key="dedicated", operator="Exists")) == (Taint(key="dedicated", effect="NoSchedule"),)


def test_no_operator_means_equal():
    assert taints(Toleration(key="dedicated", value="ml", effect="NoExecute")) == (
        Taint(key="dedicated", value="ml", effect="NoExecute"),
    )


@pytest.mark.parametrize(
    "toleration",
    [
        Toleration(key="node.kubernetes.io/not-ready", operator="Exists", effect="NoExecute"),
        equal("node.cloudprovider.kubernetes.io/uninitialized", "true"),
        equal("node-role.kubernetes.io/control-plane"),
        equal("ToBeDeletedByClusterAutoscaler"),
        equal("DeletionCandidateOfClusterAutoscaler"),
        equal("startup-taint.cluster-autoscaler.kubernetes.io/a"),
        equal("status-taint.cluster-autoscaler.kubernetes.io/a"),
        equal("ignore-taint.cluster-autoscaler.kubernetes.io/a"),
        equal("starting"),
        equal("nvidia.com/gpu", "present"),
        Toleration(operator="Exists"),
        equal("dedicated", "ml", effect="PreferNoSchedule"),
        Toleration(key="dedicated", operator="Exists", effect="NoExecute", toleration_seconds=60),
    ],
    ids=str,
)
def test_what_is_not_custom_gives_no_taint(toleration: Toleration):
    assert taints(toleration) == ()


def test_what_machine_types_are_tainted_with_is_not_added_again():
    assert taints(equal("spot", "true"), provided={"spot"}) == ()


def test_a_node_has_one_taint_a_key_and_effect():
    assert taints(equal("dedicated", "web"), equal("dedicated", "ml")) == (ML,)


def test_matched_asks_for_a_selector_that_says_the_same():
    assert taints(equal("dedicated", "ml"), how="matched") == ()
    assert taints(equal("dedicated", "ml"), how="matched", selector={"dedicated": "web"}) == ()
    assert taints(equal("dedicated", "ml"), how="matched", selector={"dedicated": "ml"}) == (ML,)


def test_none_gives_none():
    assert taints(equal("dedicated", "ml"), how="none") == ()


def test_the_order_of_tolerations_does_not_matter():
    one, other = equal("b"), equal("a")
    assert taints(one, other) == taints(other, one)


def test_joined_sets_go_to_the_smallest_within_them_but_never_to_none():
    a, b, c = (Taint(key=key, effect="NoSchedule") for key in "abc")
    assert merge_taint_sets([(), (a,), (a, b), (a, b, c), (c,)]) == {
        (): (),
        (a,): (a,),
        (c,): (c,),
        (a, b): (a,),
        (a, b, c): (a,),
    }
