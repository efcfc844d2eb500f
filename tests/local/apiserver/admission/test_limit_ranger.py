from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plimsoll.local.apiserver.admission.limit_ranger import find_pod_problems
from plimsoll.objects.builtin import default
from plimsoll.objects.limit_ranges import ANNOTATION, fill_in
from tests.local.apiserver.admission.builders import AdmissionHarness, an, in_world, limit_range, pod, refused

Json = dict[str, Any]


def refusal_of_pod(made: Json, *limits: Json) -> str:
    async def story(world: AdmissionHarness) -> None:
        await world.furnish()
        await world.put(limit_range(*limits))
        await world.create(made)

    return str(refused(story)["message"]).removeprefix('pods "p" is forbidden: ')


@pytest.mark.parametrize(
    ("made", "limit", "reported"),
    [
        (pod(), {"min": {"cpu": "1"}}, "minimum cpu usage per Container is 1.  No request is specified"),
        (
            pod(requests={"cpu": "500m"}),
            {"min": {"cpu": "1"}},
            "minimum cpu usage per Container is 1, but request is 500m",
        ),
        (
            pod(),
            {"max": {"storage.io/x": "1"}},
            "maximum storage.io/x usage per Container is 1.  No limit is specified",
        ),
        (
            pod(limits={"memory": "2Gi"}),
            {"max": {"memory": "1Gi"}},
            "maximum memory usage per Container is 1Gi, but limit is 2Gi",
        ),
        (
            pod(requests={"cpu": "100m"}, limits={"cpu": "1"}),
            {"maxLimitRequestRatio": {"cpu": "4"}},
            "cpu max limit to request ratio per Container is 4, but provided ratio is 10.000000",
        ),
        (
            pod(),
            {"maxLimitRequestRatio": {"cpu": "4"}},
            "cpu max limit to request ratio per Container is 4, but no request is specified or request is 0",
        ),
        (
            pod(requests={"cpu": "1"}),
            {"maxLimitRequestRatio": {"cpu": "4"}},
            "cpu max limit to request ratio per Container is 4, but no limit is specified or limit is 0",
        ),
    ],
)
def test_a_container_outside_the_bounds_is_refused(made: Json, limit: Json, reported: str):
    assert find_pod_problems(default(made), [{"type": "Container", **limit}]) == [reported]


def test_the_bounds_of_a_pod_are_compared_with_its_sum():
    two = pod(requests={"cpu": "1"}, limits={"cpu": "1"})
    two["spec"]["containers"].append({**two["spec"]["containers"][0], "name": "d"})
    reported = refusal_of_pod(two, {"type": "Pod", "max": {"cpu": "1500m"}})
    assert reported == "maximum cpu usage per Pod is 1500m, but limit is 2"


def test_of_init_containers_the_largest_counts_for_a_pod():
    made = pod(requests={"cpu": "1"}, limits={"cpu": "1"})
    container = made["spec"]["containers"][0]
    made["spec"]["initContainers"] = [{**container, "name": "i"}, {**container, "name": "j"}]

    async def story(world: AdmissionHarness) -> None:
        await world.furnish()
        await world.put(limit_range({"type": "Pod", "max": {"cpu": "1"}}))
        await world.create(made)

    in_world(story)


def test_a_claim_is_held_to_the_storage_bounds_also_when_it_grows():
    def claim(size: str) -> Json:
        spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}}
        return an("v1", "PersistentVolumeClaim", "data", spec=spec)

    async def story(world: AdmissionHarness) -> None:
        await world.furnish()
        await world.put(limit_range({"type": "PersistentVolumeClaim", "max": {"storage": "2Gi"}}))
        await world.create(claim("1Gi"))
        await world.update(claim("3Gi"))

    reported = 'persistentvolumeclaims "data" is forbidden: maximum storage usage per PersistentVolumeClaim is 2Gi'
    assert refused(story)["message"] == f"{reported}, but request is 3Gi"


def test_what_a_container_says_is_kept_and_the_note_names_only_what_was_filled():
    made = pod(requests={"cpu": "200m"}, limits={"cpu": "300m"})
    fill_in(made, limit_range({"type": "Container", "default": {"cpu": "1", "memory": "1Gi"}}))
    resources = made["spec"]["containers"][0]["resources"]
    assert resources == {"requests": {"cpu": "200m"}, "limits": {"cpu": "300m", "memory": "1Gi"}}
    assert made["metadata"]["annotations"][ANNOTATION] == "LimitRanger plugin set: memory limit for container c"


AMOUNTS = st.dictionaries(st.sampled_from(["cpu", "memory"]), st.sampled_from(["1", "250m", "64Mi"]))


@given(requests=AMOUNTS, limits=AMOUNTS, limit=AMOUNTS, default_request=AMOUNTS)
@settings(max_examples=200)
def test_filling_in_twice_is_filling_in_once(requests: Json, limits: Json, limit: Json, default_request: Json):
    made = pod(requests=requests, limits=limits)
    bounds = limit_range({"type": "Container", "default": limit, "defaultRequest": default_request})
    fill_in(made, bounds)
    once = deepcopy(made)
    fill_in(made, bounds)
    assert made == once
