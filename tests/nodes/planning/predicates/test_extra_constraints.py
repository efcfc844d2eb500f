"""Who may be planned on what, beyond the scheduling rules: docs/design/nodes.md 5.6, 5.7, 8.4."""

from typing import Any

import numpy as np

from plimsoll.nodes.model.scale_up_plan import ScaleUpOption
from plimsoll.nodes.model.snapshot import CapacityType
from plimsoll.nodes.planning.autoprovisioning.requirements import RequirementReader
from plimsoll.nodes.planning.predicates.extra_constraints import find_allowed_options, reserve_gpu_nodes
from plimsoll.nodes.planning.problem import options as candidates
from plimsoll.objects.api.affinity import Toleration
from plimsoll.objects.api.nodes import Taint
from plimsoll.objects.api.pods import Pod
from tests.nodes.planning.builders import amounts, group, machine, nap, node, pending, pod, policy, snapshot

KIND = machine("m", 4, 16, price=0.2)


def tolerating(value: str) -> Pod:
    return pod(tolerations=(Toleration(key="dedicated", value=value, effect="NoSchedule"),))


def made_for(*pods: Pod, **options: Any) -> list[list[bool]]:
    """For each offered group, which of the pods may be planned on it."""
    rules = nap(**options)
    world = snapshot(*(pending(f"p{index}", pod) for index, pod in enumerate(pods)), machine_types=(KIND,))
    found = candidates.find_options(world, rules).options
    return [
        list(map(bool, row))
        for row in find_allowed_options(found, pods, rules, RequirementReader.from_snapshot(world, rules))
    ]


def test_pods_with_custom_tolerations_keep_to_groups_made_for_them():
    assert made_for(tolerating("ml"), tolerating("web"), pod()) == [
        [True, False, False],
        [False, True, False],
        [False, False, True],
    ]


def test_with_merging_the_larger_set_goes_to_the_smaller_ones_nodes():
    one = Toleration(key="a", operator="Exists", effect="NoSchedule")
    other = Toleration(key="b", operator="Exists", effect="NoSchedule")
    small, large = pod(tolerations=(one,)), pod(tolerations=(one, other))
    assert made_for(small, large) == [[True, False], [False, True]]
    assert made_for(small, large, nap_taints_merge=True) == [[True, True]]


def test_labels_serve_whoever_asks_for_no_others():
    red, blue = pod(selector={"color": "red"}), pod("2", selector={"color": "blue"})
    assert made_for(red, red, blue, pod()) == [[True, True, False, True], [False, False, True, True]]


def test_without_merging_every_selector_has_its_own_group():
    red, plain = pod(selector={"color": "red"}), pod()
    assert made_for(red, plain, nap_label_merge="alpha") == [[True, False], [False, True]]


def offers_of(*groups: Any) -> tuple[ScaleUpOption, ...]:
    return candidates.find_options(snapshot(groups=groups), policy()).options


def test_existing_groups_take_all_pods():
    found = offers_of(group("g", KIND))
    assert find_allowed_options(found, [tolerating("ml"), pod()], policy(), RequirementReader(policy(), ())).all()


def test_spot_is_for_pods_that_select_or_tolerate_it():
    taint = Taint(key="spot", value="true", effect="NoSchedule")
    plain = group("plain", KIND, capacity_type=CapacityType.SPOT)
    template = node("t", amounts(4, 16), taints=(taint,))
    tainted = group("tainted", KIND, capacity_type=CapacityType.SPOT, template=template)
    pods = [
        pod(),
        pod(selector={"cloud.plimsoll.io/capacity-type": "spot"}),
        pod(affinity=[[("karpenter.sh/capacity-type", "In", ["spot"])]]),
        pod(tolerations=(Toleration(key="cloud.google.com/gke-spot", operator="Exists"),)),
        pod(tolerations=(Toleration(key="spot", operator="Exists"),)),
        pod(tolerations=(Toleration(operator="Exists"),)),
        pod(affinity=[[("karpenter.sh/capacity-type", "NotIn", ["on-demand"])]]),
    ]
    found = find_allowed_options(offers_of(plain, tainted), pods, policy(), RequirementReader(policy(), ()))
    assert found.tolist() == [
        [False, True, True, True, False, False, False],
        [False, True, True, True, True, False, False],
    ]


def test_accelerators_are_reserved_for_pods_that_request_them_unless_nothing_else_is_allowed():
    found = offers_of(group("cpu", KIND), group("gpu", machine("g", 8, 30, gpu=1)))
    pods = [pod(), pod(gpu=1), pod("6")]
    by_rules = np.array([[True, False, False], [True, True, True]])
    assert reserve_gpu_nodes(by_rules, found, pods).tolist() == [[True, False, False], [False, True, True]]


def test_without_accelerators_nothing_changes():
    found = offers_of(group("cpu", KIND))
    assert reserve_gpu_nodes(np.array([[True, False]]), found, [pod(), pod()]).tolist() == [[True, False]]
