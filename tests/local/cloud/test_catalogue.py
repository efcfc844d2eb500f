"""Catalogues: what is shipped, what the schema says, and how mistakes are reported."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import pytest

from plimsoll.core.errors import InvalidInput, UnreadableDocument
from plimsoll.local.cloud.catalogue import (
    list_shipped_names,
    list_sold_machine_types,
    load_shipped_catalogue,
    read_catalogue,
)
from plimsoll.objects.api.simulated_cloud import CloudSpec
from plimsoll.objects.schema.api import compile_definition
from plimsoll.objects.schema.definition.checks import validate_definition
from tests.local.cloud.builders import SMALL, cloud_body, cloud_definitions, group_body
from tests.narrowing import present

if TYPE_CHECKING:
    from tests.golden.reviewed_sentences import ReviewedSentences

CORE_HOUR, GIB_HOUR = 0.031611, 0.004237


def catalogue(*types: dict[str, Any], **more: Any) -> bytes:
    return json.dumps({"name": "c", "machineTypes": [*types], **more}).encode()


@pytest.mark.parametrize("name", list_shipped_names())
def test_shipped_catalogues_are_complete(name: str):
    for machine_type in load_shipped_catalogue(name).machine_types:
        assert present(machine_type.price) > 0
        assert machine_type.family
        assert "for simulation" in machine_type.source
        assert machine_type.date
        assert machine_type.capacity_type == ("spot" if name.endswith("-spot") else "on-demand")


def test_the_prices_of_n1_are_those_of_the_specification():
    types = {machine_type.name: machine_type for machine_type in load_shipped_catalogue("gce-n1").machine_types}
    assert len(types) == 22
    for family, gib_per_core in (("standard", 3.75), ("highmem", 6.5), ("highcpu", 0.9)):
        for cores in (2, 4, 8, 16, 32, 64, 96):
            machine_type = types[f"n1-{family}-{cores}"]
            gib = cores * gib_per_core
            assert machine_type.price == pytest.approx(cores * CORE_HOUR + gib * GIB_HOUR, abs=1e-9)
            assert (machine_type.cpu, machine_type.memory) == (cores, f"{int(gib * 1024)}Mi")
    # Scenario N34.
    total = present(types["n1-standard-16"].price) + present(types["n1-standard-4"].price)
    assert total == pytest.approx(0.949995, abs=1e-9)


def test_there_are_arm_machines_and_gpus():
    assert {machine_type_.arch for machine_type_ in load_shipped_catalogue("aws-graviton").machine_types} == {"arm64"}
    assert all(machine_type_.gpu for machine_type_ in load_shipped_catalogue("aws-gpu").machine_types)


def test_types_inherit_from_their_catalogue():
    read = read_catalogue(catalogue(SMALL, {**SMALL, "name": "other", "currency": "CHF"}, currency="EUR"), source="f")
    assert [machine_type_.currency for machine_type_ in read.machine_types] == ["EUR", "CHF"]


@pytest.mark.parametrize(
    ("wrong", "path"),
    [
        ({"price": -1}, "machineTypes[1].price"),
        ({"price": "1"}, "machineTypes[1].price"),
        ({"cpu": "four"}, "machineTypes[1].cpu"),
        ({"memory": 0}, "machineTypes[1].memory"),
        ({"gpu": {"nvidia.com/gpu": 0}}, "machineTypes[1].gpu.nvidia.com/gpu"),
        ({"arch": "mips"}, "machineTypes[1].arch"),
        ({"capacityType": "stolen"}, "machineTypes[1].capacityType"),
        ({"currency": "dollars"}, "machineTypes[1].currency"),
        ({"date": "yesterday"}, "machineTypes[1].date"),
        ({"colour": "red"}, "machineTypes[1].colour"),
        ({"name": "small"}, "machineTypes[1].name"),
    ],
)
def test_a_mistake_is_reported_with_the_path_of_its_field(wrong: dict[str, Any], path: str):
    with pytest.raises(InvalidInput) as refused:
        read_catalogue(catalogue(SMALL, {**SMALL, "name": "second", **wrong}), source="f")
    assert refused.value.path == path


def test_a_missing_field_is_reported_with_its_path():
    with pytest.raises(InvalidInput) as refused:
        read_catalogue(catalogue({"name": "x", "cpu": 1, "price": 1}), source="f")
    assert refused.value.path == "machineTypes[0].memory"


def test_a_price_may_be_unknown():
    (unpriced,) = read_catalogue(catalogue({"name": "x", "cpu": 1, "memory": "1Gi"}), source="f").machine_types
    assert unpriced.price is None


def test_what_is_not_json_is_reported_with_the_file(reviewed: ReviewedSentences):
    with pytest.raises(UnreadableDocument) as raised:
        read_catalogue(b"{", source="types.json")
    reviewed(str(raised.value))


def test_types_of_the_cloud_itself_go_before_those_of_catalogues():
    own = {**SMALL, "name": "n1-standard-1", "price": 7.0}
    read = read_catalogue(catalogue(own), source="f")
    offer = list_sold_machine_types(CloudSpec(catalogues=("gce-n1",), machine_types=read.machine_types))
    assert offer.machine_types["n1-standard-1"].price == 7.0
    assert len(offer.machine_types) == 22


def test_the_cloud_resource_and_the_json_schema_say_the_same_about_machine_types():
    schema = json.loads(files("plimsoll.local.cloud").joinpath("catalogues", "catalogue.schema.json").read_bytes())
    (cloud,) = [
        cloud_definition
        for cloud_definition in cloud_definitions()
        if cloud_definition["spec"]["names"]["kind"] == "Cloud"
    ]
    whole = cloud["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    assert whole["properties"]["machineTypes"]["items"] == schema["properties"]["machineTypes"]["items"]


def test_our_definitions_are_valid():
    for definition in cloud_definitions():
        assert validate_definition(definition) == []


@pytest.mark.parametrize(
    ("body", "path"),
    [
        (cloud_body(), ""),
        (group_body(), ""),
        ({**cloud_body(), "metadata": {"name": "another"}}, "<nil>"),
        (cloud_body(zones=[]), "spec.zones"),
        (cloud_body(faults=[{"name": "f", "kind": "Explode"}]), "spec.faults[0].kind"),
        (cloud_body(boots=[{"name": "b"}]), "spec.boots[0]"),
        (group_body(min=11), "spec"),
        (group_body(target=-1), "spec.target"),
        (group_body(machineType=None), "spec"),
        ({**group_body(), "metadata": {"name": "g" * 53}}, "metadata.name"),
    ],
)
def test_the_definitions_refuse_what_makes_no_sense(body: dict[str, Any], path: str):
    body = {**body, "spec": {name: value for name, value in body["spec"].items() if value is not None}}
    (definition,) = [
        cloud_definition
        for cloud_definition in cloud_definitions()
        if cloud_definition["spec"]["names"]["kind"] == body["kind"]
    ]
    admission = compile_definition(definition).get_version("v1alpha1").admit_create(body)
    # The first is the field's; "some rules were not checked" and the like may follow.
    assert [error.path or "<nil>" for error in admission.errors][:1] == ([path] if path else [])


def test_a_price_out_of_range_is_named(reviewed: ReviewedSentences):
    with pytest.raises(InvalidInput) as raised:
        read_catalogue(catalogue({**SMALL, "price": 1e308}), source="test")
    reviewed(str(raised.value))
