from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plimsoll.core.quantity import Quantity
from plimsoll.local.apiserver.status_errors import StatusError
from plimsoll.local.apiserver.storage import Delete, HistoryLimits, ListQuery, NotStored, Put
from tests.local.apiserver.admission.builders import AdmissionHarness, an, in_world, key_of, pod, quota, refused
from tests.local.apiserver.admission.lagging_driver import LaggingDriver

if TYPE_CHECKING:
    from collections.abc import Coroutine

Json = dict[str, Any]


def refusal_of(obj: Json, *others: Json) -> str:
    async def story(world: AdmissionHarness) -> None:
        await world.furnish()
        for other in others:
            await world.put(other)
        await world.create(obj)

    return str(refused(story)["message"])


def used(*steps: Json, hard: Json) -> Json:
    """What the quota says of its use after these creations."""

    async def story(world: AdmissionHarness) -> Json:
        await world.furnish()
        await world.put(quota(hard=hard))
        for step in steps:
            await world.create(step)
        return world.get("v1", "ResourceQuota", "rq")["status"]

    status: Json = in_world(story)
    assert status["hard"] == hard
    return dict(status["used"])


class TestWhatIsMeasured:
    def test_requests_and_limits_of_pods(self):
        hard = {"requests.memory": "1Gi", "limits.cpu": "8", "pods": "9", "count/pods": "9", "cpu": "8"}
        made = pod(requests={"cpu": "600m", "memory": "64Mi"}, limits={"cpu": "1", "memory": "64Mi"})
        again = pod("q", requests={"cpu": "600m", "memory": "64Mi"}, limits={"cpu": "1", "memory": "64Mi"})
        assert used(made, again, hard=hard) == {
            "requests.memory": "128Mi",
            "limits.cpu": "2",
            "pods": "2",
            "count/pods": "2",
            "cpu": "1200m",
        }

    def test_extended_resources(self):
        made = pod(requests={"nvidia.com/gpu": "2"}, limits={"nvidia.com/gpu": "2"})
        assert used(made, hard={"requests.nvidia.com/gpu": "4"}) == {"requests.nvidia.com/gpu": "2"}

    def test_services_by_type(self):
        service = an("v1", "Service", "s", spec={"type": "LoadBalancer", "ports": [{"port": 80}, {"port": 81}]})
        hard = {"services": "5", "services.loadbalancers": "5", "services.nodeports": "5"}
        assert used(service, hard=hard) == {
            "services": "1",
            "services.loadbalancers": "1",
            "services.nodeports": "2",
        }

    def test_claims_by_class(self):
        spec = {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "fast",
            "resources": {"requests": {"storage": "5Gi"}},
        }
        name = "fast.storageclass.storage.k8s.io/requests.storage"
        hard = {name: "6Gi", "requests.storage": "6Gi", "persistentvolumeclaims": "2"}
        claim = an("v1", "PersistentVolumeClaim", "data", spec=spec)
        assert used(claim, hard=hard) == {name: "5Gi", "requests.storage": "5Gi", "persistentvolumeclaims": "1"}

    def test_objects_of_any_kind_by_number(self):
        template = {"metadata": {"labels": {"a": "b"}}, "spec": pod()["spec"]}
        spec = {"selector": {"matchLabels": {"a": "b"}}, "template": template}
        deployment = an("apps/v1", "Deployment", "d", spec=spec)
        assert used(deployment, hard={"count/deployments.apps": "3"}) == {"count/deployments.apps": "1"}


class TestMeasuredInstances:
    def test_a_finished_pod_is_not_charged_but_counted(self):
        async def story(world: AdmissionHarness) -> Json:
            await world.furnish()
            await world.put(quota(hard={"pods": "1", "count/pods": "5"}))
            done = pod("done")
            done["status"] = {"phase": "Succeeded"}
            whole = {**done, "metadata": {**done["metadata"], "uid": "u"}}
            await world.store.update(key_of(whole), lambda _current: Put(whole))
            await world.create(pod())
            return world.get("v1", "ResourceQuota", "rq")["status"]["used"]

        assert in_world(story) == {"pods": "1", "count/pods": "2"}

    def test_a_pod_that_should_have_gone_is_charged_until_its_grace_has_passed(self):
        async def story(world: AdmissionHarness) -> bool:
            await world.furnish()
            await world.put(quota(hard={"pods": "1"}))
            leaving = pod("leaving")
            deleted = world.clock.now().strftime("%Y-%m-%dT%H:%M:%SZ")
            leaving["metadata"] |= {"deletionTimestamp": deleted, "deletionGracePeriodSeconds": 30}
            await world.store.update(key_of(leaving), lambda _current: Put(leaving))
            with pytest.raises(StatusError):
                await world.create(pod())
            await world.clock.sleep(40)
            await world.create(pod())
            return True

        assert in_world(story)

    @pytest.mark.parametrize(
        ("scopes", "made"),
        [
            (["BestEffort"], pod()),
            (["NotBestEffort"], pod(requests={"cpu": "1"})),
            (["Terminating"], pod(activeDeadlineSeconds=5)),
            (["NotTerminating"], pod()),
        ],
    )
    def test_a_scope_chooses_pods(self, scopes: list[str], made: Json):
        full = quota(hard={"pods": "0"}, scopes=scopes)
        assert "exceeded quota: rq, requested: pods=1, used: pods=0, limited: pods=0" in refusal_of(made, full)

    @pytest.mark.parametrize(
        ("scopes", "made"),
        [(["BestEffort"], pod(requests={"cpu": "1"})), (["Terminating"], pod()), (["NotBestEffort"], pod())],
    )
    def test_a_pod_out_of_scope_does_not_count(self, scopes: list[str], made: Json):
        async def story(world: AdmissionHarness) -> Json:
            await world.furnish()
            await world.put(quota(hard={"pods": "0"}, scopes=scopes))
            return await world.create(made)

        assert in_world(story)["metadata"]["name"] == "p"

    def test_a_scope_may_name_priority_classes(self):
        high = an("scheduling.k8s.io/v1", "PriorityClass", "high", namespace="", value=9)
        expression = {"scopeName": "PriorityClass", "operator": "In", "values": ["high"]}
        full = quota(hard={"pods": "0"}, scopeSelector={"matchExpressions": [expression]})
        assert "exceeded quota" in refusal_of(pod(priorityClassName="high"), full, high)

        async def story(world: AdmissionHarness) -> Json:
            await world.furnish()
            await world.put(full)
            return await world.create(pod())

        assert in_world(story)["metadata"]["name"] == "p"


def test_every_container_must_say_what_cpu_and_memory_quotas_are_about():
    two = pod(requests={"cpu": "1"})
    two["spec"]["containers"].append({"name": "b", "image": "x"})
    message = refusal_of(two, quota(hard={"cpu": "4", "limits.memory": "1Gi", "ephemeral-storage": "1Gi"}))
    assert message == 'pods "p" is forbidden: failed quota: rq: must specify cpu for: b; limits.memory for: b,c'


def test_only_what_is_exceeded_is_reported():
    message = refusal_of(pod(requests={"cpu": "3"}), quota(hard={"pods": "5", "cpu": "2"}))
    assert message == 'pods "p" is forbidden: exceeded quota: rq, requested: cpu=3, used: cpu=0, limited: cpu=2'


def test_what_a_deletion_frees_is_free_at_once():
    async def story(world: AdmissionHarness) -> Json:
        await world.furnish()
        await world.put(quota(hard={"pods": "1"}))
        await world.create(pod("a"))
        await world.store.update(key_of(pod("a")), lambda _current: Delete())
        await world.create(pod("b"))
        return world.get("v1", "ResourceQuota", "rq")["status"]["used"]

    assert in_world(story) == {"pods": "1"}


def test_a_dry_run_is_judged_and_charges_nothing():
    async def story(world: AdmissionHarness) -> Json:
        await world.furnish()
        await world.put(quota(hard={"pods": "1"}))
        await world.create(pod("a"), dry_run=True)
        await world.create(pod("b"))
        with pytest.raises(StatusError, match="exceeded quota"):
            await world.create(pod("c"), dry_run=True)
        return world.get("v1", "ResourceQuota", "rq")["status"]["used"]

    assert in_world(story) == {"pods": "1"}


def test_an_update_is_charged_with_the_difference():
    def service(kind: str) -> Json:
        return an("v1", "Service", "s", spec={"type": kind, "ports": [{"port": 80}]})

    async def story(world: AdmissionHarness) -> None:
        await world.furnish()
        await world.put(quota(hard={"services": "1", "services.nodeports": "0"}))
        await world.create(service("ClusterIP"))
        await world.update({**service("ClusterIP"), "metadata": {**service("x")["metadata"], "labels": {"a": "b"}}})
        await world.update(service("NodePort"))

    reported = "exceeded quota: rq, requested: services.nodeports=1, used: services.nodeports=0"
    assert reported in refused(story)["message"]


def test_a_changed_quota_counts_for_the_next_write():
    async def story(world: AdmissionHarness) -> None:
        await world.furnish()
        await world.put(quota(hard={"pods": "5"}))
        await world.create(pod("a"))
        await world.put(quota(hard={"pods": "5", "count/configmaps": "0"}))
        await world.create(an("v1", "ConfigMap", "cm"))

    assert "exceeded quota: rq, requested: count/configmaps=1" in refused(story)["message"]


def test_a_quota_that_was_unused_for_long_is_counted_anew():
    async def story(world: AdmissionHarness) -> Json:
        await world.furnish()
        await world.put(quota(hard={"pods": "2000"}))
        for number in range(300):
            await world.put(pod(f"p{number}"))
        await world.create(pod("first"))
        for number in range(300):
            await world.put(pod(f"p{number}", requests={"cpu": "1"}))
        await world.store.update(key_of(pod("first")), lambda _current: Delete())
        for number in range(300):
            await world.put(pod(f"p{number}"))
        await world.create(pod("last"))
        return world.get("v1", "ResourceQuota", "rq")["status"]["used"]

    assert in_world(story, limits=HistoryLimits(changes_per_resource=10)) == {"pods": "301"}


def test_what_was_kept_for_a_quota_goes_with_it():
    async def story(world: AdmissionHarness) -> int:
        for number in range(5):
            namespace = f"ns{number}"
            await world.furnish(namespace)
            mine = an("v1", "ResourceQuota", "rq", namespace=namespace, spec={"hard": {"count/configmaps": "5"}})
            await world.put(mine)
            await world.create(an("v1", "ConfigMap", "cm", namespace=namespace))
            await world.store.update(key_of(mine), lambda _current: Delete())
        return len(world.admission._quotas._usages)

    assert in_world(story) == 1


def test_a_write_on_its_way_still_counts_when_the_quota_changes():
    async def story(world: AdmissionHarness) -> None:
        await world.furnish()
        await world.put(quota(hard={"pods": "1"}))
        slow = asyncio.create_task(world.create(pod("slow"), pauses=50))
        await asyncio.sleep(0)
        await world.put(quota(hard={"pods": "1", "count/configmaps": "5"}))
        try:
            await world.create(pod("fast"))
        finally:
            await slow

    assert "exceeded quota" in refused(story)["message"]


def test_a_write_whose_caller_has_gone_counts_as_long_as_it_is_on_its_way():
    async def story(world: AdmissionHarness) -> None:
        await world.furnish()
        await world.put(quota(hard={"pods": "1"}))
        await world.create(pod("before"))
        await world.store.update(key_of(pod("before")), lambda _current: Delete())
        await cancelled(world.create(pod("gone")), after=2)
        assert world.store.is_being_written(key_of(pod("gone")))
        with pytest.raises(StatusError, match="exceeded quota"):
            await world.create(pod("next"))
        await world.put(an("v1", "ConfigMap", "last"))
        assert [stored.name for stored in world.store.list("pods").items] == ["gone"]

    in_world(story, LaggingDriver([20] * 20))


@pytest.mark.parametrize("pauses", range(5))
def test_a_request_cancelled_while_the_status_is_written_is_not_charged(pauses: int):
    async def story(world: AdmissionHarness) -> list[str]:
        await world.furnish()
        await world.put(quota(hard={"pods": "1"}))
        await cancelled(world.create(pod("gone")), after=pauses)
        await world.create(pod("next"))
        return [stored.name for stored in world.store.list("pods").items]

    assert in_world(story, LaggingDriver([9] * 20)) == ["next"]


def test_a_request_that_fails_because_the_status_cannot_be_written_is_not_charged():
    driver = LaggingDriver([])

    async def story(world: AdmissionHarness) -> list[str]:
        await world.furnish()
        await world.put(quota(hard={"pods": "1"}))
        driver.fail([True])
        with pytest.raises(NotStored):
            await world.create(pod("failed"))
        driver.fail(())
        await world.create(pod("next"))
        return [stored.name for stored in world.store.list("pods").items]

    assert in_world(story, driver) == ["next"]


def test_what_an_update_frees_is_free_when_it_is_durable():
    def service(name: str, kind: str) -> Json:
        return an("v1", "Service", name, spec={"type": kind, "ports": [{"port": 80}]})

    async def story(world: AdmissionHarness) -> Json:
        await world.furnish()
        await world.put(quota(hard={"services.nodeports": "1"}))
        await world.create(service("a", "NodePort"))
        shrinking = asyncio.create_task(world.update(service("a", "ClusterIP"), pauses=50))
        for _ in range(10):
            await asyncio.sleep(0)
        with pytest.raises(StatusError, match="exceeded quota"):
            await world.create(service("b", "NodePort"))
        await shrinking
        reported = world.get("v1", "ResourceQuota", "rq")["status"]["used"]
        await world.create(service("b", "NodePort"))
        return dict(reported)

    assert in_world(story) == {"services.nodeports": "0"}


def test_the_status_is_written_under_the_servers_name():
    async def story(world: AdmissionHarness) -> list[Json]:
        await world.furnish()
        tracked = quota(hard={"pods": "5"})
        tracked["metadata"]["managedFields"] = [
            {
                "manager": "golden",
                "operation": "Update",
                "apiVersion": "v1",
                "time": "2026-01-01T00:00:00Z",
                "fieldsType": "FieldsV1",
                "fieldsV1": {"f:spec": {"f:hard": {".": {}, "f:pods": {}}}},
            }
        ]
        tracked["metadata"]["uid"] = "u"
        await world.put(tracked)
        await world.create(pod())
        return list(world.get("v1", "ResourceQuota", "rq")["metadata"]["managedFields"])

    (own,) = [entry for entry in in_world(story) if entry["manager"] == "kube-apiserver"]
    assert own["subresource"] == "status"
    assert own["fieldsV1"] == {"f:status": {"f:hard": {".": {}, "f:pods": {}}, "f:used": {".": {}, "f:pods": {}}}}


# What a client does, to which pod, after how many turns of others, how long it takes, and how much it asks for.
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["create", "create", "create", "fail", "cancel", "delete"]),
        st.integers(0, 5),
        st.integers(0, 4),
        st.integers(0, 4),
        st.sampled_from(["250m", "500m", "1"]),
    ),
    max_size=14,
)


@given(steps=STEPS, lags=st.lists(st.integers(0, 3), max_size=6), failures=st.lists(st.booleans(), max_size=4))
@settings(max_examples=100, deadline=None)
def test_no_interleaving_exceeds_the_quota_or_leaves_anything_charged(
    steps: list[tuple[str, int, int, int, str]], lags: list[int], failures: list[bool]
):
    hard = {"pods": Quantity.from_int(3), "requests.cpu": Quantity.parse("1500m")}
    driver = LaggingDriver(lags)

    async def story(world: AdmissionHarness) -> None:
        await world.furnish()
        await world.put(quota(hard={name: str(amount) for name, amount in hard.items()}))

        async def client(what: str, which: int, before: int, pauses: int, cpu: str) -> None:
            for _ in range(before):
                await asyncio.sleep(0)
            made = pod(f"p{which}", requests={"cpu": cpu})
            with suppress(StatusError, NotStored):
                if what == "delete":
                    await world.store.update(key_of(made), lambda _current: Delete())
                elif what == "cancel":
                    await cancelled(world.create(made), after=pauses)
                else:
                    await world.create(made, pauses=pauses, fails=what == "fail")
            check(world, hard)

        driver.fail(failures)
        await asyncio.gather(*(client(*step) for step in steps))
        driver.fail(())
        await world.put(an("v1", "ConfigMap", "last"))  # what was cancelled on its way has ended before
        check(world, hard)
        left = world.store.count("pods", "ns")
        for number in range(3 - left):
            await world.create(pod(f"more{number}", requests={"cpu": "0"}))
        await check_books(world)

    in_world(story, driver)


async def cancelled(work: Coroutine[Any, Any, Any], *, after: int) -> None:
    task = asyncio.create_task(work)
    for _ in range(after):
        await asyncio.sleep(0)
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


async def check_books(world: AdmissionHarness) -> None:
    for usage in world.admission._quotas._usages.values():
        await usage.catch_up(world.clock.now())
        assert usage.compute_used() == use_of_pods(world)


def use_of_pods(world: AdmissionHarness) -> dict[str, Quantity]:
    pods = [stored.decode_body() for stored in world.store.list("pods", ListQuery(namespace="ns")).items]
    cpu = [Quantity.parse(pod["spec"]["containers"][0]["resources"]["requests"]["cpu"]) for pod in pods]
    return {"pods": Quantity.from_int(len(pods)), "requests.cpu": sum(cpu, Quantity(0))}


def check(world: AdmissionHarness, hard: dict[str, Quantity]) -> None:
    assert all(amount <= hard[name] for name, amount in use_of_pods(world).items())
