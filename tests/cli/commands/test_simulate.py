from __future__ import annotations

import json
import math

import pytest
import yaml

from plimsoll.cli.commands import simulate
from tests.cli.runner import plimsoll


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Progress is printed after some seconds; how fast this machine is, is not the question here."""
    monkeypatch.setattr(simulate, "_PATIENCE_S", math.inf)


STORY = """
machineTypes: [{name: small, cpu: 4, memory: 16Gi, price: 0.2}]
nodeGroups: [{id: g, max: 3, target: 1, machineType: small}]
pods: [{name: web, count: 5, template: {spec: {containers: [{name: c, image: x, resources: {requests: {cpu: 1}}}]}}}]
steps:
- schedule: true
- expect: {/nodes/g-0/pods: {count: 4}}
"""


def test_a_story_that_goes_as_expected_ends_with_0():
    ended = plimsoll("simulate", "-f", "-", stdin=STORY)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert "5 pods, 1 of them without a node\n  default/web-4\n" in ended.stdout
    assert ended.stdout.endswith("1 of 1 expectations held\n")


def test_scenario_is_another_name_for_the_file():
    ended = plimsoll("simulate", "--scenario", "-", "-o", "json", stdin=STORY)
    assert list(json.loads(ended.stdout)) == [
        "loops",
        "requests",
        "nodeGroups",
        "nodes",
        "providerCalls",
        "events",
        "metrics",
        "pods",
    ]


def test_yaml_says_the_same_as_json():
    as_json = plimsoll("simulate", "-f", "-", "-o", "json", stdin=STORY).stdout
    assert yaml.safe_load(plimsoll("simulate", "-f", "-", "-o", "yaml", stdin=STORY).stdout) == json.loads(as_json)


def test_a_failed_expectation_prints_path_wanted_and_got_and_ends_with_1():
    ended = plimsoll("simulate", "-f", "-", "-o", "json", stdin=STORY.replace("count: 4}}", "count: 5}}"))
    assert ended.returncode == 1
    message = json.loads(ended.stderr)["error"]["message"]
    assert 'steps[1].expect at 2025-01-01T00:00:00Z: /nodes/g-0/pods: wanted {"count": 5}, got [' in message
    assert json.loads(ended.stdout)["nodes"]["g-0"]["group"] == "g"


def test_a_bad_file_ends_with_2_and_the_path_of_the_field():
    ended = plimsoll("simulate", "-f", "-", "-o", "json", stdin=STORY.replace("target: 1", "target: many"))
    assert (ended.returncode, ended.stdout) == (2, "")
    assert json.loads(ended.stderr)["error"]["path"] == "nodeGroups[0].target"


def test_a_file_that_is_not_there_ends_with_2():
    assert plimsoll("simulate", "-f", "no-such-file.yaml").returncode == 2


def test_a_file_that_is_a_list_is_named():
    ended = plimsoll("simulate", "-f", "-", "-o", "json", stdin="[]")
    assert (ended.returncode, json.loads(ended.stderr)["error"]["path"]) == (2, "-")


def test_a_provider_step_about_a_group_that_is_not_there_ends_with_2_and_its_path():
    story = STORY + "- provider: {failIncrease: {h: no machines}}\n"
    ended = plimsoll("simulate", "-f", "-", "-o", "json", stdin=story)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert json.loads(ended.stderr)["error"]["path"] == "steps[2].provider.failIncrease.h"


def test_a_story_has_no_name_to_print():
    assert "name>" not in plimsoll("simulate", "--help").stdout
    assert plimsoll("simulate", "-f", "-", "-o", "name", stdin=STORY).returncode == 2


CRASHES = """
world: live
machineTypes: [{name: small, cpu: 4, memory: 16Gi}]
nodeGroups: [{id: g, max: 3, target: 1, machineType: small}]
steps:
- crash: {component: kube-controller-manager}
- advance: 10m
"""


def test_a_crash_that_was_wished_for_is_no_news():
    ended = plimsoll("simulate", "-f", "-", stdin=CRASHES)
    assert (ended.returncode, ended.stderr) == (0, "")


REFUSED = """
world: live
objects:
- {apiVersion: v1, kind: ResourceQuota, metadata: {name: none, namespace: default}, spec: {hard: {pods: "0"}}}
- apiVersion: apps/v1
  kind: ReplicaSet
  metadata: {name: web, namespace: default}
  spec:
    replicas: 1
    selector: {matchLabels: {app: web}}
    template: {metadata: {labels: {app: web}}, spec: {containers: [{name: c, image: nginx}]}}
steps: [{advance: 10s}]
"""


def test_warnings_of_the_cluster_are_reported_when_asked_for():
    quiet, verbose = (plimsoll("simulate", "-f", "-", *more, stdin=REFUSED) for more in ((), ("--verbose",)))
    assert (quiet.returncode, quiet.stderr) == (0, "")
    assert "[warning" in verbose.stderr
    assert "exceeded quota" in verbose.stderr
    assert verbose.stdout == quiet.stdout


def test_timings_go_to_stderr_only():
    plain, timed = (plimsoll("simulate", "-f", "-", "-o", "json", *more, stdin=STORY) for more in ((), ("--timing",)))
    assert plain.stdout == timed.stdout
    assert "s steps[0] schedule\n" in timed.stderr
    assert timed.stderr.endswith("s in total\n")


def test_loops_run_the_autoscaler_of_this_build():
    ended = plimsoll("simulate", "-f", "-", "-o", "json", stdin="steps: [{loop: 1}]")
    assert (ended.returncode, ended.stderr) == (0, "")
    (loop,) = json.loads(ended.stdout)["loops"]
    assert (loop["scaleUp"]["result"], loop["scaleDown"]["result"]) == ("NotNeeded", "ScaleDownNoUnneeded")


def test_a_story_is_one_file():
    ended = plimsoll("simulate", "-f", "a.yaml", "-f", "b.yaml")
    assert (ended.returncode, ended.stdout) == (2, "")
    assert "-f: a scenario is one file, got 2: a.yaml, b.yaml" in ended.stderr


CRASH = "steps: [{crash: {component: kubelet}}, {crash: {component: kubelet, afterCalls: 3}}]"


def test_crashes_are_reported_on_request():
    ended = plimsoll("simulate", "-f", "-", "-v", stdin=CRASH)
    assert ended.returncode == 0
    assert ended.stderr.count("simulation.process_crashed") == 1
    assert "simulation.process_crashed" not in plimsoll("simulate", "-f", "-", stdin=CRASH).stderr


def test_a_crash_that_did_not_come_is_reported():
    reported = "warning: steps[1].crash did not happen: kubelet had 3 writes left"
    assert reported in plimsoll("simulate", "-f", "-", stdin=CRASH).stderr
