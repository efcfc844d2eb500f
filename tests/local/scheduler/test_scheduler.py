"""The scheduler in a cluster of its own: what it binds, what it says, what makes it look again."""

from __future__ import annotations

import pytest

from plimsoll.local.scheduler import SchedulerSettings
from plimsoll.scheduling.cluster_view import PodKey
from tests.local.scheduler.builders import CLAIMS, PODS, SchedulerCluster, node, pod

FITS_NOWHERE = (
    "0/1 nodes are available: 1 Insufficient cpu. no new claims to deallocate, preemption: "
    "0/1 nodes are available: 1 No preemption victims found for incoming pod."
)


def test_a_pod_gets_a_node_and_an_event_says_so():
    with SchedulerCluster() as world:
        world.node("n1")

        world.pod("p", cpu="1")

        assert world.node_of("p") == "n1"
        [event] = world.events("p")
        assert (event["reason"], event["message"]) == ("Scheduled", "Successfully assigned here/p to n1")


def test_pods_are_spread_over_equal_nodes():
    with SchedulerCluster() as world:
        for name in ("n1", "n2", "n3"):
            world.node(name)

        for number in range(6):
            world.pod(f"p{number}", cpu="500m")

        assert sorted(world.placements().values()) == ["n1", "n1", "n2", "n2", "n3", "n3"]


def test_pods_of_other_schedulers_are_not_touched():
    with SchedulerCluster() as world:
        world.node("n1")

        world.pod("p", schedulerName="somebody-else")

        assert world.node_of("p") == ""
        assert world.events("p") == []


def test_a_pod_without_a_place_is_bound_when_a_node_comes():
    with SchedulerCluster() as world:
        world.pod("p", cpu="1")
        assert world.condition("p")["message"] == "no nodes available to schedule pods"

        world.node("n1")
        world.run.settle()

        assert world.node_of("p") == "n1"


def test_a_pod_is_bound_when_another_one_makes_room():
    with SchedulerCluster() as world:
        world.node("n1")
        world.pod("first", cpu="3")
        world.pod("second", cpu="2")
        assert world.condition("second")["message"] == FITS_NOWHERE

        world.delete("first")

        assert world.node_of("second") == "n1"


def test_a_pod_is_bound_when_its_node_grows():
    with SchedulerCluster() as world:
        world.node("n1")
        world.pod("p", cpu="5")

        world.change("/api/v1/nodes/n1/status", {"status": {"allocatable": {"cpu": "8"}}})

        assert world.node_of("p") == "n1"


def test_a_pod_is_bound_when_the_node_is_opened_again():
    with SchedulerCluster() as world:
        world.node("n1", unschedulable=True)
        world.pod("p", cpu="1")
        assert "were unschedulable" in world.condition("p")["message"]

        world.change("/api/v1/nodes/n1", {"spec": {"unschedulable": None}})

        assert world.node_of("p") == "n1"


def test_a_pod_that_ended_takes_no_room():
    with SchedulerCluster() as world:
        world.node("n1")
        world.pod("done", cpu="4")
        world.pod("next", cpu="4")

        world.change(f"{PODS}/done/status", {"status": {"phase": "Succeeded"}})

        assert world.node_of("next") == "n1"


def test_the_same_failure_is_written_once():
    with SchedulerCluster() as world:
        world.node("n1")
        world.pod("p", cpu="9")
        version = world.get("p")["metadata"]["resourceVersion"]

        world.run.advance_by(3_600)

        assert world.get("p")["metadata"]["resourceVersion"] == version
        assert len(world.events("p")) <= 2  # the first, and one that counts the others


def test_a_failure_that_changed_is_reported_with_the_time_since_when_it_lasts():
    with SchedulerCluster() as world:
        world.pod("p", cpu="9")
        since = world.condition("p")["lastTransitionTime"]
        world.run.advance_by(100)

        world.node("n1")
        world.run.advance_by(400)

        assert world.condition("p")["message"].startswith("0/1 nodes are available: 1 Insufficient cpu.")
        assert world.condition("p")["lastTransitionTime"] == since


def test_a_gated_pod_waits_for_its_gates_and_nothing_is_reported():
    with SchedulerCluster() as world:
        world.node("n1")
        world.pod("p", schedulingGates=[{"name": "ex.com/quota"}])
        world.run.advance_by(600)
        assert (world.node_of("p"), world.events("p")) == ("", [])
        assert world.condition("p")["reason"] == "SchedulingGated"

        world.change(f"{PODS}/p", {"spec": {"schedulingGates": None}})

        assert world.node_of("p") == "n1"


def test_the_higher_priority_gets_the_room_that_comes_free():
    with SchedulerCluster() as world:
        world.priority("high", 100, preemptionPolicy="Never")
        world.node("n1")
        world.pod("holder", cpu="4")
        world.pod("low", cpu="4")
        world.pod("high", cpu="4", priorityClassName="high")
        world.run.advance_by(30)

        world.delete("holder")

        assert (world.node_of("high"), world.node_of("low")) == ("n1", "")


def test_preemption_sends_a_pod_of_lower_priority_away():
    with SchedulerCluster() as world:
        world.priority("high", 100)
        world.node("n1")
        world.pod("low", cpu="3")

        world.pod("high", cpu="3", priorityClassName="high")

        assert world.placements() == {"high": "n1"}
        assert world.reasons("high") == ["FailedScheduling", "Scheduled"]
        assert world.reasons("low") == ["Scheduled", "Preempted"]


def test_a_victim_with_grace_holds_its_room_until_it_is_gone():
    with SchedulerCluster() as world:
        world.priority("high", 100)
        world.node("n1")
        world.pod("low", cpu="3", terminationGracePeriodSeconds=30)

        world.pod("high", cpu="3", priorityClassName="high")

        assert world.get("high")["status"]["nominatedNodeName"] == "n1"
        assert world.condition("low", "DisruptionTarget")["reason"] == "PreemptionByScheduler"
        world.run.advance_by(10)
        assert world.node_of("high") == ""
        world.delete("low")
        assert world.node_of("high") == "n1"


def test_room_made_for_one_pod_is_not_given_to_another():
    with SchedulerCluster() as world:
        world.priority("high", 100)
        world.node("n1")
        world.pod("low", cpu="3", terminationGracePeriodSeconds=30)
        world.pod("high", cpu="3", priorityClassName="high")

        world.pod("thief", cpu="1")
        world.delete("low")

        assert (world.node_of("high"), world.node_of("thief")) == ("n1", "n1")
        world.pod("late", cpu="1")
        assert world.node_of("late") == ""


def test_a_pod_that_comes_after_a_nomination_waits_behind_it():
    with SchedulerCluster() as world:
        world.priority("high", 100)
        world.node("n1")
        world.pod("low", cpu="3", terminationGracePeriodSeconds=30)
        world.pod("high", cpu="4", priorityClassName="high")

        world.pod("thief", cpu="1")

        assert world.node_of("thief") == ""
        world.delete("high")
        assert world.node_of("thief") == "n1"


def test_a_restarted_scheduler_keeps_room_for_the_nominated():
    with SchedulerCluster() as world:
        world.priority("high", 100)
        world.node("n1")
        world.pod("low", cpu="3", terminationGracePeriodSeconds=30)
        world.pod("high", cpu="4", priorityClassName="high")
        world.kill()
        world.pod("thief", cpu="1")

        world.start()

        assert world.node_of("thief") == ""
        world.delete("low")
        assert (world.node_of("high"), world.node_of("thief")) == ("n1", "")


def claim(name: str, storage: str = "wait") -> dict[str, object]:
    spec = {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}},
        "storageClassName": storage,
    }
    return {"metadata": {"name": name}, "spec": spec}


def with_claim(name: str) -> dict[str, object]:
    return {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": name}}]}


@pytest.fixture
def waiting_class() -> dict[str, object]:
    return {"metadata": {"name": "wait"}, "provisioner": "ex.com/disk", "volumeBindingMode": "WaitForFirstConsumer"}


def test_a_waiting_claim_gets_the_node_and_the_pod_waits_for_it(waiting_class: dict[str, object]):
    with SchedulerCluster() as world:
        world.made("/apis/storage.k8s.io/v1/storageclasses", waiting_class)
        world.made(CLAIMS, claim("c"))
        world.node("n1")
        world.pod("p", cpu="3", **with_claim("c"))

        annotations = world.ask("GET", f"{CLAIMS}/c").body["metadata"]["annotations"]
        assert annotations["volume.kubernetes.io/selected-node"] == "n1"
        assert world.node_of("p") == ""
        world.pod("other", cpu="3")
        assert world.node_of("other") == ""  # the room is taken

        bound(world, "c", "pv1")
        assert world.node_of("p") == "n1"


def test_a_claim_that_is_seen_bound_before_its_volume_keeps_the_place_of_its_pod(waiting_class: dict[str, object]):
    """They come from two watches. Else the place is lost to others, and the volume is in the wrong zone."""
    with SchedulerCluster() as world:
        world.made("/apis/storage.k8s.io/v1/storageclasses", waiting_class)
        world.made(CLAIMS, claim("c"))
        world.node("n1")
        world.pod("p", cpu="3", **with_claim("c"))

        bound(world, "c", "pv1", is_there=True)
        world.pod("other", cpu="3")
        assert (world.node_of("p"), world.node_of("other")) == ("", "")
        assert "conditions" not in world.get("p")["status"]

        world.made("/api/v1/persistentvolumes", volume("pv1"))
        world.run.advance_by(10)
        assert (world.node_of("p"), world.node_of("other")) == ("n1", "")


def test_a_volume_that_is_there_is_reserved_for_its_claim():
    with SchedulerCluster() as world:
        local = {"metadata": {"name": "wait"}, "provisioner": "kubernetes.io/no-provisioner"}
        world.made("/apis/storage.k8s.io/v1/storageclasses", {**local, "volumeBindingMode": "WaitForFirstConsumer"})
        world.made(CLAIMS, claim("c"))
        world.made("/api/v1/persistentvolumes", volume("pv1"))
        world.change("/api/v1/persistentvolumes/pv1/status", {"status": {"phase": "Available"}})
        world.node("n1")

        world.pod("p", **with_claim("c"))

        reserved = world.ask("GET", "/api/v1/persistentvolumes/pv1").body
        assert reserved["spec"]["claimRef"]["name"] == "c"
        assert world.node_of("p") == ""
        bound(world, "c", "pv1", is_there=True)
        assert world.node_of("p") == "n1"


def volume(name: str) -> dict[str, object]:
    spec = {
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "wait",
        "hostPath": {"path": "/d"},
    }
    return {"metadata": {"name": name}, "spec": spec}


def bound(world: SchedulerCluster, name: str, by: str, *, is_there: bool = False) -> None:
    """What the volume controller does."""
    if not is_there:
        world.made("/api/v1/persistentvolumes", volume(by))
    done = {"metadata": {"annotations": {"pv.kubernetes.io/bind-completed": "yes"}}, "spec": {"volumeName": by}}
    world.change(f"{CLAIMS}/{name}", done)
    world.change(f"{CLAIMS}/{name}/status", {"status": {"phase": "Bound"}})


def test_a_pod_deleted_while_it_waits_gives_its_room_back():
    with SchedulerCluster() as world:
        world.priority("high", 100, preemptionPolicy="Never")
        world.node("n1")
        world.pod("p", cpu="9", priorityClassName="high")

        world.delete("p")
        world.pod("q", cpu="4")

        assert world.node_of("q") == "n1"


def test_preferred_company_is_kept_away_where_that_is_possible():
    avoid = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "db"}}}
    affinity = {
        "podAntiAffinity": {
            "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 100, "podAffinityTerm": avoid}]
        }
    }
    with SchedulerCluster() as world:
        world.node("n1", allocatable={"cpu": "32", "memory": "64Gi"})
        world.node("n2")

        for number in range(2):
            world.pod(f"db{number}", cpu="1", labels={"app": "db"}, affinity=affinity)

        assert sorted(world.placements().values()) == ["n1", "n2"]


# ---- one step at a time


def test_in_a_stepped_world_nothing_happens_by_itself():
    with SchedulerCluster(stepped=True) as world:
        world.node("n1")
        world.pod("p", cpu="1")
        world.run.advance_by(600)

        assert world.node_of("p") == ""


def test_one_go_places_all_it_can_and_says_what_it_could_not():
    with SchedulerCluster(stepped=True) as world:
        world.node("n1")
        world.pod("a", cpu="3")
        world.pod("b", cpu="3")
        world.pod("c", cpu="1")

        done = world.run.run_until(world.scheduler.schedule_once())

        assert done.bound == ((PodKey("here", "a"), "n1"), (PodKey("here", "c"), "n1"))
        assert done.unschedulable == (PodKey("here", "b"),)
        assert world.placements() == {"a": "n1", "b": "", "c": "n1"}
        assert world.reasons("b") == ["FailedScheduling"]


def test_one_attempt_causes_no_back_off():
    with SchedulerCluster(stepped=True) as world:
        world.pod("p", cpu="1")
        for _ in range(3):
            assert world.run.run_until(world.scheduler.schedule_once()).unschedulable == (PodKey("here", "p"),)
        world.node("n1")

        done = world.run.run_until(world.scheduler.schedule_once())

        assert done.bound == ((PodKey("here", "p"), "n1"),)


def test_one_go_after_another_has_nothing_left_to_do():
    with SchedulerCluster(stepped=True) as world:
        world.node("n1")
        world.pod("p", cpu="1")
        world.run.run_until(world.scheduler.schedule_once())

        again = world.run.run_until(world.scheduler.schedule_once())

        assert (again.bound, again.unschedulable) == ((), ())


def test_two_runs_of_the_same_story_place_alike():
    def story() -> dict[str, str]:
        with SchedulerCluster(settings=SchedulerSettings(binds_at_once=3)) as world:
            for number in range(5):
                world.made("/api/v1/nodes", node(f"n{number}", zone=f"z{number % 2}"))
                world.untaint(f"n{number}")
            for number in range(25):
                world.made(PODS, pod(f"p{number}", cpu="700m", labels={"app": str(number % 3)}))
            world.run.advance_by(60)
            return world.placements()

    assert story() == story()
