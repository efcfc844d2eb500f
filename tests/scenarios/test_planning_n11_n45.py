"""Scenarios of docs/design/nodes.md section 15 that are pure planning, through `plimsoll plan`."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any, ClassVar

import pytest

from tests.scenarios.planning import (
    NAP,
    Json,
    group,
    left,
    machine,
    n1,
    node,
    planned,
    pods,
    reasons,
    request,
    running,
    shape,
    sizes,
)

if TYPE_CHECKING:
    from tests.golden.reviewed_sentences import ReviewedSentences

REQUESTS: Json = {"enable-provisioning-requests": True}


def condition(answer: Json, name: str = "default/r") -> tuple[str, str]:
    found = next(
        condition for condition in answer["requests"][name]["conditions"] if condition["type"] == "Provisioned"
    )
    return found["status"], found["reason"]


def asked_of(cluster: Json, *sets: tuple[int, Json], **options: Any) -> Json:
    """The answer to one atomic request."""
    return planned({"options": {**REQUESTS, **options}, **cluster, "objects": request("r", *sets)})


class TestN11AtomicExactFit:
    ONE_GROUP: ClassVar[Json] = {"nodeGroups": [group("g", 4, 16)]}

    def test_n11a_forty_pods_take_ten_nodes(self):
        answer = planned(
            {"options": REQUESTS, "nodeGroups": [group("g", 4, 16)], "objects": request("r", (40, shape(1, 1)))}
        )
        assert sizes(answer) == {"g": 10}
        assert condition(answer) == ("True", "CapacityIsProvisioned")

    def test_n11b_one_too_many_changes_nothing(self):
        answer = planned(
            {"options": REQUESTS, "nodeGroups": [group("g", 4, 16)], "objects": request("r", (41, shape(1, 1)))}
        )
        assert sizes(answer) == {}
        assert condition(answer) == ("False", "CapacityIsNotFound")

    def test_n11c_the_node_total_counts(self):
        options = {**REQUESTS, "max-nodes-total": 9}
        answer = planned(
            {"options": options, "nodeGroups": [group("g", 4, 16)], "objects": request("r", (40, shape(1, 1)))}
        )
        assert sizes(answer) == {}
        assert condition(answer) == ("False", "CapacityIsNotFound")
        assert "max-nodes-total" in reasons(answer)


class TestN12AtomicUsesWhatIsThere:
    @pytest.mark.parametrize(
        ("count", "to", "reason"), [(12, {"g": 3}, "CapacityIsProvisioned"), (8, {}, "CapacityIsFound")]
    )
    def test_n12(self, count: int, to: Json, reason: str):
        cluster = {"options": REQUESTS, "nodeGroups": [group("g", 4, 16, target=2)]}
        answer = planned({**cluster, "objects": request("r", (count, shape(1, 1)))})
        assert sizes(answer) == to
        assert condition(answer) == ("True", reason)


class TestN14TwoShapesInOneRequest:
    def scenario(self, gpu_max: int) -> Json:
        taint = {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}
        groups = [
            group("cpu", 8, 32),
            group("gpu", 8, 64, max=gpu_max, resources={"nvidia.com/gpu": 2}, taints=[taint]),
        ]
        tolerations = [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}]
        a = {**shape(2, 8, **{"nvidia.com/gpu": 1}), "tolerations": tolerations}
        return {"options": REQUESTS, "nodeGroups": groups, "objects": request("r", (4, a), (8, shape(2, 4)))}

    def test_n14_both_groups_grow(self):
        answer = planned(self.scenario(4))
        assert sizes(answer) == {"gpu": 2, "cpu": 2}
        assert condition(answer)[0] == "True"

    def test_n14_one_gpu_node_is_too_few_for_anything(self):
        answer = planned(self.scenario(1))
        assert sizes(answer) == {}
        assert condition(answer) == ("False", "CapacityIsNotFound")


class TestN15BeyondAThousandNodes:
    def test_n15_one_call_for_fifteen_hundred(self):
        scenario = {
            "options": REQUESTS,
            "nodeGroups": [group("g", 4, 16, max=5000)],
            "objects": request("r", (6000, shape(1, 1))),
        }
        assert sizes(planned(scenario)) == {"g": 1500}

    def test_n15_an_explicit_limit_stops_it(self):
        options = {**REQUESTS, "max-nodes-per-scaleup": 1000}
        scenario = {
            "options": options,
            "nodeGroups": [group("g", 4, 16, max=5000)],
            "objects": request("r", (6000, shape(1, 1))),
        }
        answer = planned(scenario)
        assert sizes(answer) == {}
        assert condition(answer)[0] == "False"


def test_n20_ordinary_pods_and_a_request_are_both_served():
    scenario = {"options": REQUESTS, "nodeGroups": [group("g", 4, 16, max=50)], "pods": [pods("web", 4, 1, 1)]}
    answer = planned({**scenario, "objects": request("r", (4, shape(1, 1)))})
    assert sizes(answer) == {"g": 2}
    assert condition(answer)[0] == "True"


class TestN21TheLargestRequest:
    def test_n21_one_shape_in_32_sets(self):
        sets = [(16384, shape(1, 2)) for _ in range(32)]
        groups = [group("g", 32, 128, max=20000)]
        answer = planned({"options": REQUESTS, "nodeGroups": groups, "objects": request("r", *sets)})
        assert sizes(answer) == {"g": 16384}
        assert answer["scaleUp"]["helped"] == 524288

    def test_n21_random_shapes_by_auto_provisioning_stay_near_the_bound(self):
        chance = random.Random(21)
        sets = []
        for _ in range(32):
            cpu = chance.randint(250, 7900)
            sets.append((16384, shape(f"{cpu}m", cpu / 1000 * chance.uniform(0.8, 7.5))))
        types = [
            machine_type
            for family in ("highcpu", "standard", "highmem")
            for machine_type in n1(1, 2, 4, 8, 16, 32, 64, family=family)
        ]
        options = {
            **NAP,
            **REQUESTS,
            "max-autoprovisioned-node-group-count": 30,
            "autoprovisioned-group-max-size": 100000,
        }
        answer = planned({"options": options, "machineTypes": types, "objects": request("r", *sets)})
        reported = answer["scaleUp"]
        assert reported["helped"] == 524288
        assert reported["lowerBoundPerHour"] <= reported["costPerHour"] <= 1.02 * reported["lowerBoundPerHour"]


def test_n22_thirty_thousand_pods_in_three_hundred_shapes():
    chance = random.Random(22)
    types = [
        machine(f"t{i}", cores, cores * ratio)
        for i, (cores, ratio) in enumerate((c, r) for c in (2, 4, 8, 16, 32, 48, 64, 96) for r in (1, 2, 4, 6, 8))
    ]
    entries = []
    for number in range(300):
        cpu = chance.randint(100, 4000)
        selector = {"nodeSelector": {"pool": f"p{number % 5}"}}
        entries.append(pods(f"s{number}", 100, f"{cpu}m", cpu / 1000 * chance.uniform(0.8, 7.5), **selector))
    options = {
        **NAP,
        "max-autoprovisioned-node-group-count": 60,
        "max-node-groups": 60,
        "autoprovisioned-group-max-size": 5000,
    }
    answer = planned({"options": options, "machineTypes": types, "pods": entries})
    reported = answer["scaleUp"]
    assert reported["helped"] == 30000
    assert len(reported["plan"]) <= 60
    assert reported["costPerHour"] <= 1.05 * reported["lowerBoundPerHour"]


def worked_example(**more: Any) -> Json:
    """The cluster of docs/design/nodes.md 5.4, all nodes full."""
    nodes = [
        *(node(f"main-{i}", "main", 2, 7.5) for i in range(2)),
        node("as-0", "as", 16, 60),
        *(node(f"nap-{i}", "nodeautoprovisioning_n1-highmem4_1234129", 4, 26) for i in range(2)),
    ]
    fillers = [
        running(f"on-{node['metadata']['name']}", node["metadata"]["name"], node["status"]["capacity"]["cpu"], 0.5)
        for node in nodes
    ]
    groups = [
        {"id": "main", "target": 2, "max": 2, "machineType": "n1-standard-2", "autoscaled": False},
        {"id": "as", "target": 1, "max": 2, "machineType": "n1-standard-16"},
        {
            "id": "nodeautoprovisioning_n1-highmem4_1234129",
            "target": 2,
            "max": 1000,
            "machineType": "n1-highmem-4",
            "autoprovisioned": True,
        },
    ]
    types = [*n1(1, 2, 4, 16), *n1(4, family="highmem")]
    options = {**NAP, "nodes": "0:2:as", **more.pop("options", {})}
    return {"options": options, "machineTypes": types, "nodeGroups": groups, "objects": [*nodes, *fillers], **more}


class TestN23N24Limits:
    def test_n23_max_cpu_below_what_is_there_adds_nothing_and_says_so(self, reviewed: ReviewedSentences):
        answer = planned(worked_example(options={"max-cpu": 5}, pods=[pods("p", 10, 1, 1)]))
        assert (sizes(answer), left(answer)) == ({}, 10)
        reviewed(reasons(answer))

    def test_n24a_only_the_group_that_fits_grows(self):
        answer = planned(worked_example(options={"max-cpu": 32}, pods=[pods("p", 1, 3, 20)]))
        assert sizes(answer) == {"nodeautoprovisioning_n1-highmem4_1234129": 3}

    def test_n24b_a_new_group_up_to_the_limit(self):
        options = {"max-cpu": 32, "machine-types": "n1-standard-1"}
        answer = planned(worked_example(options=options, pods=[pods("p", 6, 1, 3, nodeSelector={"tier": "small"})]))
        assert (sizes(answer), left(answer)) == ({"n1-standard-1": 4}, 2)

    def test_n24c_the_big_group_grows_by_one(self):
        answer = planned(worked_example(options={"max-cpu": 80}, pods=[pods("p", 1, 14, 50)]))
        assert sizes(answer) == {"as": 2}

    def test_n24d_thirteen_more_of_one_type_in_all(self):
        options = {"max-cpu": 80, "machine-types": "n1-highmem-4", "nodes": "0:1:as"}
        answer = planned(worked_example(options=options, pods=[pods("p", 40, 3, 20)]))
        assert sum(scale_up["to"] - scale_up["from"] for scale_up in answer["scaleUp"]["plan"]) == 13
        assert left(answer) == 27


class TestN26N28Profiles:
    TYPES = n1(1, 2, 4, 8, 16)

    def test_n26_one_group_of_the_type_that_fits(self):
        answer = planned({"options": NAP, "machineTypes": self.TYPES, "pods": [pods("p", 1, 12, 40)]})
        (entry,) = answer["scaleUp"]["plan"]
        assert (entry["machineType"], entry["to"], entry["created"]) == ("n1-standard-16", 1, True)
        assert entry["group"].startswith("nodeautoprovisioning")
        assert (entry["labels"], entry["taints"]) == ({}, [])

    def test_n27_a_selector_becomes_a_label(self):
        entry = pods("p", 1, 1, 1, nodeSelector={"team": "red"})
        (made,) = planned({"options": NAP, "machineTypes": self.TYPES, "pods": [entry]})["scaleUp"]["plan"]
        assert (made["machineType"], made["labels"]) == ("n1-standard-1", {"team": "red"})

    def test_n27_a_machine_type_in_the_selector_is_no_label(self):
        entry = pods("p", 1, 1, 1, nodeSelector={"node.kubernetes.io/instance-type": "n1-standard-4"})
        (made,) = planned({"options": NAP, "machineTypes": self.TYPES, "pods": [entry]})["scaleUp"]["plan"]
        assert (made["machineType"], made["labels"]) == ("n1-standard-4", {})

    @pytest.mark.parametrize(
        ("other", "options", "groups"),
        [
            ({"color": "blue"}, NAP, 2),
            ({"disk": "ssd"}, NAP, 1),
            ({"disk": "ssd"}, {**NAP, "nap-label-merge": "alpha"}, 2),
        ],
    )
    def test_n28_selectors_that_agree_share_a_group(self, other: Json, options: Json, groups: int):
        entries = [pods("a", 1, 1, 1, nodeSelector={"color": "red"}), pods("b", 1, 1, 1, nodeSelector=other)]
        answer = planned({"options": options, "machineTypes": self.TYPES, "pods": entries})
        assert (len(answer["scaleUp"]["plan"]), answer["scaleUp"]["helped"]) == (groups, 2)


class TestN30Taints:
    def tolerating(self, name: str, value: str) -> Json:
        toleration = {"key": "dedicated", "operator": "Equal", "value": value, "effect": "NoSchedule"}
        return pods(name, 1, 1, 1, tolerations=[toleration])

    def test_n30_each_toleration_gets_nodes_of_its_own(self):
        entries = [self.tolerating("ml", "ml"), self.tolerating("web", "web"), pods("plain", 1, 1, 1)]
        answer = planned({"options": NAP, "machineTypes": n1(1, 2, 4), "pods": entries})
        assert (len(answer["scaleUp"]["plan"]), answer["scaleUp"]["helped"]) == (3, 3)

    def test_n30_without_taints_one_group_serves_all(self):
        entries = [self.tolerating("ml", "ml"), self.tolerating("web", "web"), pods("plain", 1, 1, 1)]
        answer = planned({"options": {**NAP, "nap-taints": "none"}, "machineTypes": n1(4), "pods": entries})
        assert len(answer["scaleUp"]["plan"]) == 1


def test_n32_no_group_beyond_the_limit_and_one_when_it_is_raised():
    there = {"nodeGroups": [group("g", 8, 30, target=1, max=1)], "machineTypes": n1(1), "pods": [pods("p", 1, 1, 1)]}
    there["objects"] = [running("busy", "g-0", 8, 1)]
    answer = planned({"options": {**NAP, "max-cpu": 8}, **there})
    assert sizes(answer) == {}
    assert "cpu limit" in reasons(answer)
    assert sizes(planned({"options": {**NAP, "max-cpu": 9}, **there})) == {"n1-standard-1": 1}


def test_n34_an_atomic_request_takes_the_cheapest_mix_of_new_groups():
    options = {**NAP, **REQUESTS, "max-cpu": 64}
    asked = request("r", (6, {**shape(3, 10), "nodeSelector": {"pool": "batch"}}))
    answer = planned({"options": options, "machineTypes": n1(4, 16), "objects": asked})
    assert sizes(answer) == {"n1-standard-4": 1, "n1-standard-16": 1}
    assert answer["scaleUp"]["costPerHour"] == pytest.approx(0.949995)
    assert all(scale_up["labels"] == {"pool": "batch"} for scale_up in answer["scaleUp"]["plan"])


class TestN35Caps:
    def scenario(self, **options: Any) -> Json:
        groups = [
            {
                "id": "nodeautoprovisioning_a",
                "machineType": "n1-standard-1",
                "max": 5,
                "autoprovisioned": True,
                "template": {"labels": {"color": "red"}},
            },
            *({"id": f"g{i}", "machineType": "n1-standard-1", "max": 0} for i in range(2)),
        ]
        entry = pods("p", 1, 0.5, 1, nodeSelector={"color": "blue"})
        return {"options": {**NAP, **options}, "machineTypes": n1(1), "nodeGroups": groups, "pods": [entry]}

    def test_n35_the_cap_on_own_groups_is_named(self):
        answer = planned(self.scenario(**{"max-autoprovisioned-node-group-count": 1}))
        assert sizes(answer) == {}
        assert "max-autoprovisioned-node-group-count" in reasons(answer)

    def test_n35_the_cap_on_all_groups_is_named(self):
        answer = planned(self.scenario(**{"max-autoprovisioned-node-group-count": 2, "max-node-groups": 3}))
        assert sizes(answer) == {}
        assert "max-node-groups" in reasons(answer)


class TestN36Choosing:
    def first(self, **options: Any) -> Json:
        groups = [group("A", 4, 16, price=0.20), group("B", 16, 16, price=0.50)]
        priorities = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "cluster-autoscaler-priority-expander", "namespace": "kube-system"},
            "data": {"priorities": '10: ["^A$"]\n5: [".*"]\n'},
        }
        return {"options": options, "nodeGroups": groups, "objects": [priorities], "pods": [pods("p", 10, 1, 1)]}

    @pytest.mark.parametrize(
        ("expander", "wanted"),
        [
            ("least-waste", {"B": 1}),
            ("least-nodes", {"B": 1}),
            ("priority", {"A": 3}),
            ("cost", {"B": 1}),
            ("priority,cost", {"A": 3}),
        ],
    )
    def test_n36_ten_pods_by_expander(self, expander: str, wanted: Json):
        assert sizes(planned(self.first(expander=expander))) == wanted

    def second(self, **options: Any) -> Json:
        groups = [group("X", 4, 16, price=0.20), group("Y", 16, 64, price=0.72)]
        return {"options": options, "nodeGroups": groups, "pods": [pods("big", 5, 3, 3), pods("small", 4, 1, 1)]}

    def test_n36_the_cheapest_mix(self):
        answer = planned(self.second(expander="cost"))
        assert sizes(answer) == {"X": 1, "Y": 1}
        assert answer["scaleUp"]["costPerHour"] == pytest.approx(0.92)

    def test_n36_the_compatible_planner_takes_one_group(self):
        assert sizes(planned(self.second(planner="compatible", expander="least-nodes"))) == {"Y": 2}


class TestN42WhyAutoProvisioningIsNeeded:
    TYPES = [*n1(4, 8), machine("gpu-8", 8, 30, price=1.0, gpu={"nvidia.com/gpu": 1})]

    @pytest.mark.parametrize(
        ("spec", "target", "made"),
        [
            (shape(6, 1), 0, "n1-standard-8"),
            ({**shape(1, 1), "nodeSelector": {"team": "x"}}, 0, "n1-standard-4"),
            (shape(1, 1, **{"nvidia.com/gpu": 1}), 0, "gpu-8"),
            (shape(1, 1), 2, "n1-standard-4"),
        ],
        ids=["a bigger type", "a label", "a gpu", "a full group"],
    )
    def test_n42(self, spec: Json, target: int, made: str):
        groups = [group("g", 4, 16, target=target, max=2)]
        full = [running(f"busy-{i}", f"g-{i}", 4, 1) for i in range(target)]
        asked = [*full, *request("r", (1, spec))]
        answer = planned(
            {"options": {**NAP, **REQUESTS}, "machineTypes": self.TYPES, "nodeGroups": groups, "objects": asked}
        )
        assert sizes(answer) == {made: 1}
        assert condition(answer)[0] == "True"


def test_n43_five_hundred_small_requests_need_no_more_than_they_ask():
    objects = [manifest for number in range(500) for manifest in request(f"r{number}", (1, shape(1, 1)))]
    answer = planned({"options": {**NAP, **REQUESTS}, "machineTypes": n1(4), "objects": objects})
    assert sizes(answer) == {"n1-standard-4": 125}
    assert all(condition(answer, f"default/r{number}")[0] == "True" for number in range(500))


@pytest.mark.parametrize(("limit", "named"), [({"max-cpu": 16}, "cpu"), ({"max-memory": 70}, "memory")])
def test_n45_limits_of_the_cluster_stop_an_atomic_request(limit: Json, named: str):
    full = [running(f"busy-{i}", f"g-{i}", 4, 1) for i in range(2)]
    scenario = {
        "options": {**NAP, **REQUESTS, **limit},
        "machineTypes": n1(4),
        "nodeGroups": [{"id": "g", "machineType": "n1-standard-4", "target": 2, "max": 2}],
        "objects": [*full, *request("r", (3, shape(3, 2)))],
    }
    answer = planned(scenario)
    assert sizes(answer) == {}
    assert condition(answer) == ("False", "CapacityIsNotFound")
    assert f"max cluster {named} limit reached" in reasons(answer)
