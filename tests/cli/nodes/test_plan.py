"""`plimsoll plan`: its JSON field by field, its other forms, its options."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from tests.cli.runner import REPOSITORY, plimsoll

if TYPE_CHECKING:
    from pathlib import Path

    from tests.golden.reviewed_sentences import ReviewedSentences

Json = dict[str, Any]


def spec(cpu: Any = 1, **more: Any) -> Json:
    return {"containers": [{"name": "c", "image": "x", "resources": {"requests": {"cpu": str(cpu)}}}], **more}


def story(**more: Any) -> Json:
    """Ten pods of a core, a small and a larger machine type."""
    return {
        "options": {"node-autoprovisioning": True},
        "machineTypes": [
            {"name": "small", "cpu": 4, "memory": "16Gi", "price": 0.2},
            {"name": "large", "cpu": 8, "memory": "16Gi", "price": 0.35},
        ],
        "pods": [{"name": "web", "count": 10, "template": {"spec": spec()}}],
        **more,
    }


def answer(document: Json, *arguments: str) -> Json:
    ended = plimsoll("plan", "-f", "-", "-o", "json", *arguments, stdin=json.dumps(document))
    assert ended.returncode == 0, ended.stderr
    found: Json = json.loads(ended.stdout)
    return found


def reported(document: Json, *arguments: str) -> str:
    ended = plimsoll("plan", "-f", "-", *arguments, stdin=json.dumps(document))
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def cost_line(document: Json) -> str:
    (line,) = (line for line in reported(document).splitlines() if line.startswith("costs "))
    return line


class TestJson:
    def test_fields_stand_in_the_order_of_the_format(self):
        found = answer(story())
        assert list(found) == ["time", "scaleUp"]
        expected = ["result", "plan", "helped", "remaining", "costPerHour", "lowerBoundPerHour"]
        assert [name for name in found["scaleUp"] if name != "labelSets"] == expected
        assert list(found["scaleUp"]["plan"][0]) == [
            "group",
            "machineType",
            "from",
            "to",
            "max",
            "created",
            "zone",
            "labels",
            "taints",
            "capacityType",
            "reason",
            "patterns",
        ]

    def test_patterns_add_up_to_the_nodes_and_the_pods(self):
        found = answer(story())["scaleUp"]
        for scale_up in found["plan"]:
            assert (
                sum(pattern["nodes"] for pattern in scale_up["patterns"])
                == scale_up["to"] - scale_up["from"]
                <= scale_up["max"]
            )
            assert all(pattern["pods"].keys() == {"default/web"} for pattern in scale_up["patterns"])
        pods = sum(p["nodes"] * p["pods"]["default/web"] for scale_up in found["plan"] for p in scale_up["patterns"])
        assert pods == found["helped"] == 10

    def test_cost_is_that_of_what_is_added_and_the_bound_is_below(self):
        found = answer(story())["scaleUp"]
        prices = {"small": 0.2, "large": 0.35}
        cost = sum((scale_up["to"] - scale_up["from"]) * prices[scale_up["machineType"]] for scale_up in found["plan"])
        assert found["costPerHour"] == pytest.approx(cost)
        assert 0 < found["lowerBoundPerHour"] <= found["costPerHour"]

    def test_nothing_waits(self):
        assert answer(story(pods=[]))["scaleUp"] == {
            "result": "NotNeeded",
            "plan": [],
            "helped": 0,
            "remaining": [],
            "costPerHour": 0.0,
            "lowerBoundPerHour": 0.0,
        }

    def test_pods_that_fit_nowhere(self):
        found = answer(story(pods=[{"name": "big", "count": 3, "template": {"spec": spec(20)}}]))["scaleUp"]
        assert (found["result"], found["plan"], found["helped"]) == ("NoOptions", [], 0)
        assert found["remaining"] == [
            {"pods": 3, "reasons": ["Insufficient cpu (small, large): cpu 20 requested, the largest is large with 8"]}
        ]

    def test_nodes_that_are_there_are_reported_beside_the_plan(self):
        group = {"id": "g", "max": 3, "target": 1, "machineType": "small"}
        found = answer(story(options={}, nodeGroups=[group]))["scaleUp"]
        assert found["existing"] == [{"node": "g-0", "pods": {"default/web": 4}}]
        (grown,) = found["plan"]
        assert (grown["from"], grown["to"], grown["max"], grown["created"]) == (1, 3, 3, False)
        assert found["helped"] == 10

    def test_a_zone_is_reported_where_there_is_one(self):
        group = {"id": "g", "max": 3, "machineType": "small", "zone": "b"}
        assert [scale_up["zone"] for scale_up in answer(story(options={}, nodeGroups=[group]))["scaleUp"]["plan"]] == [
            "b"
        ]

    def test_new_groups_are_in_the_zone_that_the_simulated_cloud_would_put_them_in(self):
        assert {scale_up["zone"] for scale_up in answer(story())["scaleUp"]["plan"]} == {"local-a"}

    @pytest.mark.parametrize(
        ("labels", "expected"), [({}, ""), ({"node.kubernetes.io/instance-type": "c5.large"}, "c5.large")]
    )
    def test_machine_type_of_a_group_that_is_only_a_template(self, labels: Json, expected: str):
        template = {"capacity": {"cpu": 4, "memory": "16Gi"}, "labels": labels}
        found = answer(story(options={}, nodeGroups=[{"id": "g", "max": 3, "template": template}]))
        assert [scale_up["machineType"] for scale_up in found["scaleUp"]["plan"]] == [expected]

    def test_seconds_only_when_asked_for(self):
        assert "planSeconds" not in answer(story())["scaleUp"]
        assert answer(story(), "--timing")["scaleUp"]["planSeconds"] > 0

    def test_requests_only_when_there_are_some(self):
        text = (REPOSITORY / "examples/plans/request.yaml").read_text()
        found = json.loads(plimsoll("plan", "-f", "-", "-o", "json", stdin=text).stdout)
        assert list(found["requests"]) == ["ml/nightly"]
        keys = {key for scale_up in found["scaleUp"]["plan"] for p in scale_up["patterns"] for key in p["pods"]}
        assert keys == {"ml/nightly/0", "ml/nightly/1"}

    @pytest.mark.slow
    def test_same_bytes_under_two_hash_seeds(self):
        def run(seed: str) -> bytes:
            command = [sys.executable, "-m", "plimsoll", "plan", "-f", "examples/plans/gpu.yaml", "-o", "json"]
            environment = {**os.environ, "PYTHONHASHSEED": seed, "PLIMSOLL_KERNELS": "plain"}
            return subprocess.run(command, cwd=REPOSITORY, env=environment, capture_output=True, check=True).stdout

        assert run("1") == run("2")


class TestOtherForms:
    def test_yaml_says_the_same_as_json(self):
        assert yaml.safe_load(reported(story(), "-o", "yaml")) == answer(story())

    def test_names_of_the_groups_that_grow(self):
        groups = [scale_up["group"] for scale_up in answer(story())["scaleUp"]["plan"]]
        assert reported(story(), "-o", "name").splitlines() == [f"nodegroup/{group}" for group in groups]

    def test_the_table_lists_added_nodes_their_cost_and_the_remaining_pods(self):
        big = {"name": "big", "count": 2, "template": {"spec": spec(20)}}
        lines = reported(story(pods=[*story()["pods"], big])).splitlines()
        assert lines[0].split() == ["NODE", "GROUP", "MACHINE", "TYPE", "ZONE", "NODES", "PODS", "PER", "HOUR"]
        assert "10 of 12 pods are placed: 10 on 2 new nodes" in lines
        assert "costs 0.5500 USD per hour, the least possible for the pods on new nodes" in lines
        assert lines[-2:] == [
            "2 pods left: default/big (2)",
            "  Insufficient cpu (small, large): cpu 20 requested, the largest is large with 8",
        ]

    def test_a_gap_that_people_do_not_see_is_none(self, reviewed: ReviewedSentences):
        reviewed(cost_line(story()))

    def test_prices_have_the_currency_that_the_file_names(self):
        types = [{**machine, "currency": "EUR"} for machine in story()["machineTypes"]]
        assert "costs 0.5500 EUR per hour" in reported(story(machineTypes=types))

    def test_catalogues_are_merged(self):
        def count_types(*catalogues: str) -> set[str]:
            options = [word for name in catalogues for word in ("--catalogue", name)]
            big = {"name": "big", "count": 1, "template": {"spec": spec(5000)}}
            [left] = answer(story(pods=[big]), *options)["scaleUp"]["remaining"]
            return set(re.findall(r"\d+ machine types", left["reasons"][0]))

        assert count_types("gce-n1", "aws-m6i-c6i-r6i") != count_types("aws-m6i-c6i-r6i")
        assert count_types("gce-n1", "aws-m6i-c6i-r6i") == count_types("aws-m6i-c6i-r6i", "gce-n1")

    def test_prices_that_are_not_given_are_called_estimated(self, reviewed: ReviewedSentences):
        types = [{"name": "small", "cpu": 4, "memory": "16Gi"}]
        reviewed(cost_line(story(machineTypes=types)))

    def test_pods_of_one_controller_are_reported_together(self):
        owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "api-5d9f", "uid": "1", "controller": True}
        pods = [
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": f"api-5d9f-{index}", "namespace": "shop", "ownerReferences": [owner]},
                "spec": spec(20),
            }
            for index in range(3)
        ]
        assert "3 pods left: replicaset/shop/api-5d9f (3)" in reported(story(pods=[], objects=pods))

    def test_long_names_are_shortened_in_the_middle_and_many_groups_are_summed_up(self):
        groups = [
            {
                "id": f"a-very-long-name-of-a-node-group-in-some-account-{index:02}",
                "max": 1,
                "template": {"capacity": {"cpu": 1, "memory": "4Gi"}},
                "price": 1,
            }
            for index in range(40)
        ]
        pods = [{"name": "web", "count": 40, "template": {"spec": spec()}}]
        lines = reported(story(options={}, nodeGroups=groups, pods=pods)).splitlines()
        assert lines[1].startswith("a-very-long-name-of-a…up-in-some-account-00   ")
        assert max(map(len, lines)) < 120
        assert "and 10 nodes in 10 more groups for 10.00 USD per hour; -o json lists them all" in lines
        assert "40 of 40 pods are placed: 40 on 40 new nodes" in lines

    def test_nothing_to_do(self, reviewed: ReviewedSentences):
        reviewed(reported(story(pods=[])))

    def test_a_missing_option_to_allow_new_groups_is_named(self, reviewed: ReviewedSentences):
        reviewed(reported(story(options={})))


class TestFilesAndOptions:
    DUMP: Json = {
        "apiVersion": "v1",
        "kind": "List",
        "items": [{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "namespace": "x"}, "spec": spec()}],
    }

    def test_a_dump_beside_a_file_of_groups(self, tmp_path: Path):
        groups = tmp_path / "groups.yaml"
        groups.write_text("nodeGroups: [{id: g, max: 2, template: {capacity: {cpu: 4, memory: 8Gi}}}]")
        ended = plimsoll("plan", "-f", "-", "-f", groups, "-o", "json", stdin=json.dumps(self.DUMP))
        (one,) = json.loads(ended.stdout)["scaleUp"]["plan"]
        assert (one["group"], one["patterns"]) == ("g", [{"nodes": 1, "pods": {"x/a": 1}}])

    def test_a_dump_in_yaml(self):
        ended = plimsoll("plan", "-f", "-", "--catalogue", "gce-n1", "-o", "json", stdin=yaml.safe_dump(self.DUMP))
        assert json.loads(ended.stdout)["scaleUp"]["helped"] == 1

    def test_a_catalogue_alone_lets_groups_be_made(self):
        assert all(scale_up["created"] for scale_up in answer(self.DUMP, "--catalogue", "gce-n1")["scaleUp"]["plan"])

    def test_an_unknown_catalogue_names_those_there_are(self):
        ended = plimsoll("plan", "-f", "-", "--catalogue", "gce-n9", "-o", "json", stdin=json.dumps(self.DUMP))
        error = json.loads(ended.stderr)["error"]
        assert (ended.returncode, error["path"]) == (2, "--catalogue")
        assert "gce-n1" in error["message"]

    def test_the_expander_of_the_command_line_goes_before_the_files(self):
        document = story(options={"node-autoprovisioning": True, "expander": "cost"})
        assert len(answer(document)["scaleUp"]["plan"]) == 2
        assert len(answer(document, "--expander", "least-nodes")["scaleUp"]["plan"]) == 1

    def test_an_unknown_expander(self):
        ended = plimsoll("plan", "-f", "-", "--expander", "cheapest", "-o", "json", stdin=json.dumps(story()))
        error = json.loads(ended.stderr)["error"]
        assert (ended.returncode, error["path"]) == (2, "--expander")
        assert "least-waste" in error["message"]

    def test_proving_never_costs_more(self):
        plain, proven = answer(story())["scaleUp"], answer(story(), "--prove")["scaleUp"]
        assert proven["costPerHour"] <= plain["costPerHour"]
        assert proven["lowerBoundPerHour"] >= plain["lowerBoundPerHour"]


class TestExplain:
    STORY = story(
        pods=[
            {"name": "web", "count": 3, "template": {"spec": spec()}},
            {"name": "six", "count": 1, "template": {"spec": spec(6)}},
            {"name": "odd", "count": 1, "template": {"spec": spec("-1")}},
        ]
    )

    def test_type_by_type(self):
        lines = reported(self.STORY, "--explain", "six-0").splitlines()
        assert lines[0].startswith("default/six: 1 pod, 1 on new nodes of ")
        rows = [re.split(r" {2,}", line) for line in lines if line.startswith("new group")]
        assert {row[1]: row[4] for row in rows} == {
            "large": "fits",
            "small": "Insufficient cpu: cpu needs 6, 4 left",
        }

    def test_as_json(self):
        found = answer(self.STORY, "--explain", "default/six")
        assert found["asks"] == {"cpu": "6", "pods": "1"}
        assert [option["machineType"] for option in found["offers"] if option["fits"]] == ["large"]
        assert found["machineTypes"] == [{"machineType": "small", "reasons": ["Insufficient cpu: cpu needs 6, 4 left"]}]

    def test_a_pod_no_node_whatever_can_take(self):
        assert "requests[cpu]: must be greater than or equal to 0" in reported(self.STORY, "--explain", "odd")

    def test_nodes_that_are_there(self):
        group = {"id": "g", "max": 1, "target": 1, "machineType": "small"}
        text = reported({**self.STORY, "nodeGroups": [group]}, "--explain", "six")
        assert "existing nodes: 0/1 nodes are available: 1 Insufficient cpu" in text
        assert "not offered: g: max size reached" in text

    def test_a_pod_that_is_not_planned_for(self):
        gated = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "g", "namespace": "default"},
            "spec": spec(schedulingGates=[{"name": "quota"}]),
        }
        document = story(objects=[gated])
        assert "1 pod not planned: held back by scheduling gates" in reported(document)
        ended = plimsoll("plan", "-f", "-", "--explain", "g", stdin=json.dumps(document))
        assert (ended.returncode, ended.stdout) == (2, "")
        assert "default/g is not planned: held back by scheduling gates" in ended.stderr

    def test_a_name_that_is_not_used(self):
        ended = plimsoll("plan", "-f", "-", "--explain", "wbe", "-o", "json", stdin=json.dumps(self.STORY))
        error = json.loads(ended.stderr)["error"]
        assert (ended.returncode, error["path"]) == (2, "--explain")
        assert "did you mean default/web?" in error["message"]


def test_help_has_examples():
    text = plimsoll("plan", "--help").stdout
    assert "plimsoll plan -f examples/plans/mixed.yaml" in text
    assert "--explain" in text


class TestAttachLimits:
    """New nodes attach as many volumes as the CSINode of their group's node says (docs/design/nodes.md 6.3)."""

    DRIVER = "csi.example.com"

    def volumes(self, limit: int) -> list[Json]:
        wait = {"provisioner": self.DRIVER, "volumeBindingMode": "WaitForFirstConsumer"}
        driver = {"name": self.DRIVER, "nodeID": "g-0", "allocatable": {"count": limit}}
        claims = [
            {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "metadata": {"name": f"data-{index}", "namespace": "default"},
                "spec": {
                    "storageClassName": "fast",
                    "accessModes": ["ReadWriteOnce"],
                    "resources": {"requests": {"storage": "1Gi"}},
                },
                "status": {"phase": "Pending"},
            }
            for index in range(6)
        ]
        return [
            {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "fast"}, **wait},
            {
                "apiVersion": "storage.k8s.io/v1",
                "kind": "CSINode",
                "metadata": {"name": "g-0"},
                "spec": {"drivers": [driver]},
            },
            *claims,
        ]

    @pytest.mark.parametrize(("limit", "nodes"), [(2, 2), (4, 1)])
    def test_of_new_nodes(self, limit: int, nodes: int):
        group = {"id": "g", "max": 9, "target": 1, "machineType": "large"}
        pods = [
            {
                "name": f"db-{index}",
                "count": 1,
                "template": {
                    "spec": spec(1, volumes=[{"name": "data", "persistentVolumeClaim": {"claimName": f"data-{index}"}}])
                },
            }
            for index in range(6)
        ]
        found = answer(story(options={}, nodeGroups=[group], pods=pods, objects=self.volumes(limit)))["scaleUp"]
        assert found["helped"] == 6
        assert [scale_up["to"] - scale_up["from"] for scale_up in found["plan"]] == [nodes]


class TestRequests:
    """What one loop would answer to ProvisioningRequests."""

    ATOMIC = "best-effort-atomic-scale-up.autoscaling.x-k8s.io"
    CHECK = "check-capacity.autoscaling.x-k8s.io"

    def objects(self, names: list[str], kind: str, *, pods: int = 1, **parameters: str) -> list[Json]:
        template = {
            "apiVersion": "v1",
            "kind": "PodTemplate",
            "metadata": {"name": "t", "namespace": "default"},
            "template": {"spec": spec()},
        }
        requests = [
            {
                "apiVersion": "autoscaling.x-k8s.io/v1",
                "kind": "ProvisioningRequest",
                "metadata": {"name": name, "namespace": "default"},
                "spec": {
                    "provisioningClassName": kind,
                    "podSets": [{"count": pods, "podTemplateRef": {"name": "t"}}],
                    "parameters": parameters,
                },
            }
            for name in names
        ]
        return [template, *requests]

    def conditions(self, found: Json, name: str = "default/r") -> dict[str, tuple[str, str]]:
        return {
            condition["type"]: (condition["status"], condition["reason"])
            for condition in found["requests"][name]["conditions"]
        }

    def test_many_small_ones_share_nodes_and_money(self):
        """N43."""
        names = [f"r{number}" for number in range(500)]
        types = [{"name": "n1-standard-4", "cpu": 4, "memory": "15Gi", "price": 0.189999}]
        found = answer(story(pods=[], machineTypes=types, objects=self.objects(names, self.ATOMIC)))
        assert [(scale_up["from"], scale_up["to"]) for scale_up in found["scaleUp"]["plan"]] == [(0, 125)]
        details = [request["details"] for request in found["requests"].values()]
        assert sum(sum(json.loads(detail["nodeGroups"]).values()) for detail in details) == 125
        cost = sum(float(detail["planCostPerHour"]) for detail in details)
        assert cost == pytest.approx(found["scaleUp"]["costPerHour"], abs=1e-6)
        bound = sum(float(detail["costLowerBoundPerHour"]) for detail in details)
        assert bound == pytest.approx(found["scaleUp"]["lowerBoundPerHour"], abs=1e-6)

    @pytest.mark.parametrize(
        ("pods", "parameters", "expected"),
        [
            (10, {}, {"Provisioned": ("True", "CapacityIsFound")}),
            (13, {}, {"Provisioned": ("False", "CapacityIsNotFound")}),
            (13, {"noRetry": "true"}, {"Failed": ("True", "CapacityIsNotFound")}),
        ],
    )
    def test_checks_are_answered_and_add_nothing(self, pods: int, parameters: Json, expected: Json):
        """N03, N04, N06."""
        group = {"id": "g", "max": 10, "target": 3, "machineType": "small"}
        objects = self.objects(["r"], self.CHECK, pods=pods, **parameters)
        found = answer(story(pods=[], options={}, nodeGroups=[group], objects=objects))
        assert self.conditions(found) == {"Accepted": ("True", "Accepted"), **expected}
        assert (found["scaleUp"]["result"], found["scaleUp"]["plan"]) == ("NotNeeded", [])

    def test_the_condition_of_the_first_design(self):
        """N41."""
        group = {"id": "g", "max": 10, "target": 1, "machineType": "small"}
        objects = self.objects(["r"], "check-capacity.kubernetes.io", pods=5)
        found = self.conditions(answer(story(pods=[], options={}, nodeGroups=[group], objects=objects)))
        assert found["CapacityAvailable"] == found["Provisioned"] == ("False", "CapacityIsNotFound")

    def test_room_is_kept_until(self):
        group = {"id": "g", "max": 10, "target": 1, "machineType": "small"}
        start = "2026-01-01T00:00:00Z"
        objects = self.objects(["r"], self.CHECK, BookingDurationSeconds="60")
        found = answer(story(pods=[], options={}, start=start, nodeGroups=[group], objects=objects))
        assert found["requests"]["default/r"]["details"] == {"bookedUntil": "2026-01-01T00:01:00Z"}

    def test_a_missing_template_fails_one_and_not_the_others(self):
        """N18."""
        lost = self.objects(["a"], self.ATOMIC)[1]
        lost["spec"]["podSets"][0]["podTemplateRef"]["name"] = "gone"
        found = answer(story(pods=[], objects=[lost, *self.objects(["b"], self.ATOMIC)]))
        (failed,) = found["requests"]["default/a"]["conditions"]
        assert (failed["type"], failed["status"], failed["reason"]) == ("Failed", "True", "FailedToCreatePods")
        assert "default/gone" in failed["message"]
        assert self.conditions(found, "default/b")["Provisioned"] == ("True", "CapacityIsProvisioned")

    def test_a_new_group_says_why_it_is_made(self):
        """N42."""
        group = {"id": "g", "max": 2, "template": {"capacity": {"cpu": 4, "memory": "16Gi"}}, "price": 0.2}
        objects = self.objects(["r"], self.ATOMIC)
        objects[0]["template"]["spec"]["nodeSelector"] = {"team": "x"}
        found = answer(story(pods=[], nodeGroups=[group], objects=objects))
        (grown,) = found["scaleUp"]["plan"]
        assert (grown["created"], grown["labels"], grown["taints"]) == (True, {"team": "x"}, [])
        assert "nodes labelled team=x are needed (g)" in grown["reason"]
        assert "nodes labelled team=x are needed (g)" in found["requests"]["default/r"]["conditions"][1]["message"]

    def test_what_stops_an_atomic_request_is_named(self):
        """N45."""
        options = {"node-autoprovisioning": True, "max-cpu": 8}
        found = answer(story(pods=[], options=options, objects=self.objects(["r"], self.ATOMIC, pods=9)))
        assert found["scaleUp"]["plan"] == []
        reported = found["requests"]["default/r"]["conditions"][1]
        assert (reported["status"], reported["reason"]) == ("False", "CapacityIsNotFound")
        assert "max cluster cpu limit reached" in reported["message"]
        assert list(json.loads(found["requests"]["default/r"]["details"]["blocking"])) == ["0"]

    def test_the_table_has_a_line_for_each(self):
        lines = reported(story(pods=[], objects=self.objects(["r"], self.ATOMIC))).splitlines()
        assert any(line.startswith("request default/r: Provisioned=True, CapacityIsProvisioned: ") for line in lines)

    def test_a_check_is_not_explained(self, reviewed: ReviewedSentences):
        document = json.dumps(story(objects=self.objects(["r"], self.CHECK)))
        ended = plimsoll("plan", "-f", "-", "--explain", "default/r/0", stdin=document)
        assert ended.returncode == 2
        reviewed(ended.stderr)


def test_taints_of_a_group_that_is_made():
    """N30."""
    tolerations = [{"key": "dedicated", "operator": "Equal", "value": "ml", "effect": "NoSchedule"}]
    pods = [{"name": "p", "count": 1, "template": {"spec": spec(tolerations=tolerations)}}]
    (grown,) = answer(story(pods=pods))["scaleUp"]["plan"]
    assert grown["taints"] == [{"key": "dedicated", "value": "ml", "effect": "NoSchedule"}]
    assert grown["capacityType"] == "on-demand"


def test_accelerators_of_the_catalogues_own_label_count_for_their_limit():
    label = {"cloud.plimsoll.io/accelerator": "t4"}
    types = [{"name": "gpu", "cpu": 8, "memory": "32Gi", "gpu": {"nvidia.com/gpu": 1}, "price": 1.0, "labels": label}]
    body = {"containers": [{"name": "c", "image": "x", "resources": {"limits": {"nvidia.com/gpu": 1}}}]}
    pods = [{"name": "train", "count": 5, "template": {"spec": body}}]
    options = {"node-autoprovisioning": True, "gpu-total": "t4:0:3"}
    found = answer(story(options=options, machineTypes=types, pods=pods))["scaleUp"]
    assert (found["helped"], found["remaining"][0]["pods"]) == (3, 2)


def test_proving_closes_a_gap_that_pouring_leaves():
    """Beside six of ten cores there is no room for five: whole pods need eight nodes, poured ones fewer."""
    types = [{"name": "ten", "cpu": 10, "memory": "64Gi", "price": 1.0}]
    pods = [{"name": f"p{cpu}", "count": 5, "template": {"spec": spec(cpu)}} for cpu in (5, 6)]
    document = story(machineTypes=types, pods=pods)
    quick, proven = answer(document)["scaleUp"], answer(document, "--prove")["scaleUp"]
    assert quick["lowerBoundPerHour"] < 7.5
    assert proven["lowerBoundPerHour"] == pytest.approx(8.0)
    assert proven["costPerHour"] == pytest.approx(8.0)
