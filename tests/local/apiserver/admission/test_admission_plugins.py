from __future__ import annotations

from typing import Any

import pytest

from plimsoll.local.apiserver.storage import Put
from tests.local.apiserver.admission.builders import AdmissionHarness, an, in_world, key_of, pod, refused

Json = dict[str, Any]


def created(obj: Json, *others: Json) -> Json:
    async def story(world: AdmissionHarness) -> Json:
        await world.furnish()
        for other in others:
            await world.put(other)
        return await world.create(obj)

    return in_world(story)


def refusal(obj: Json, *others: Json) -> Json:
    async def story(world: AdmissionHarness) -> None:
        await world.furnish()
        for other in others:
            await world.put(other)
        await world.create(obj)

    return refused(story)


def priority_class(name: str, value: int, **parts: Any) -> Json:
    return an("scheduling.k8s.io/v1", "PriorityClass", name, namespace="", value=value, **parts)


class TestNamespaces:
    def test_a_namespace_that_is_not_there_is_not_found(self):
        status = refusal(an("v1", "ConfigMap", "cm", namespace="nosuch"))
        assert (status["code"], status["message"]) == (404, 'namespaces "nosuch" not found')
        assert status["details"] == {"name": "nosuch", "kind": "namespaces"}

    def test_what_is_there_may_still_be_changed_in_a_terminating_namespace(self):
        async def story(world: AdmissionHarness) -> Json:
            await world.furnish()
            await world.create(an("v1", "ConfigMap", "cm"))
            await world.furnish(phase="Terminating")
            return await world.update(an("v1", "ConfigMap", "cm", data={"a": "b"}))

        assert in_world(story)["data"] == {"a": "b"}

    @pytest.mark.parametrize("name", ["kube-system", "kube-public"])
    def test_namespaces_of_the_system_may_not_be_deleted(self, name: str):
        async def story(world: AdmissionHarness) -> None:
            await world.delete(an("v1", "Namespace", name, namespace=""))

        assert refused(story)["message"] == f'namespaces "{name}" is forbidden: this namespace may not be deleted'


class TestServiceAccounts:
    def test_a_name_to_be_generated_is_shown_as_it_was_sent(self):
        made = pod(serviceAccountName="nosuch")
        made["metadata"] = {"generateName": "dq-7b8bffdf6c-", "namespace": "ns"}
        reported = 'pods "dq-7b8bffdf6c-" is forbidden: error looking up service account ns/nosuch'
        assert refusal(made)["message"] == f'{reported}: serviceaccount "nosuch" not found'

    def test_an_account_may_decline_the_token_and_brings_its_pull_secrets(self):
        account = an("v1", "ServiceAccount", "quiet")
        account |= {"automountServiceAccountToken": False, "imagePullSecrets": [{"name": "registry"}]}
        spec = created(pod(serviceAccountName="quiet"), account)["spec"]
        assert "volumes" not in spec
        assert spec["imagePullSecrets"] == [{"name": "registry"}]

    def test_the_pod_goes_before_its_account(self):
        account = an("v1", "ServiceAccount", "quiet", automountServiceAccountToken=False)
        spec = created(pod(serviceAccountName="quiet", automountServiceAccountToken=True), account)["spec"]
        assert len(spec["volumes"]) == 1

    def test_a_mount_at_the_place_of_the_token_is_left_alone(self):
        made = pod(volumes=[{"name": "mine", "emptyDir": {}}])
        mount = {"name": "mine", "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"}
        made["spec"]["containers"][0]["volumeMounts"] = [mount]
        spec = created(made)["spec"]
        assert [volume["name"] for volume in spec["volumes"]] == ["mine"]
        assert spec["containers"][0]["volumeMounts"] == [mount]

    def test_a_mirror_pod_has_no_account(self):
        made = pod(serviceAccountName="default")
        made["metadata"]["annotations"] = {"kubernetes.io/config.mirror": "x"}
        assert refusal(made)["message"].endswith("a mirror pod may not reference service accounts")


class TestPriorities:
    def test_the_default_class_is_given_to_pods_that_name_none(self):
        spec = created(pod(), priority_class("usual", 7, globalDefault=True, preemptionPolicy="Never"))["spec"]
        assert (spec["priorityClassName"], spec["priority"], spec["preemptionPolicy"]) == ("usual", 7, "Never")

    def test_a_priority_beside_a_class_must_be_that_of_the_class(self):
        reported = "the integer value of priority (5) must not be provided in pod spec; priority admission controller"
        message = refusal(pod(priorityClassName="high", priority=5), priority_class("high", 9))["message"]
        assert message == f'pods "p" is forbidden: {reported} computed 9 from the given PriorityClass name'

    def test_a_preemption_policy_beside_a_class_must_be_that_of_the_class(self):
        reported = "the string value of PreemptionPolicy (Never) must not be provided in pod spec"
        message = refusal(pod(priorityClassName="high", preemptionPolicy="Never"), priority_class("high", 9))["message"]
        assert reported in message

    def test_there_is_one_default_class(self):
        first, second = (priority_class(name, 1, globalDefault=True) for name in ("one", "two"))
        reported = "PriorityClass one is already marked as default. Only one default can exist"
        assert refusal(second, first)["message"] == f'priorityclasses.scheduling.k8s.io "two" is forbidden: {reported}'

    def test_the_default_class_may_be_written_again(self):
        first = priority_class("one", 1, globalDefault=True)

        async def story(world: AdmissionHarness) -> Json:
            await world.put(first)
            return await world.update({**first, "description": "d"})

        assert in_world(story)["description"] == "d"

    def test_an_update_keeps_the_number(self):
        async def story(world: AdmissionHarness) -> Json:
            await world.furnish()
            made = await world.create(pod())
            without = {key: value for key, value in made["spec"].items() if key != "priority"}
            return await world.update({**made, "spec": without})

        assert in_world(story)["spec"]["priority"] == 0


class TestStorage:
    @staticmethod
    def storage_class(name: str, made: str = "2026-01-01T00:00:00Z", default: str = "true") -> Json:
        metadata = {
            "creationTimestamp": made,
            "annotations": {"storageclass.kubernetes.io/is-default-class": default},
        }
        return an("storage.k8s.io/v1", "StorageClass", name, namespace="", metadata=metadata, provisioner="x")

    @staticmethod
    def claim(**spec: Any) -> Json:
        spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, **spec}
        return an("v1", "PersistentVolumeClaim", "data", spec=spec)

    def put_as_is(self, *classes: Json) -> str | None:
        async def story(world: AdmissionHarness) -> Json:
            await world.furnish()
            for pod_class in classes:
                await world.store.update(key_of(pod_class), lambda _current, body=pod_class: Put(body))  # type: ignore[misc]
            return await world.create(self.claim())

        name: str | None = in_world(story)["spec"].get("storageClassName")
        return name

    def test_a_claim_without_a_class_gets_the_default_one(self):
        assert self.put_as_is(self.storage_class("slow", default="false"), self.storage_class("fast")) == "fast"

    def test_of_several_default_classes_the_newest_is_taken(self):
        newer = self.storage_class("b", made="2026-02-01T00:00:00Z")
        assert self.put_as_is(self.storage_class("a"), newer, self.storage_class("c")) == "b"

    def test_without_a_default_class_there_is_none(self):
        assert self.put_as_is(self.storage_class("slow", default="false")) is None

    def test_the_empty_class_is_a_choice(self):
        assert created(self.claim(storageClassName=""), self.storage_class("fast"))["spec"]["storageClassName"] == ""

    def test_the_protection_finalizer_is_added_once(self):
        claim = self.claim()
        claim["metadata"]["finalizers"] = ["kubernetes.io/pvc-protection"]
        assert created(claim)["metadata"]["finalizers"] == ["kubernetes.io/pvc-protection"]


class TestTolerations:
    def test_a_pod_that_tolerates_everything_gets_nothing(self):
        assert len(created(pod(tolerations=[{"operator": "Exists"}]))["spec"]["tolerations"]) == 1

    def test_what_is_given_for_one_taint_leaves_the_other_open(self):
        stated = {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"}
        keys = [toleration["key"] for toleration in created(pod(tolerations=[stated]))["spec"]["tolerations"]]
        assert keys == ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"]


def test_a_node_that_brings_the_taint_gets_no_second_one():
    taint = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}
    node = an("v1", "Node", "n", namespace="", spec={"taints": [taint]})
    assert created(node)["spec"]["taints"] == [taint]
