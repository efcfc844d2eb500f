"""`plimsoll fleet evaluate`: docs/design/formats/fleet-evaluate.md, and the scenarios F that one pass decides."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.cli.fleet.evaluate_documents import (
    evaluate,
    make_cluster_row,
    make_document,
    make_kafka_row,
    run_evaluate,
)
from tests.cli.runner import plimsoll

SECTIONS = ["scale_up", "scale_down", "deprovisioning", "placement", "prewarming"]


def decide(document: dict[str, Any]) -> list[tuple[str, str]]:
    found = evaluate(document)["scale_up"]["evaluations"]
    return [(evaluation["decision"], evaluation["reason"]) for evaluation in found]


def fill(cluster: str, number: int) -> dict[str, Any]:
    return make_kafka_row(f"on-{cluster}", cluster, count=number)


# ---- the form of the result


def test_the_sections_are_those_that_are_asked_for_in_a_fixed_order():
    assert list(evaluate(make_document())) == SECTIONS
    assert list(evaluate(make_document(evaluate=["prewarming", "scale_up"]))) == ["scale_up", "prewarming"]
    assert evaluate(make_document(evaluate=[])) == {}


def test_f01_a_region_without_clusters_gets_one():
    found = evaluate(make_document())["scale_up"]
    assert found["enabled"] is True
    assert found["register"] == [
        {
            "cloud_provider": "aws",
            "region": "us-east-1",
            "supported_instance_type": "standard",
            "multi_az": True,
            "status": "cluster_accepted",
            "provider_type": "ocm",
            "cluster_type": "managed",
            "machine_pools": [
                {"id": "kafka-standard", "machine_type": "r5.xlarge", "min_replicas": 6, "max_replicas": 18}
            ],
        }
    ]
    assert list(found["evaluations"][0]) == [
        *("cloud_provider", "region", "instance_type", "decision", "reason", "inputs", "message"),
    ]
    assert list(found["evaluations"][0]["inputs"]) == [
        *("limit", "slack", "consumed", "max", "free", "biggest", "biggest_fits", "ongoing"),
    ]


def test_f02_a_developer_cluster_is_in_one_zone_and_its_pool_is_not_rounded():
    (registered,) = evaluate(make_document({"developer": {}}))["scale_up"]["register"]
    assert registered["multi_az"] is False
    assert [(pool["min_replicas"], pool["max_replicas"]) for pool in registered["machine_pools"]] == [(4, 17)]


def test_the_evaluation_of_a_cluster():
    found = evaluate(make_document(clusters=[make_cluster_row("a"), make_cluster_row("b", 4)]))["scale_down"]
    assert found["deprovision"] == ["a"]
    first, second = found["evaluations"]
    assert list(first) == ["id", "cluster_id", "decision", "reason", "types", "message"]
    assert (first["decision"], first["reason"]) == ("remove", "not_needed")
    assert first["types"][0]["inputs"]["max"] == 4
    assert (second["decision"], second["reason"]) == ("keep", "scale_up_would_follow")


def test_a_trigger_that_is_off_leaves_the_evaluations():
    document = make_document(clusters=[make_cluster_row("a", region="eu-west-1")])
    document["configuration"]["dynamic_scaling"] |= {
        "enable_dynamic_data_plane_scale_up": False,
        "enable_dynamic_data_plane_scale_down": False,
    }
    found = evaluate(document)
    assert (found["scale_up"]["enabled"], found["scale_up"]["register"]) == (False, [])
    assert found["scale_up"]["evaluations"][0]["decision"] == "create"
    assert (found["scale_down"]["enabled"], found["scale_down"]["deprovision"]) == (False, [])
    assert found["scale_down"]["evaluations"][0]["decision"] == "remove"


@pytest.mark.parametrize("scaling_type", ["none", "manual"])
def test_other_scaling_types_evaluate_no_scaling(scaling_type: str):
    document = make_document(clusters=[make_cluster_row("a")], kafkas=[make_kafka_row("k")])
    document["configuration"] = {"scaling_type": scaling_type, "providers": document["configuration"]["providers"]}
    found = evaluate(document)
    assert found["scale_up"] == {"enabled": False, "evaluations": [], "register": []}
    assert found["scale_down"] == {"enabled": False, "evaluations": [], "deprovision": []}
    assert found["placement"][0]["cluster"] == "a"


def test_the_placement_of_kafkas():
    document = make_document(
        clusters=[make_cluster_row("a", 2)],
        kafkas=[
            make_kafka_row("k", count=2, size_id="x1"),
            make_kafka_row("l", created_at="2025-01-02T00:00:00Z"),
            make_kafka_row("m", status="provisioning", created_at="2024-01-01T00:00:00Z"),
            make_kafka_row("n", status="preparing"),
        ],
    )
    found = evaluate(document)["placement"]
    assert [(item["kafka_id"], item["decision"], item["cluster"], item["reason"]) for item in found] == [
        ("m", "placed", "a", "first_with_room"),
        ("k-1", "placed", "a", "first_with_room"),
        ("k-2", "waiting", None, "no_room"),
        ("l", "waiting", None, "no_room"),
    ]
    assert list(found[0]) == ["kafka_id", "decision", "cluster", "reason", "candidates"]
    assert found[0]["candidates"] == [{"id": "a", "count": 0, "requested": 1, "max_units": 2, "fits": True}]


def test_f19_reserved_instances_follow_the_real_ones():
    document = make_document(
        clusters=[make_cluster_row("a", supported_instance_type="standard,developer")],
        kafkas=[
            make_kafka_row("k", "a", bootstrap_server_host="host", count=2),
            make_kafka_row("l", "a"),
            make_kafka_row("m", "a", bootstrap_server_host="host", status="deleting"),
        ],
    )
    document["configuration"]["node_prewarming"] = {
        "standard": {"num_reserved_instances": 7, "base_streaming_unit_size": "x1"},
        "developer": {"num_reserved_instances": 0},
    }
    (found,) = evaluate(document)["prewarming"]
    names = [f"reserved-kafka-standard-{number}" for number in range(1, 8)]
    assert found["order"] == ["k-1", "k-2", *names]
    assert [item["metadata"]["namespace"] for item in found["reserved"]] == names


# ---- scenarios


@pytest.mark.parametrize(
    ("offers", "clusters", "kafkas", "expected"),
    [
        pytest.param(
            {"standard": {}},
            [make_cluster_row("a", status="cluster_accepted", cluster_id="")],
            [],
            [("none", "ongoing")],
            id="F03",
        ),
        pytest.param(
            {"standard": {}, "developer": {}},
            [make_cluster_row("a", status="cluster_provisioning")],
            [],
            [("none", "ongoing"), ("create", "biggest_does_not_fit")],
            id="F04",
        ),
        pytest.param(
            {"standard": {"limit": 5, "min_available_capacity_slack_streaming_units": 5}},
            [make_cluster_row("a")],
            [fill("a", 5)],
            [("none", "limit_reached")],
            id="F05",
        ),
        pytest.param({"standard": {"limit": 0}}, [], [], [("none", "limit_reached")], id="F06"),
        pytest.param(
            {"standard": {}},
            [make_cluster_row("a"), make_cluster_row("b")],
            [fill("a", 9), fill("b", 9)],
            [("create", "biggest_does_not_fit")],
            id="F07",
        ),
        pytest.param({"standard": {}}, [make_cluster_row("a")], [fill("a", 8)], [("none", "enough")], id="F08 without"),
        pytest.param(
            {"standard": {"min_available_capacity_slack_streaming_units": 3}},
            [make_cluster_row("a")],
            [fill("a", 8)],
            [("create", "below_slack")],
            id="F08 with slack",
        ),
        pytest.param(
            {"standard": {"min_available_capacity_slack_streaming_units": 10}},
            [
                make_cluster_row("a"),
                make_cluster_row("b", 30, status="deprovisioning", delete_requested_at="2025-01-01T00:00:00Z"),
            ],
            [fill("a", 1)],
            [("create", "below_slack")],
            id="F09",
        ),
        pytest.param(
            {"standard": {}},
            [make_cluster_row("a", 50, status="failed")],
            [],
            [("create", "biggest_does_not_fit")],
            id="F10",
        ),
        pytest.param(
            {"standard": {}},
            [make_cluster_row("a", 50, cluster_type="enterprise")],
            [],
            [("create", "biggest_does_not_fit")],
            id="F11",
        ),
        pytest.param(
            {"standard": {}, "premium": {}},
            [],
            [],
            [("create", "biggest_does_not_fit"), ("error", "unknown_instance_type")],
            id="U10",
        ),
        pytest.param(
            {"standard": {}, "developer": {}},
            [make_cluster_row("a")],
            [make_kafka_row("k", "a", size_id="x9")],
            [("error", "unknown_size"), ("create", "biggest_does_not_fit")],
            id="E7",
        ),
    ],
)
def test_scale_up(offers: dict, clusters: list, kafkas: list, expected: list[tuple[str, str]]):
    assert decide(make_document(offers, clusters=clusters, kafkas=kafkas)) == expected


def test_e7_the_error_names_the_row_which_counts_with_the_biggest_size():
    document = make_document(clusters=[make_cluster_row("a")], kafkas=[make_kafka_row("k", "a", size_id="x9", count=2)])
    (found,) = evaluate(document)["scale_up"]["evaluations"]
    assert found["inputs"]["consumed"] == 4
    assert found["inputs"]["kafka_id"] == "k-1"


@pytest.mark.parametrize(("slack", "used", "expected"), [(5, 4, ["a"]), (5, 6, [])], ids=["F25", "F26"])
def test_scale_down(slack: int, used: int, expected: list[str]):
    offers = {"standard": {"min_available_capacity_slack_streaming_units": slack}}
    clusters = [make_cluster_row("a"), make_cluster_row("b")]
    document = make_document(offers, clusters=clusters, kafkas=[fill("b", used)])
    assert evaluate(document)["scale_down"]["deprovision"] == expected


def test_f27_a_region_that_is_not_configured_any_more_is_left():
    document = make_document(clusters=[make_cluster_row("a", region="eu-west-1")])
    assert evaluate(document)["scale_down"]["deprovision"] == ["a"]


@pytest.mark.parametrize(
    ("changes", "kafkas", "expected"),
    [
        ({}, [], ("restore", "capacity_needed")),
        ({}, [fill("b", 1)], ("restore", "not_empty")),
        ({"delete_requested_at": "2025-01-01T00:00:00Z"}, [fill("b", 1)], ("delete", "delete_requested")),
        ({"region": "eu-west-1"}, [], ("delete", "empty")),
    ],
)
def test_the_second_look(changes: dict, kafkas: list, expected: tuple[str, str]):
    clusters = [make_cluster_row("b", status="deprovisioning", **changes)]
    (found,) = evaluate(make_document(clusters=clusters, kafkas=kafkas))["deprovisioning"]
    assert (found["decision"], found["reason"]) == expected
    assert list(found) == ["id", "decision", "reason", "message"]


def test_back_off_counts_once_it_is_configured():
    document = make_document(clusters=[make_cluster_row("a", status="failed")])
    document["configuration"]["dynamic_scaling"]["cluster_creation"] = {"retry_initial": "30s"}
    assert decide(document) == [("none", "create_backoff")]
    assert decide(document | {"now": "2025-01-01T00:00:30Z"}) == [("create", "biggest_does_not_fit")]


def test_the_backlog_counts_once_it_is_configured():
    document = make_document(clusters=[make_cluster_row("a")], kafkas=[make_kafka_row("k", count=9)])
    assert decide(document) == [("none", "enough")]
    document["configuration"]["dynamic_scaling"]["cluster_creation"] = {"count_backlog": True}
    assert decide(document) == [("create", "backlog")]


def test_now_is_the_latest_time_of_the_rows():
    document = make_document(
        clusters=[
            make_cluster_row("a", empty_since="2025-01-01T00:00:00Z"),
            make_cluster_row("b"),
        ],
        kafkas=[make_kafka_row("k", "b", created_at="2025-01-01T01:00:00Z", expires_at="2030-01-01T00:00:00Z")],
    )
    document["configuration"]["dynamic_scaling"]["cluster_removal"] = {"minimum_empty": "61m"}
    assert evaluate(document)["scale_down"]["evaluations"][0]["reason"] == "not_empty_long_enough"
    document["configuration"]["dynamic_scaling"]["cluster_removal"] = {"minimum_empty": "60m"}
    assert evaluate(document)["scale_down"]["evaluations"][0]["reason"] == "not_needed"


def test_many_kafkas_are_counted_and_not_made():
    document = make_document(
        evaluate=["scale_up"], clusters=[make_cluster_row("a")], kafkas=[make_kafka_row("k", "a", count=10**9)]
    )
    assert evaluate(document)["scale_up"]["evaluations"][0]["inputs"]["consumed"] == 10**9
    refused = run_evaluate(make_document(kafkas=[make_kafka_row("k", count=10**9)]))
    assert (refused.returncode, refused.stdout) == (2, "")
    assert refused.stderr.startswith("kafkas: placement would list")


def test_equal_documents_give_equal_bytes_whatever_the_order_of_keys_and_rows():
    rows = [make_cluster_row("a"), make_cluster_row("b", 4, created_at="2025-02-01T00:00:00Z")]
    kafkas = [make_kafka_row("k", "a"), make_kafka_row("l")]
    first = run_evaluate(make_document(clusters=rows, kafkas=kafkas))
    turned = [dict(reversed(row.items())) for row in reversed(rows)]
    second = run_evaluate(make_document(clusters=turned, kafkas=kafkas[::-1]))
    assert first.stdout == second.stdout


# ---- bad input


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"now": "yesterday"}, ["now"]),
        ({"now": "2026-01-01T00:00:00"}, ["now"]),
        ({"evaluate": ["scale_up", "dance"]}, ["evaluate[1]"]),
        ({"colour": 1}, ["colour"]),
        ({"clusters": {}}, ["clusters"]),
        ({"clusters": [3, {"id": "a"}]}, ["clusters[0]", "clusters[1].cloud_provider", "clusters[1].region"]),
        ({"clusters": [make_cluster_row("a", colour=1)]}, ["clusters[0].colour"]),
        ({"clusters": [make_cluster_row("a", status="fine")]}, ["clusters[0].status"]),
        ({"clusters": [make_cluster_row("a", created_at=5)]}, ["clusters[0].created_at"]),
        (
            {"clusters": [make_cluster_row("a", dynamic_capacity_info={"standard": {"max_units": 2**40}})]},
            ["clusters[0].dynamic_capacity_info.standard.max_units"],
        ),
        ({"clusters": [make_cluster_row("a", -1)]}, ["clusters[0].dynamic_capacity_info.standard.max_units"]),
        (
            {"clusters": [make_cluster_row("a", available_strimzi_versions=[{"version": "latest"}])]},
            ["clusters[0].available_strimzi_versions"],
        ),
        ({"clusters": [make_cluster_row("a"), make_cluster_row("a", cluster_id="")]}, ["clusters"]),
        ({"clusters": [make_cluster_row("a"), make_cluster_row("b", cluster_id="cid-a")]}, ["clusters"]),
        ({"kafkas": [make_kafka_row("k"), make_kafka_row("k")]}, ["kafkas"]),
        ({"kafkas": [make_kafka_row("k", count=0)]}, ["kafkas[0].count"]),
        ({"kafkas": [make_kafka_row("k", count=10**10)]}, ["kafkas[0].count"]),
        ({"kafkas": [make_kafka_row("k", count="many")]}, ["kafkas[0].count"]),
        ({"configuration": {}}, ["configuration.dynamic_scaling", "configuration.providers"]),
        ({"configuration": {"scaling_type": "often"}}, ["configuration.scaling_type"]),
        ({"configuration": None}, ["configuration"]),
    ],
)
def test_every_mistake_is_a_line_with_its_path(change: dict[str, Any], expected: list[str]):
    ended = run_evaluate(make_document() | change)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert [line.partition(": ")[0] for line in ended.stderr.splitlines()] == expected
    assert all(line.partition(": ")[2] for line in ended.stderr.splitlines())


@pytest.mark.parametrize("text", ["[", "", "3", "[]", "a: 1\na: 2", "[" * 100_000, '{"configuration": "\\ud800"}'])
def test_what_is_no_document_is_refused(text: str):
    ended = plimsoll("fleet", "evaluate", "-f", "-", "-o", "json", stdin=text)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr


def test_mistakes_of_all_parts_are_found_at_once():
    document = make_document(clusters=[make_cluster_row("a", region="")], kafkas=[make_kafka_row("k", size_id="")])
    document["configuration"]["providers"]["supported_providers"][0]["name"] = "ibm"
    ended = run_evaluate(document)
    assert [line.partition(": ")[0] for line in ended.stderr.splitlines()] == [
        "configuration.providers.supported_providers[0].name",
        "clusters[0].region",
        "kafkas[0].size_id",
    ]


# ---- other outputs


def test_the_example_as_a_table_and_as_names(reviewed: Any):
    table = plimsoll("fleet", "evaluate", "-f", "examples/fleet/evaluate.yaml")
    assert (table.returncode, table.stderr) == (0, "")
    reviewed(table.stdout)
    names = plimsoll("fleet", "evaluate", "-f", "examples/fleet/evaluate.yaml", "-o", "name")
    assert names.stdout.splitlines() == ["capacity/aws.us-east-1.developer", "kafka/bills"]
    data = plimsoll("fleet", "evaluate", "-f", "examples/fleet/evaluate.yaml", "-o", "json")
    assert list(json.loads(data.stdout)) == SECTIONS
