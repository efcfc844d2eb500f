"""Pods on played nodes: they start, run, end and go, and say so as a kubelet of 1.34 does."""

from __future__ import annotations

from typing import Any

from tests.local.apiserver.builders import MERGE, STRATEGIC
from tests.local.kubelet.builders import PODS, KubeletCluster, a_pod, conditions

TRUE = ("True", "")
RUNNING = {
    "PodReadyToStartContainers": TRUE,
    "Initialized": TRUE,
    "Ready": TRUE,
    "ContainersReady": TRUE,
    "PodScheduled": TRUE,
}


def container(pod: Any) -> Any:
    return pod["status"]["containerStatuses"][0]


def test_a_pod_is_taken_then_waits_then_runs():
    with KubeletCluster(start_s=5) as world:
        world.node()
        taken = world.pod()
        assert taken["status"]["phase"] == "Pending"
        assert taken["status"]["hostIP"] == "10.128.0.1"
        assert "podIP" not in taken["status"]
        assert container(taken)["state"] == {"waiting": {"reason": "ContainerCreating"}}
        assert conditions(taken)["Ready"] == ("False", "ContainersNotReady")
        assert conditions(taken)["PodReadyToStartContainers"] == ("False", "")
        world.run.advance_by(4)
        assert world.get_pod()["status"]["phase"] == "Pending"
        world.run.advance_by(2)
        runs = world.get_pod()
    assert runs["status"]["phase"] == "Running"
    assert conditions(runs) == RUNNING
    assert list(conditions(runs)) == list(RUNNING)
    assert runs["status"]["podIPs"] == [{"ip": "10.64.0.1"}]
    assert runs["status"]["hostIPs"] == [{"ip": "10.128.0.1"}]
    assert runs["status"]["startTime"] == "2026-01-01T00:00:00Z"
    assert runs["status"]["observedGeneration"] == 1
    assert runs["status"]["qosClass"] == "BestEffort"
    assert all("message" not in run for run in runs["status"]["conditions"])


def test_a_pod_that_should_run_by_now_is_not_first_reported_as_starting():
    """Bound long before this kubelet comes to it."""
    with KubeletCluster(start_s=5) as world:
        world.pod()
        bound = {"type": "PodScheduled", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}
        world.ask("PATCH", f"{PODS}/p/status", {"status": {"conditions": [bound]}}, content=STRATEGIC)
        world.run.advance_by(7)
        watching = world.watch(f"{PODS}?watch=true&resourceVersion={world.get_pod()['metadata']['resourceVersion']}")
        world.node()
        phases = [event["object"]["status"]["phase"] for event in watching.events]
    assert set(phases) == {"Running"}


def test_a_running_container_is_described_as_a_runtime_does():
    with KubeletCluster(start_s=0) as world:
        world.node()
        status = container(world.pod())
    assert status["state"] == {"running": {"startedAt": "2026-01-01T00:00:00Z"}}
    assert (status["ready"], status["started"], status["restartCount"]) == (True, True, 0)
    assert status["image"] == "docker.io/library/nginx:1.27"
    assert status["imageID"].startswith("docker.io/library/nginx@sha256:")
    assert status["containerID"].startswith("containerd://")


def test_pods_wait_for_their_node_to_boot():
    with KubeletCluster(boot_s=60, start_s=0) as world:
        world.node()
        world.pod()
        world.run.advance_by(59)
        assert world.get_pod()["status"]["phase"] == "Pending"
        assert "startTime" not in world.get_pod()["status"]
        world.run.advance_by(2)
        assert world.get_pod()["status"]["phase"] == "Running"


def test_pods_bound_before_their_node_is_known_start_when_it_comes():
    with KubeletCluster(start_s=0) as world:
        world.pod(node="later")
        world.node("later")
        assert world.get_pod()["status"]["phase"] == "Running"


def test_a_pod_on_the_hosts_network_has_the_hosts_address():
    with KubeletCluster(start_s=0) as world:
        world.node()
        status = world.pod(hostNetwork=True)["status"]
    assert status["podIP"] == status["hostIP"]


def test_init_containers_complete_and_sidecars_run_on():
    inits = [{"name": "prepare", "image": "a"}, {"name": "side", "image": "b", "restartPolicy": "Always"}]
    with KubeletCluster(start_s=5) as world:
        world.node()
        waits = world.pod(initContainers=inits)
        assert conditions(waits)["Initialized"] == ("False", "ContainersNotInitialized")
        assert container(waits)["state"]["waiting"]["reason"] == "PodInitializing"
        world.run.advance_by(6)
        status = world.get_pod()["status"]
    prepare, side = status["initContainerStatuses"]
    assert (prepare["state"]["terminated"]["reason"], prepare["ready"], prepare["started"]) == (
        "Completed",
        True,
        False,
    )
    assert (list(side["state"]), side["ready"], side["started"]) == (["running"], True, True)
    assert conditions({"status": status}) == RUNNING


def test_a_readiness_gate_holds_the_pod_back_until_it_is_opened():
    with KubeletCluster(start_s=0) as world:
        world.node()
        pod = world.pod(readinessGates=[{"conditionType": "ex.com/ok"}])
        ready = next(condition for condition in pod["status"]["conditions"] if condition["type"] == "Ready")
        assert (ready["status"], ready["reason"]) == ("False", "ReadinessGatesNotReady")
        assert ready["message"] == 'corresponding condition of pod readiness gate "ex.com/ok" does not exist.'
        opened = {"status": {"conditions": [{"type": "ex.com/ok", "status": "True"}]}}
        world.ask("PATCH", f"{PODS}/p/status", opened, content=STRATEGIC)
        world.run.settle()
        assert conditions(world.get_pod())["Ready"] == TRUE
        assert conditions(world.get_pod())["ex.com/ok"] == TRUE


def test_work_that_ends_well_succeeds():
    with KubeletCluster(start_s=0) as world:
        world.node()
        world.pod(pace={"run-seconds": 30}, restartPolicy="Never")
        world.run.advance_by(29)
        assert world.get_pod()["status"]["phase"] == "Running"
        world.run.advance_by(2)
        done = world.get_pod()
    assert done["status"]["phase"] == "Succeeded"
    assert conditions(done)["Ready"] == ("False", "PodCompleted")
    assert conditions(done)["Initialized"] == ("True", "PodCompleted")
    ended = container(done)["state"]["terminated"]
    assert (ended["exitCode"], ended["reason"], ended["finishedAt"]) == (0, "Completed", "2026-01-01T00:00:30Z")


def test_work_that_ends_badly_fails_where_it_is_not_restarted():
    with KubeletCluster(start_s=0) as world:
        world.node()
        world.pod(pace={"run-seconds": 3, "exit-code": 7}, restartPolicy="Never")
        world.run.advance_by(4)
        failed = world.get_pod()
    assert failed["status"]["phase"] == "Failed"
    assert conditions(failed)["Ready"] == ("False", "PodFailed")
    assert container(failed)["state"]["terminated"]["exitCode"] == 7


def test_a_crash_loop_restarts_at_once_then_backs_off():
    with KubeletCluster(start_s=0) as world:
        world.node()
        uid = world.pod(pace={"run-seconds": 2, "exit-code": 1}, restartPolicy="OnFailure")["metadata"]["uid"]
        world.run.advance_by(3)
        assert container(world.get_pod())["restartCount"] == 1
        assert "running" in container(world.get_pod())["state"]
        world.run.advance_by(2)
        status = container(world.get_pod())
        waits = status["state"]["waiting"]
        assert waits["reason"] == "CrashLoopBackOff"
        assert waits["message"] == f"back-off 10s restarting failed container=c pod=p_default({uid})"
        assert status["lastState"]["terminated"]["exitCode"] == 1
        assert world.get_pod()["status"]["phase"] == "Running"
        assert conditions(world.get_pod())["Ready"] == ("False", "ContainersNotReady")
        world.run.advance_by(10)
        assert container(world.get_pod())["restartCount"] == 2


def test_a_deadline_ends_the_pod():
    with KubeletCluster(start_s=0) as world:
        world.node()
        world.pod(activeDeadlineSeconds=20)
        world.run.advance_by(21)
        status = world.get_pod()["status"]
    assert (status["phase"], status["reason"]) == ("Failed", "DeadlineExceeded")
    assert status["message"] == "Pod was active on the node longer than the specified deadline"


def test_a_pod_the_node_has_no_room_for_is_rejected():
    big = [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "3"}}}]
    with KubeletCluster(start_s=0) as world:
        world.node()
        world.pod("first", containers=big)
        status = world.pod("second", containers=big)["status"]
        assert (status["phase"], status["reason"]) == ("Failed", "OutOfcpu")
        assert status["message"] == (
            "Pod was rejected: Node didn't have enough resource: cpu, requested: 3000, used: 3000, capacity: 4000"
        )
        world.delete_pod("first")
        assert world.pod("third", containers=big)["status"]["phase"] == "Running"


def test_requests_show_in_the_container_status():
    asks = [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "500m"}, "limits": {"cpu": "1"}}}]
    with KubeletCluster(start_s=0) as world:
        world.node()
        status = container(world.pod(containers=asks))
    assert status["allocatedResources"] == {"cpu": "500m"}
    assert status["resources"] == {"requests": {"cpu": "500m"}, "limits": {"cpu": "1"}}


# ---- the end


def test_a_deleted_pod_is_ended_and_removed():
    with KubeletCluster(start_s=0) as world:
        world.node()
        world.pod()
        watching = world.watch(f"{PODS}?watch=true&timeoutSeconds=60")
        world.delete_pod()
        assert world.get_pod() is None
        last = watching.events[-1]
    assert last["type"] == "DELETED"
    assert last["object"]["status"]["phase"] == "Succeeded"


def test_where_ends_are_not_reported_a_pod_just_goes_unless_a_finalizer_keeps_it():
    with KubeletCluster(start_s=0, reports_ends=False) as world:
        world.node()
        world.pod()
        world.pod("kept", finalizers=["ex.com/hold"])
        watching = world.watch(f"{PODS}?watch=true&timeoutSeconds=60&fieldSelector=metadata.name=p")
        world.delete_pod()
        world.delete_pod("kept")
        assert world.get_pod() is None
        assert world.get_pod("kept")["status"]["phase"] == "Succeeded"
    assert {event["object"]["status"]["phase"] for event in watching.events} == {"Running"}


def test_a_pod_that_takes_long_to_stop_has_its_grace_and_no_more():
    with KubeletCluster(start_s=0) as world:
        world.node()
        world.pod("slow", pace={"stop-seconds": 10})
        world.pod("deaf", pace={"stop-seconds": 100}, finalizers=["ex.com/hold"])
        world.delete_pod("slow")
        world.delete_pod("deaf")
        world.run.advance_by(9)
        assert world.get_pod("slow")["status"]["phase"] == "Running"
        world.run.advance_by(2)
        assert world.get_pod("slow") is None
        world.run.advance_by(18)
        assert world.get_pod("deaf")["status"]["phase"] == "Running"
        world.run.advance_by(2)
        assert container(world.get_pod("deaf"))["state"]["terminated"]["exitCode"] == 137
        assert world.get_pod("deaf")["status"]["phase"] == "Failed"


def test_a_pod_with_a_finalizer_stays_ended_until_it_is_let_go():
    with KubeletCluster(start_s=0) as world:
        world.node()
        world.pod(finalizers=["ex.com/hold"], restartPolicy="Never")
        world.delete_pod()
        kept = world.get_pod()
        assert kept["metadata"]["deletionGracePeriodSeconds"] == 0
        assert kept["status"]["phase"] == "Failed"
        assert container(kept)["state"]["terminated"]["exitCode"] == 143
        world.run.advance_by(600)
        assert world.get_pod()["metadata"]["resourceVersion"] == kept["metadata"]["resourceVersion"]
        world.ask("PATCH", f"{PODS}/p", {"metadata": {"finalizers": None}}, content=MERGE)
        assert world.get_pod() is None


def test_pods_of_a_silent_node_stay_as_they_are():
    with KubeletCluster(start_s=0) as world:
        world.node()
        world.pod()
        world.annotate_node(silent="true")
        world.delete_pod()
        world.run.advance_by(120)
        assert world.get_pod()["status"]["phase"] == "Running"
        world.annotate_node(silent=None)
        assert world.get_pod() is None


def test_a_new_process_goes_on_where_the_old_one_was():
    with KubeletCluster(start_s=10) as world:
        world.node()
        world.pod("starts")
        world.pod("works", pace={"start-seconds": 0, "run-seconds": 20}, restartPolicy="Never")
        world.run.advance_by(5)
        world.kill()
        world.run.advance_by(2)
        world.start()
        world.run.advance_by(2)
        assert world.get_pod("starts")["status"]["phase"] == "Pending"
        world.run.advance_by(2)
        assert world.get_pod("starts")["status"]["phase"] == "Running"
        world.run.advance_by(10)
        assert container(world.get_pod("works"))["state"]["terminated"]["finishedAt"] == "2026-01-01T00:00:20Z"


def test_addresses_of_pods_are_not_given_twice_after_a_restart():
    with KubeletCluster(start_s=0) as world:
        world.node()
        world.pod("b")
        world.kill()
        world.made(PODS, a_pod("a"))
        world.start()
        assert world.get_pod("a")["status"]["podIP"] != world.get_pod("b")["status"]["podIP"]


def test_events_describe_a_pods_life():
    with KubeletCluster(start_s=0, emits_events=True) as world:
        world.node()
        world.pod()
        world.delete_pod()
        world.run.advance_by(1)
        events = world.ask("GET", "/api/v1/namespaces/default/events").body["items"]
    reported = {(event["involvedObject"]["kind"], event["reason"], event["message"]) for event in events}
    assert reported == {
        ("Node", "NodeReady", "Node n1 status is now: NodeReady"),
        ("Pod", "Pulled", 'Container image "nginx:1.27" already present on machine'),
        ("Pod", "Created", "Created container: c"),
        ("Pod", "Started", "Started container c"),
        ("Pod", "Killing", "Stopping container c"),
    }


def test_an_image_that_is_always_pulled_is_reported_as_pulled():
    with KubeletCluster(start_s=0, emits_events=True) as world:
        world.node()
        pod = a_pod()
        pod["spec"]["containers"][0] |= {"image": "nginx:latest", "imagePullPolicy": "Always"}
        world.made(PODS, pod)
        world.run.advance_by(1)
        events = world.ask("GET", "/api/v1/namespaces/default/events").body["items"]
    assert {event["message"] for event in events if event["reason"] in {"Pulling", "Pulled"}} == {
        'Pulling image "nginx:latest"',
        'Successfully pulled image "nginx:latest" in 0s (0s including waiting). Image size: 0 bytes.',
    }


def test_a_pod_of_the_same_name_is_another_pod():
    with KubeletCluster(start_s=0) as world:
        world.node()
        world.pod()
        world.delete_pod()
        world.made(PODS, a_pod())
        world.run.settle()
        assert world.get_pod()["status"]["phase"] == "Running"


def test_what_another_writer_reports_of_a_pod_that_runs_for_ever_is_put_right():
    with KubeletCluster(start_s=0) as world:
        world.node()
        world.pod()
        world.run.settle()
        ready = conditions(world.get_pod())["Ready"]
        body = {"status": {"conditions": [{"type": "Ready", "status": "False", "reason": "Rumour"}]}}
        assert world.ask("PATCH", f"{PODS}/p/status", body, content=STRATEGIC).status == 200
        world.run.settle()
        assert conditions(world.get_pod())["Ready"] == ready
