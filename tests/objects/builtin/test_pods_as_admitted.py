"""What a pod that does not exist yet will be: requests from limits, then the defaults of LimitRanges."""

from __future__ import annotations

import copy
from typing import Any

from plimsoll.objects.limit_ranges import as_admitted

Json = dict[str, Any]


def pod(**resources: Any) -> Json:
    return {"spec": {"containers": [{"name": "c", "resources": resources}]}}


def limits(**item: Any) -> Json:
    return {"spec": {"limits": [{"type": "Container", **item}]}}


def resources(given: Json, *ranges: Json) -> Json:
    found: Json = as_admitted(given, ranges)["spec"]["containers"][0]["resources"]
    return found


def test_a_limit_is_a_request_before_any_default():
    ranges = limits(defaultRequest={"cpu": "1", "memory": "1Gi"})
    assert resources(pod(limits={"cpu": "2"}), ranges)["requests"] == {"cpu": "2", "memory": "1Gi"}


def test_the_first_range_that_says_something_is_taken():
    ranges = (limits(defaultRequest={"cpu": "1"}), limits(defaultRequest={"cpu": "2", "memory": "1Gi"}))
    assert resources(pod(), *ranges)["requests"] == {"cpu": "1", "memory": "1Gi"}


def test_null_is_absent():
    assert resources(pod(requests=None, limits={"cpu": "1", "memory": None}))["requests"] == {"cpu": "1"}


def test_what_is_given_is_not_changed():
    given = pod(limits={"cpu": "1"})
    before = copy.deepcopy(given)
    as_admitted(given, [limits(defaultRequest={"memory": "1Gi"})])
    assert given == before


def test_host_ports_of_the_host_network():
    given = {"spec": {"hostNetwork": True, "containers": [{"name": "c", "ports": [{"containerPort": 80}]}]}}
    assert as_admitted(given, ())["spec"]["containers"][0]["ports"] == [{"containerPort": 80, "hostPort": 80}]
