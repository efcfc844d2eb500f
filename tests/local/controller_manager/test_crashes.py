"""The process of upkeep dies after any of its calls; the next one finishes, and nothing is lost or done twice."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from plimsoll.local.controller_manager.services import (
    build_disruption_services,
    build_namespace_services,
    build_node_lifecycle_services,
)
from plimsoll.local.liveness import ReportedLiveness
from tests.effort import choose_calls
from tests.faults import CrashAfter
from tests.local.apiserver.builders import MERGE
from tests.local.local_cluster import LocalClusterHarness

if TYPE_CHECKING:
    from collections.abc import Callable

PODS = "/api/v1/namespaces/default/pods"
CLAIMS = "/api/v1/namespaces/default/persistentvolumeclaims"
HERE = "/api/v1/namespaces/here"


class CrashingCluster(LocalClusterHarness):
    """Steps may be taken twice, so they say what is wanted."""

    def __init__(self, parts: Any, crash: CrashAfter) -> None:
        self._crash = crash
        self._is_new_process = False
        super().__init__(parts, through=lambda port: port if self._is_new_process else crash.wrap(port))

    def start(self) -> None:
        self._surviving(super().start)

    def surviving(self, step: Callable[[], object]) -> None:
        """Take a step; if the process dies on the way, start another and take it again."""
        self._surviving(step, before_again=super().start)

    def _surviving(self, step: Callable[[], object], before_again: Callable[[], object] = lambda: None) -> None:
        try:
            step()
        except BaseException:
            if self._crash.struck is None or self._is_new_process:
                raise
            self._is_new_process = True
            before_again()
            step()

    def says(self, method: str, url: str, body: Any = None) -> None:
        self.surviving(lambda: self.ask(method, url, body, content=MERGE if method == "PATCH" else "application/json"))


def swept(parts: Any, story: Callable[[CrashingCluster], None]) -> int:
    """The story with a crash after calls in turn; gives how many calls there were."""
    completed = 0
    for number in choose_calls(1000):
        crash = CrashAfter(number)
        with CrashingCluster(parts, crash) as world:
            story(world)
        if crash.struck is None:
            return completed
        completed = number
    raise AssertionError("is there an end to this?")


def test_a_namespace_is_emptied_and_let_go():
    def story(world: CrashingCluster) -> None:
        world.says("POST", "/api/v1/namespaces", {"metadata": {"name": "here"}})
        for number in range(2):
            world.says("POST", f"{HERE}/configmaps", {"metadata": {"name": f"c{number}"}})
        world.says("DELETE", HERE)
        world.surviving(lambda: world.run.advance_by(30))
        assert world.ask("GET", HERE).status == 404
        assert world.ask("GET", f"{HERE}/configmaps").body["items"] == []

    assert swept(build_namespace_services, story) > 20


def test_pods_of_a_silent_node_are_reported_and_leave():
    def parts(components: Any) -> Any:
        liveness = ReportedLiveness(clock=components._clock)
        liveness.report_alive("good")
        return [*build_node_lifecycle_services(components, liveness), *build_disruption_services(components)]

    def story(world: CrashingCluster) -> None:
        ready = {"type": "Ready", "status": "True", "reason": "Kubelet", "lastHeartbeatTime": "2026-01-01T00:00:00Z"}
        for name in ("good", "bad"):
            world.says("POST", "/api/v1/nodes", {"metadata": {"name": name}})
            world.says("PATCH", f"/api/v1/nodes/{name}/status", {"status": {"conditions": [ready]}})
        spec = {"nodeName": "bad", "containers": [{"name": "c", "image": "x"}]}
        world.says("POST", PODS, {"metadata": {"name": "p", "labels": {"app": "p"}}, "spec": spec})
        world.says("PATCH", f"{PODS}/p/status", {"status": {"conditions": [{"type": "Ready", "status": "True"}]}})
        world.surviving(lambda: world.run.advance_by(100))
        pod = world.ask("GET", f"{PODS}/p").body
        assert pod["status"]["conditions"][0]["status"] == "False"
        world.surviving(lambda: world.run.advance_by(400))
        pod = world.ask("GET", f"{PODS}/p").body
        assert "deletionTimestamp" in pod["metadata"]
        assert [condition["type"] for condition in pod["status"]["conditions"]].count("DisruptionTarget") == 1

    assert swept(parts, story) > 20
