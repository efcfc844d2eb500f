"""Which ProvisioningRequests a turn sees, in which order, with which pods, and what is wrong with them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest
from msgspec import structs

from plimsoll.nodes.config.options import read_options
from plimsoll.nodes.requests.model import ClassKind
from plimsoll.nodes.requests.pod_sets import PodCache
from plimsoll.nodes.requests.reader import read_requests
from plimsoll.objects.api.meta import ObjectMeta
from plimsoll.objects.api.policy import PriorityClass
from plimsoll.objects.codec.decode_problems import BadObject
from plimsoll.scheduling.pod_requests import compute_pod_demand
from tests.nodes.requests.listed_requests import (
    ATOMIC,
    CHECK,
    START,
    after,
    condition,
    listed,
    provisioning_class,
    request,
    seen,
    seen_one,
    template,
)

if TYPE_CHECKING:
    from plimsoll.objects.api.pods import Pod
    from plimsoll.objects.api.provisioning_requests import ProvisioningRequest

INSTANCE = "check-capacity-processor-instance"
URGENT = PriorityClass(metadata=ObjectMeta(name="urgent"), value=1000)


class TestClasses:
    @pytest.mark.parametrize(
        ("kind", "nature"),
        [
            ("check-capacity.kubernetes.io", ClassKind.CHECK),
            ("check-capacity.autoscaling.x-k8s.io", ClassKind.CHECK),
            ("atomic-scale-up.kubernetes.io", ClassKind.ATOMIC),
            ("best-effort-atomic-scale-up.kubernetes.io", ClassKind.ATOMIC),
            ("best-effort-atomic-scale-up.autoscaling.x-k8s.io", ClassKind.ATOMIC),
            ("gang.example.com", ClassKind.REGISTERED),
        ],
    )
    def test_of_both_designs_and_of_others_that_registered(self, kind: str, nature: ClassKind):
        assert seen_one(request(kind=kind), registered={"gang.example.com": ()}).class_kind is nature

    def test_a_class_that_is_not_registered_is_known_and_nothing_else(self):
        found = seen(request(kind="foo.example.com"))
        assert (found.all, found.known) == ((), {"ml/r"})

    def test_a_registered_class_has_conditions_of_its_own(self):
        own = request("r", "gang.example.com", condition("Gathered"), condition("Foreign"))
        found = seen_one(own, registered={"gang.example.com": ("Gathered",)})
        assert [condition.type for condition in found.conditions.all] == ["Gathered"]

    def names(self, **options: str) -> list[str]:
        blue, green = (request(name, CHECK, processorInstance=name) for name in ("blue", "green"))
        named = request("named", f"blue{CHECK}")
        found = seen(request("atomic", ATOMIC), request("check"), blue, green, named, options=options)
        return sorted(request_view.name for request_view in found.all)

    def test_n19_the_instance_with_a_name_answers_checks_that_name_it(self):
        assert self.names(**{INSTANCE: "blue"}) == ["ml/blue", "ml/named"]

    def test_n19_the_one_without_a_name_answers_requests_that_name_none(self):
        assert self.names() == ["ml/atomic", "ml/check"]

    def test_n46_a_class_that_is_not_listed_is_not_allowed(self):
        found = seen_one(request(kind=ATOMIC), provisioning_classes=(provisioning_class(CHECK),))
        assert found.problem is not None
        assert (found.problem[0], found.pods) == ("ClassNotAllowed", ())

    def test_n46_classes_of_others_stay_untouched(self):
        assert seen(request(kind="foo.example.com"), provisioning_classes=(provisioning_class(CHECK),)).all == ()

    def test_a_request_keeps_its_capacity_when_its_class_is_removed_from_the_list(self):
        held = request("r", ATOMIC, condition("Provisioned"))
        assert seen_one(held, provisioning_classes=(provisioning_class(CHECK),)).problem is None

    def test_a_class_that_cannot_be_read_is_listed_all_the_same(self):
        bad = BadObject(kind="ProvisioningClass", name=ATOMIC, problem="parameters: Expected `object`, got `int`")
        assert seen_one(request(kind=ATOMIC), bad=(bad,)).problem is None
        assert seen_one(request(kind=CHECK), bad=(bad,)).problem is not None


class TestParameters:
    def test_those_of_the_class_are_defaults(self):
        classes = (provisioning_class(CHECK, reserve="false", BookingDurationSeconds="60"),)
        found = seen_one(request(BookingDurationSeconds="30"), provisioning_classes=classes).parameters
        assert (found.reserves, found.booking_s) == (False, 30)

    @pytest.mark.parametrize(("own", "expected"), [("86400", 7200), ("600", 600), ("", 7200)])
    def test_n46_the_class_says_how_long_a_request_is_tried_at_most(self, own: str, expected: int):
        classes = (provisioning_class(ATOMIC, ValidUntilSeconds="7200"),)
        given: dict[str, Any] = {"ValidUntilSeconds": own} if own else {}
        assert seen_one(request(kind=ATOMIC, **given), provisioning_classes=classes).parameters.valid_s == expected

    def test_the_spelling_of_the_first_design_is_read_too(self):
        (one,) = (provisioning_class(CHECK),)
        spelled = type(one)(metadata=one.metadata, first_parameters={"noRetry": "true"})
        assert not seen_one(request(), provisioning_classes=(spelled,)).parameters.retries


class TestOrder:
    def line(self, *requests: ProvisioningRequest, **more: Any) -> list[str]:
        return [request_view.name.removeprefix("ml/") for request_view in seen(*requests, at=100, **more).queue]

    def test_the_oldest_first_then_by_name(self):
        old = {"creation_timestamp": after(-9)}
        assert self.line(request("b"), request("c", meta=old), request("a")) == ["c", "a", "b"]

    def test_a_higher_priority_goes_before_age(self):
        templates = (template(), template("u", priorityClassName="urgent"))
        old, new = request("old", meta={"creation_timestamp": after(-9)}), request("new", sets={"t": 1, "u": 1})
        assert self.line(old, new, templates=templates, priority_classes=(URGENT,)) == ["new", "old"]

    def test_a_scale_up_that_was_begun_is_first(self):
        begun = request("z", ATOMIC, details={"intent": '{"attempt":1,"groups":{"g":{"from":0,"to":2}}}'})
        urgent = request("a", sets={"u": 1})
        templates = (template(), template("u", priority=9))
        assert self.line(urgent, begun, templates=templates) == ["z", "a"]

    def test_a_request_that_is_not_due_delays_no_other(self):
        refused = condition("Provisioned", "False", "CapacityIsNotFound", at=90)
        assert self.line(request("a", CHECK, refused), request("b")) == ["b"]

    def test_requests_with_capacity_are_held_in_order_of_their_answers(self):
        late, early = (request(name, CHECK, condition("Provisioned", at=at)) for name, at in (("a", 9), ("b", 5)))
        found = seen(late, early, at=10)
        assert [request.name for request in found.held] == ["ml/b", "ml/a"]
        assert found.queue == found.others == ()

    def test_a_request_that_is_being_deleted_is_gone(self):
        found = seen(request(meta={"deletion_timestamp": START}))
        assert (found.all, found.known) == ((), {"ml/r"})


class TestPodSets:
    def test_one_for_each_with_the_request_as_bundle(self):
        found = seen_one(request(sets={"t": 3, "u": 16384}), templates=(template(), template("u")))
        assert [(pod.key, pod.count, pod.bundle, pod.names) for pod in found.pods] == [
            ("ml/r/0", 3, "ml/r", ()),
            ("ml/r/1", 16384, "ml/r", ()),
        ]
        assert (found.total, found.pods[0].created) == (16387, START)

    def test_a_pod_says_whose_it_is(self):
        pod = (
            seen_one(request(), templates=(template(metadata={"labels": {"a": "b"}, "annotations": {"x": "y"}}),))
            .pods[0]
            .pod
        )
        assert (pod.metadata.name, pod.metadata.namespace, pod.metadata.labels) == ("r-0", "ml", {"a": "b"})
        assert pod.metadata.annotations == {
            "x": "y",
            "autoscaling.x-k8s.io/consume-provisioning-request": "r",
            "autoscaling.x-k8s.io/provisioning-class-name": CHECK,
        }
        (owner,) = pod.metadata.owner_references
        assert (owner.kind, owner.name, owner.uid, owner.controller) == ("ProvisioningRequest", "r", "uid-r", True)

    def test_limit_ranges_fill_in_what_a_template_leaves_open(self):
        bounds = {"spec": {"limits": [{"type": "Container", "defaultRequest": {"cpu": "3", "memory": "1Gi"}}]}}
        found = seen_one(request(), limit_ranges={"ml": [bounds]})
        demand = compute_pod_demand(found.pods[0].pod)
        assert (demand["cpu"], demand["memory"]) == (1000, 2**30)

    def test_a_limit_is_a_request_before_any_default(self):
        bounds = {"spec": {"limits": [{"type": "Container", "defaultRequest": {"cpu": "3"}}]}}
        limited = template(container={"resources": {"limits": {"cpu": "2"}}})
        found = seen_one(request(), templates=(limited,), limit_ranges={"ml": [bounds]})
        assert compute_pod_demand(found.pods[0].pod)["cpu"] == 2000

    def test_priorities_come_from_classes_and_their_default(self):
        usual = PriorityClass(metadata=ObjectMeta(name="usual"), value=5, global_default=True)
        templates = (template(), template("u", priorityClassName="urgent"))
        found = seen(request("a"), request("b", sets={"u": 1}), templates=templates, priority_classes=(URGENT, usual))
        assert found.priorities == {"ml/a": 5, "ml/b": 1000}

    def test_pods_are_as_the_cluster_s_scheduler_sees_them(self):
        def as_scheduled(pod: Pod) -> Pod:
            return structs.replace(pod, spec=structs.replace(pod.spec, node_selector={"zone": "a"}))

        found = seen_one(request(), as_scheduled=as_scheduled)
        assert found.pods[0].pod.spec.node_selector == {"zone": "a"}
        assert found.templates[0].spec.node_selector == {"zone": "a"}

    def test_n18_a_missing_template_is_a_problem_of_its_request_alone(self):
        bad, good = seen(request("a", sets={"t": 1, "gone": 2}), request("b")).queue
        assert bad.problem is not None
        code, message = bad.problem
        assert code == "FailedToCreatePods"
        assert (re.findall(r"\d+", message), message.split()[-1]) == (["2", "1"], "ml/gone"), "templates, missing ones"
        assert (bad.pods, good.problem) == ((), None)

    def test_a_template_that_cannot_be_read_is_too(self):
        odd = template(container={"resources": {"requests": 7}})
        (bad, good) = seen(
            request("a", sets={"odd": 1}), request("b"), templates=(template(), {**odd, "metadata": {"name": "odd"}})
        ).queue
        assert bad.problem is not None
        assert bad.problem[0] == "FailedToCreatePods"
        assert bad.problem[1].startswith("PodTemplate ml/odd cannot be read: template.spec.containers[0].resources")
        assert good.problem is None

    def test_one_that_did_not_even_decode_is_not_called_missing(self):
        bad = BadObject(kind="PodTemplate", namespace="ml", name="odd", problem="nested too deeply")
        found = seen_one(request(sets={"odd": 1}), bad=(bad,))
        assert found.problem is not None
        assert found.problem[0] == "FailedToCreatePods"
        assert all(fact in found.problem[1] for fact in ("PodTemplate ml/odd", "nested too deeply"))

    def test_a_request_with_capacity_whose_template_is_gone_cannot_be_booked(self):
        found = seen_one(request("r", CHECK, condition("Provisioned"), sets={"gone": 1}))
        assert found.problem is not None
        assert found.problem[0] == "FailedToBookCapacity"

    def test_a_request_that_cannot_be_read_is_known(self):
        bad = BadObject(kind="ProvisioningRequest", namespace="ml", name="odd", problem="x")
        assert seen(request(), bad=(bad,)).known == {"ml/r", "ml/odd"}


class TestMemory:
    def test_the_same_template_gives_the_very_same_pod(self):
        memory = PodCache()
        policy = read_options({})
        first = read_requests(given := listed(request(), pod_cache=memory), policy, START).queue[0]
        again = read_requests(given, policy, after(9)).queue[0]
        assert again.pods[0].pod is first.pods[0].pod

    def test_a_template_that_changed_does_not(self):
        memory = PodCache()
        policy = read_options({})
        read_requests(listed(request(), pod_cache=memory), policy, START)
        changed = template(container={"resources": {"requests": {"cpu": "7"}}})
        again = read_requests(listed(request(), templates=(changed,), pod_cache=memory), policy, START).queue[0]
        assert compute_pod_demand(again.pods[0].pod)["cpu"] == 7000

    def test_a_priority_that_changed_does_not_either(self):
        memory = PodCache()
        policy = read_options({})
        body = template(priorityClassName="urgent")
        for value in (1, 2):
            urgent = PriorityClass(metadata=ObjectMeta(name="urgent"), value=value)
            given = listed(request(), templates=(body,), priority_classes=(urgent,), pod_cache=memory)
            assert read_requests(given, policy, START).queue[0].pods[0].pod.spec.priority == value

    def test_what_is_gone_is_forgotten(self):
        memory = PodCache()
        read_requests(listed(request(), pod_cache=memory), read_options({}), START)
        read_requests(listed(pod_cache=memory), read_options({}), START)
        assert (memory.made, memory.named) == ({}, {})
