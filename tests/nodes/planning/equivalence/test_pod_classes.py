"""Which pods belong to one class, and what a class knows of them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

import pytest
from msgspec import structs

from plimsoll.nodes.model.snapshot import PendingPods
from plimsoll.nodes.planning.equivalence.pod_classes import ClassTable
from plimsoll.nodes.planning.equivalence.scheduling_keys import SchedulingKeys
from plimsoll.objects.api.pods import ContainerStatus, PodCondition, PodStatus
from plimsoll.scheduling import ClusterView, Storage
from tests.scheduling.builders import (
    ZONE,
    claim,
    node,
    node_affinity,
    pod,
    required,
    spread,
    storage_class,
    term,
    uses,
    volume,
)

if TYPE_CHECKING:
    from plimsoll.objects.api.pods import Pod

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
EMPTY = ClusterView.from_objects()


def waiting(made: Pod, key: str = "", *, count: int = 1, created: datetime | None = None) -> PendingPods:
    return PendingPods(key=key or made.metadata.name, pod=made, count=count, created=created)


def table(*pods: Pod, view: ClusterView = EMPTY) -> ClassTable:
    return ClassTable.build([waiting(pod) for pod in pods], view)


def are_alike(*pods: Pod, view: ClusterView = EMPTY) -> bool:
    return len(table(*pods, view=view)) == 1


def container(**more: Any) -> dict[str, Any]:
    return {"containers": [{"name": "c", **more}]}


def test_names_owners_images_and_preferences_distinguish_nothing():
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "rs", "uid": "u", "controller": True}
    preferred = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1}]}}
    one = pod("a", **container(image="x"), hostname="a-0", affinity=preferred)
    other = pod("b", **container(image="y"))
    owned = structs.replace(other, metadata=structs.replace(other.metadata, annotations={"owner": str(owner)}))

    assert are_alike(one, other, owned)


@pytest.mark.parametrize(
    "spec",
    [
        container(resources={"requests": {"cpu": 1}}),
        container(ports=[{"hostPort": 80}]),
        {"nodeSelector": {"disk": "ssd"}},
        {"nodeName": "n1"},
        {"priority": 5},
        {"schedulerName": "mine"},
        {"overhead": {"cpu": "1"}},
        {"tolerations": [{"operator": "Exists"}]},
        node_affinity({"matchExpressions": [{"key": "disk", "operator": "Exists"}]}),
        spread({"app": "web"}),
        required(term({"app": "web"})),
        {"schedulingGates": [{"name": "wait"}]},
    ],
    ids=lambda spec: next(iter(spec)),
)
def test_whatever_a_rule_reads_of_a_spec_distinguishes_pods(spec: dict[str, Any]):
    assert not are_alike(pod("a"), pod("b", **spec))


def test_order_and_repetition_do_not_matter():
    terms: list[dict[str, Any]] = [
        {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["a", "b"]}]},
        {"matchExpressions": [{"key": "cpu", "operator": "Exists"}]},
    ]
    again = [terms[1], {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["b", "a"]}]}, terms[1]]
    tolerations = [{"key": "a", "operator": "Exists"}, {"key": "b", "value": "1"}]
    equal = [{"key": "b", "value": "1", "operator": "Equal"}, {**tolerations[0], "tolerationSeconds": 5}]

    assert are_alike(
        pod("a", **node_affinity(*terms), tolerations=tolerations),
        pod("b", **node_affinity(*again), tolerations=equal),
    )


def test_equal_amounts_written_differently_are_one_class():
    assert are_alike(pod("a", requests={"cpu": "1"}), pod("b", requests={"cpu": "1000m"}))


def test_labels_without_a_selector_distinguish_nothing():
    assert are_alike(pod("a", labels={"app": "web"}), pod("b", labels={"app": "db"}, namespace="other"))


def test_labels_and_namespaces_count_once_a_waiting_pod_selects_by_them():
    apart = pod("x", labels={"app": "x"}, **required(term({"app": "web"})))

    classes = table(
        apart,
        pod("a", labels={"app": "web", "color": "red"}),
        pod("b", labels={"app": "web", "color": "blue"}),
        pod("c", labels={"app": "db"}),
        pod("d", labels={"app": "web"}, namespace="other"),
    )

    assert classes.class_of.tolist() == [0, 1, 1, 2, 3]


def test_labels_count_once_a_running_pod_avoids_by_them():
    running = pod("r", on="n1", **required(term({"app": "web"})))
    view = ClusterView.from_objects([node("n1")], [running])

    assert not are_alike(pod("a", labels={"app": "web"}), pod("b", labels={"app": "db"}), view=view)


def test_running_pods_that_only_prefer_others_bind_nothing():
    running = pod("r", on="n1", **required(term({"app": "web"}), "podAffinity"), **spread({"app": "web"}))
    view = ClusterView.from_objects([node("n1")], [running])

    assert are_alike(pod("a", labels={"app": "web"}), pod("b", labels={"app": "db"}), view=view)


def test_match_label_keys_split_by_their_values_alone():
    keyed = spread({"app": "web"}, matchLabelKeys=["hash"])
    classes = table(
        pod("a", labels={"app": "web", "hash": "1", "index": "0"}, **keyed),
        pod("b", labels={"app": "web", "hash": "1", "index": "1"}, **keyed),
        pod("c", labels={"app": "web", "hash": "2"}, **keyed),
    )

    assert classes.class_of.tolist() == [0, 0, 1]


def test_claims_bound_in_one_zone_are_alike_and_in_different_zones_not():
    storage = Storage(
        claims=[claim(f"data-{index}", volume=f"pv-{index}") for index in range(3)],
        volumes=[volume("pv-0", zone="z1"), volume("pv-1", zone="z1"), volume("pv-2", zone="z2")],
    )
    view = ClusterView.from_objects(storage=storage)
    pods = [pod(f"db-{index}", **uses(f"data-{index}")) for index in range(3)]

    assert table(*pods, view=view).class_of.tolist() == [0, 0, 1]


def test_claims_that_wait_for_one_class_are_alike():
    storage = Storage(claims=[claim("a"), claim("b"), claim("c", storage="2Gi")], classes=[storage_class()])
    view = ClusterView.from_objects(storage=storage)

    assert table(*(pod(name, **uses(name)) for name in "abc"), view=view).class_of.tolist() == [0, 0, 1]


def test_a_claim_for_one_pod_only_is_known_when_it_is_shared():
    storage = Storage(
        claims=[claim("own", volume="pv", modes=("ReadWriteOncePod",)), claim("data", volume="pv")],
        volumes=[volume("pv")],
    )
    view = ClusterView.from_objects(storage=storage)
    alone, together = waiting(pod("a", **uses("own"))), waiting(pod("a", **uses("own")), count=2)

    assert not ClassTable.build([alone], view).classes[0].one_pod_only
    assert ClassTable.build([together], view).classes[0].one_pod_only


@pytest.mark.parametrize(
    ("spec", "stated"),
    [
        ({"overhead": {"cpu": "-1"}}, "spec.overhead[cpu]: must be greater than or equal to 0"),
        (
            node_affinity({"matchExpressions": [{"key": "a", "operator": "Near"}]}),
            '"Near" is not a valid node selector operator',
        ),
        ({"resourceClaims": [{"name": "gpu"}]}, "dynamic resource allocation is not supported"),
        (uses("data"), 'persistentvolumeclaim "data" not found'),
    ],
)
def test_a_pod_that_no_node_could_take_says_why(spec: dict[str, Any], stated: str):
    problem = table(pod("a", **spec)).classes[0].problem

    assert problem is not None
    assert stated in ", ".join(problem.messages)


def test_a_sound_pod_has_no_problem():
    assert table(pod("a", **spread({"app": "web"}))).classes[0].problem is None


def test_flags_say_which_rules_concern_a_class():
    classes = table(
        pod("a"),
        pod("b", **spread({"app": "web"})),
        pod("c", **required(term({"app": "web"}), "podAffinity")),
        pod("d", **required(term({"app": "web"}))),
        pod("e", **container(ports=[{"hostPort": 80}])),
        pod("f", **uses("data")),
    ).classes

    assert [pod_class.is_simple for pod_class in classes] == [True, False, False, False, False, False]
    assert [pod_class.has_spread for pod_class in classes].index(True) == 1
    assert [pod_class.has_affinity for pod_class in classes].index(True) == 2
    assert [pod_class.has_anti_affinity for pod_class in classes].index(True) == 3
    assert [bool(pod_class.scheduling_key.ports) for pod_class in classes].index(True) == 4
    assert [pod_class.has_volumes for pod_class in classes].index(True) == 5


def test_members_are_named_by_their_keys_the_oldest_first():
    classes = ClassTable.build(
        [
            waiting(pod("a"), "ns/a", count=3, created=NOON),
            waiting(pod("b"), "ns/b", count=2, created=NOON - timedelta(hours=1)),
            waiting(pod("c", priority=1), "ns/c", count=7),
        ],
        EMPTY,
    )

    assert classes.counts.tolist() == [5, 7]
    assert classes.classes[0].created == NOON - timedelta(hours=1)
    assert classes.count_members_by_key(0, 4) == {"ns/b": 2, "ns/a": 2}
    assert classes.count_members_by_key(0, 2, after=1) == {"ns/b": 1, "ns/a": 1}
    assert classes.count_members_by_key(0, 9, after=4) == {"ns/a": 1}


def test_forms_kept_between_turns_give_the_same_classes():
    forms = SchedulingKeys()
    first = [waiting(pod("a", requests={"cpu": 1})), waiting(pod("b"))]
    later = [waiting(pod("b")), waiting(pod("c", nodeSelector={ZONE: "z1"})), waiting(pod("a", requests={"cpu": 1}))]

    ClassTable.build(first, EMPTY, scheduling_keys=forms)
    kept = ClassTable.build(later, EMPTY, scheduling_keys=forms)

    assert kept.class_of.tolist() == ClassTable.build(later, EMPTY).class_of.tolist() == [0, 1, 2]


def test_a_pod_is_read_once_for_each_version():
    forms = SchedulingKeys()
    made = pod("a")
    seen = structs.replace(made, metadata=structs.replace(made.metadata, resource_version="1"))
    heavier = pod("a", requests={"cpu": 4})
    unread = structs.replace(heavier, metadata=seen.metadata)
    changed = structs.replace(heavier, metadata=structs.replace(made.metadata, resource_version="2"))

    first = forms.get_key(seen)
    forms.forget_unused()

    assert forms.get_key(unread) is first
    assert forms.get_key(changed).demand["cpu"] == 4000


def test_times_of_conditions_are_not_part_of_a_key():
    """A time with an offset may lie beyond the year 9999, where it cannot be encoded."""
    beyond = datetime(9999, 12, 31, 23, 59, 59, tzinfo=timezone(timedelta(hours=-23)))
    resized = ContainerStatus(name="c", allocated_resources={"cpu": "1"})
    keys = SchedulingKeys()
    forms = {
        keys.get_key(
            structs.replace(pod("a"), status=PodStatus(conditions=(condition,), container_statuses=(resized,)))
        )
        for condition in (PodCondition(type="Ready", last_transition_time=time) for time in (beyond, None))
    }
    assert len(forms) == 1
