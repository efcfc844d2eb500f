"""Scenarios with a fleet: what the format says, what it refuses, and the same bytes each time."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
import yaml

from plimsoll.core.errors import InvalidInput
from plimsoll.simulation.files.scenario_reader import read_scenario
from plimsoll.simulation.runner import run_scenario
from tests.architecture.source_tree import REPOSITORY

Json = dict[str, Any]
F13: Json = yaml.safe_load((REPOSITORY / "tests/scenarios/fleet-f13.yaml").read_text())
CONFIGURATION = F13["fleet"]["configuration"]


def build(*steps: Json, **fleet: Any) -> Json:
    """A fleet whose clusters are only agents, unless `fleet` has another value."""
    return {"fleet": {"configuration": CONFIGURATION, "embedded": False, **fleet}, "steps": list(steps)}


def read(document: Json) -> Any:
    return read_scenario(json.dumps(document).encode(), source="scenario.json")


def find_problem(document: Json) -> str:
    with pytest.raises(InvalidInput) as refused:
        read(document)
    return str(refused.value)


def run(document: Json) -> Json:
    result = run_scenario(read(document))
    assert result.failed == ()
    return result.outcome


def test_fields_of_a_single_cluster_are_refused_beside_a_fleet():
    problem = find_problem({**build(), "nodeGroups": [], "world": "live"})
    assert "nodeGroups: is of a single cluster" in problem
    assert "world: is of a single cluster" in problem


@pytest.mark.parametrize("step", [{"loop": 1}, {"schedule": True}, {"set": {}}, {"crash": {"component": "cloud"}}])
def test_steps_of_a_single_cluster_are_refused_in_a_fleet(step: Json):
    assert f"steps[0].{next(iter(step))}: there is no such step in a scenario with a fleet" in find_problem(build(step))


@pytest.mark.parametrize("step", [{"ocm": {"failCreations": 1}}, {"request": {"method": "GET", "path": "/kafkas"}}])
def test_steps_of_a_fleet_are_refused_without_one(step: Json):
    assert "there is no such step without a fleet" in find_problem({"steps": [step]})


def test_a_step_about_objects_names_its_cluster():
    step = {"delete": {"kind": "Pod", "name": "web"}}
    assert "steps[0]: cluster is missing" in find_problem(build(step))
    assert "steps[0].cluster: only apply, delete and expect" in find_problem(build({"advance": 1, "cluster": "c1"}))
    assert "unknown field beside delete" in find_problem({"steps": [{**step, "cluster": "c1"}]})


def test_mistakes_of_the_configuration_have_their_paths():
    configuration = copy.deepcopy(CONFIGURATION)
    configuration["providers"]["supported_providers"][0]["name"] = "moon"
    assert "fleet.configuration.providers" in find_problem(build(configuration=configuration))
    assert "fleet: configuration is missing" in find_problem({"fleet": {}})
    assert "fleet: a period must be longer" in find_problem(build(period=0))
    assert "fleet.ocm.pendin: unknown field; did you mean pending?" in find_problem(build(ocm={"pendin": 1}))


def test_a_cluster_that_is_not_there_is_named_with_those_that_are():
    document = build({"advance": "1m"}, {"delete": {"kind": "Pod", "name": "web"}, "cluster": "c7"})
    with pytest.raises(InvalidInput) as refused:
        run_scenario(read(document))
    assert str(refused.value).startswith("steps[1].cluster: there is no cluster c7; there are: c1")


def test_a_request_names_kafkas_by_their_names():
    create = {"method": "POST", "path": "/kafkas", "query": "async=true"}
    body = {"name": "orders", "plan": "standard.x1", "cloud_provider": "aws", "region": "us-east-1"}
    delete = {"method": "DELETE", "path": "/kafkas/{orders}", "query": "async=true"}
    outcome = run(build({"request": {**create, "body": body}}, {"request": delete}))
    assert [answer["status"] for answer in outcome["fleet"]["requests"]] == [202, 202]
    assert outcome["fleet"]["kafkas"] == {}, "no cluster had it, so it is gone at once"
    with pytest.raises(InvalidInput, match="there is no Kafka orders"):
        run_scenario(read(build({"request": delete})))


def test_users_of_other_organisations_and_administrators_ask_as_themselves():
    body = {"name": "orders", "plan": "standard.x1", "cloud_provider": "aws", "region": "us-east-1"}
    create = {"method": "POST", "path": "/kafkas", "query": "async=true", "body": body}
    read_it = {"method": "GET", "path": "/kafkas/{orders}"}
    outcome = run(
        build(
            {"request": create},
            {"request": {**read_it, "organisation": "other", "user": "eve"}},
            {"request": {"method": "GET", "path": "/admin/clusters", "admin": True}},
            {"request": {"method": "GET", "path": "/admin/clusters"}},
        )
    )
    assert [answer["status"] for answer in outcome["fleet"]["requests"]] == [202, 404, 200, 404]


def test_the_same_file_gives_the_same_outcome():
    document = {"fleet": {**F13["fleet"], "period": "60s"}, "steps": [{"advance": "90s"}]}
    assert json.dumps(run(document)) == json.dumps(run(document))
