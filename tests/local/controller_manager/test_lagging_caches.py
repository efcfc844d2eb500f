"""Upkeep looks at caches that are behind: nothing is deleted, evicted or reported for what the server knows better."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from plimsoll.kube.errors import AnswerLost
from plimsoll.local.controller_manager.garbage_collector.controller import GarbageCollector
from plimsoll.local.controller_manager.services import build_garbage_collector_services, build_node_lifecycle_services
from plimsoll.local.liveness import LeaseLiveness
from plimsoll.runtime.supervisor import Service
from tests.faults import LateWatches
from tests.local.apiserver.builders import MERGE
from tests.local.controller_manager.builders import NODES, PODS, NodeLifecycleCluster
from tests.local.local_cluster import LocalClusterHarness

if TYPE_CHECKING:
    import pytest

    from plimsoll.kube.transport import Request, Response
    from plimsoll.local.components import Components

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
ENDPOINTS = "/api/v1/namespaces/default/endpoints"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
ALIVE = {"type": "Ready", "status": "True", "reason": "Kubelet", "lastHeartbeatTime": "2026-01-01T00:00:00Z"}


def made_owner(world: LocalClusterHarness) -> dict[str, Any]:
    made = world.made(CONFIG_MAPS, {"metadata": {"name": "owner"}})
    world.run.settle()
    return {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": made["metadata"]["uid"]}


def made_pod(world: LocalClusterHarness, owner: dict[str, Any]) -> None:
    spec = {"containers": [{"name": "c", "image": "x"}]}
    world.made(PODS, {"metadata": {"name": "p", "ownerReferences": [owner]}, "spec": spec})
    world.run.settle()


def is_leaving(world: LocalClusterHarness, name: str = "p") -> bool:
    reply = world.ask("GET", f"{PODS}/{name}")
    return reply.status == 404 or "deletionTimestamp" in reply.body["metadata"]


# ---- garbage


def test_pods_that_were_orphaned_stay_while_the_collector_still_sees_their_owner_in_them():
    late = LateWatches()
    with LocalClusterHarness(build_garbage_collector_services, through=late.wrap) as world:
        made_pod(world, made_owner(world))
        late.hold("pods")
        world.ask("DELETE", f"{CONFIG_MAPS}/owner?propagationPolicy=Orphan")
        world.run.advance_by(5)
        assert world.ask("GET", f"{CONFIG_MAPS}/owner").status == 404
        assert not is_leaving(world)
        late.release("pods")
        world.run.advance_by(60)
        assert not is_leaving(world)


def test_a_pod_that_changed_unseen_still_goes_with_its_owner():
    late = LateWatches()
    with LocalClusterHarness(build_garbage_collector_services, through=late.wrap) as world:
        made_pod(world, made_owner(world))
        late.hold("pods")
        world.ask("PATCH", f"{PODS}/p", {"metadata": {"labels": {"a": "b"}}}, content=MERGE)
        world.ask("DELETE", f"{CONFIG_MAPS}/owner")
        world.run.advance_by(5)
        late.release("pods")
        world.run.advance_by(60)
        assert is_leaving(world)


def test_an_owner_the_cache_does_not_show_yet_keeps_its_pods():
    late = LateWatches()
    with LocalClusterHarness(build_garbage_collector_services, through=late.wrap) as world:
        late.hold("configmaps")
        made_pod(world, made_owner(world))
        world.run.advance_by(5)
        assert not is_leaving(world)


def test_a_collector_that_fails_while_it_starts_follows_everything_when_it_starts_again(
    monkeypatch: pytest.MonkeyPatch,
):
    def parts(components: Components) -> list[Service]:
        collection = GarbageCollector(components.build_component("garbage"))
        last = list(collection._shared.values())[-1]
        waits, failures = last.wait_until_synced, [AnswerLost("the connection broke")]

        async def fails_once() -> None:
            if failures:
                raise failures.pop()
            await waits()

        monkeypatch.setattr(last, "wait_until_synced", fails_once)
        return [Service(name="garbage", run=collection.run)]

    with LocalClusterHarness(parts) as world:
        world.run.advance_by(60)
        owner = made_owner(world)
        world.made(ENDPOINTS, {"metadata": {"name": "child", "ownerReferences": [owner]}})
        world.run.settle()
        world.ask("DELETE", f"{CONFIG_MAPS}/owner")
        world.run.advance_by(5)
        assert world.ask("GET", f"{ENDPOINTS}/child").status == 404


# ---- nodes that are reported silent


class NodeLeaseCluster(LocalClusterHarness):
    """Two nodes with leases, of which `good` renews its own every ten seconds."""

    def __init__(self, **more: Any) -> None:
        super().__init__(self._built, **more)

    def _built(self, parts: Components) -> list[Service]:
        return build_node_lifecycle_services(parts, LeaseLiveness.from_informers(parts.informers, clock=self.run.clock))

    def nodes(self, *names: str) -> None:
        for name in names:
            self.made(NODES, {"metadata": {"name": name}})
            self.ask("PATCH", f"{NODES}/{name}/status", {"status": {"conditions": [ALIVE]}}, content=MERGE)
            self.made(LEASES, {"metadata": {"name": name}, "spec": {"renewTime": "2026-01-01T00:00:00.000000Z"}})
        self.run.settle()

    def renew(self, name: str) -> None:
        at = self.run.clock.now().strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        assert self.ask("PATCH", f"{LEASES}/{name}", {"spec": {"renewTime": at}}, content=MERGE).status == 200

    def ready(self, name: str) -> str:
        conditions = self.ask("GET", f"{NODES}/{name}").body["status"]["conditions"]
        return next(str(condition["status"]) for condition in conditions if condition["type"] == "Ready")


def test_a_node_whose_renewals_do_not_reach_the_cache_is_not_reported_silent():
    late = LateWatches()
    with NodeLeaseCluster(through=late.wrap) as world:
        world.nodes("good", "other")
        late.hold("leases")
        for _ in range(12):
            world.run.advance_by(10)
            world.renew("good")
        assert world.ready("good") == "True"
        assert world.ready("other") == "Unknown"


def test_a_lease_the_server_was_asked_for_counts_once():
    late = LateWatches()
    with NodeLeaseCluster(through=late.wrap) as world:
        world.nodes("good", "other")
        late.hold("leases")
        world.run.advance_by(10)
        world.renew("good")
        world.run.advance_by(31)
        assert world.ready("good") == "True"
        world.run.advance_by(40)
        assert world.ready("good") == "Unknown"


def test_a_report_the_cache_does_not_show_keeps_a_node_from_being_reported_silent():
    late = LateWatches()
    with NodeLifecycleCluster(through=late.wrap) as world:
        world.node("good")
        world.node("bad")
        world.silence("bad")
        world.run.advance_by(30)
        late.hold("nodes")
        world.report("bad", at="2026-01-01T00:00:30Z", Ready="False")
        world.run.advance_by(20)
        assert world.conditions("bad")["Ready"] == "False Kubelet"


def test_a_report_that_comes_while_a_node_is_reported_silent_is_not_overwritten():
    class ReportsFirst:
        """The node reports between the last look at it and what is written about it."""

        def __init__(self, port: Any) -> None:
            self._port = port

        async def send(self, call: Request) -> Response:
            if call.method == "PATCH" and call.path == f"{NODES}/bad/status" and not reported:
                stated = {"status": {"conditions": [{**ALIVE, "status": "False"}]}}
                reported.append(await self._port.send(call._replace(body=json.dumps(stated).encode())))
            reply: Response = await self._port.send(call)
            return reply

        async def aclose(self) -> None:
            await self._port.aclose()

    reported: list[Response] = []
    with NodeLifecycleCluster(through=ReportsFirst) as world:
        world.node("good")
        world.node("bad")
        world.silence("bad")
        world.run.advance_by(41)
        assert [item.status for item in reported] == [200]
        assert world.conditions("bad")["Ready"] == "False Kubelet"


def test_a_step_of_the_wall_clock_makes_no_node_silent(monkeypatch: pytest.MonkeyPatch):
    with NodeLeaseCluster() as world:
        world.nodes("good", "other")
        world.run.advance_by(10)
        before = world.run.clock.now
        monkeypatch.setattr(world.run.clock, "now", lambda: before() + timedelta(hours=1))
        world.ask("PATCH", f"{NODES}/good", {"metadata": {"labels": {"a": "b"}}}, content=MERGE)
        world.run.advance_by(29)
        assert world.ready("good") == "True"
        world.run.advance_by(1)
        assert world.ready("good") == "Unknown"


# ---- pods that are evicted, and pods of nodes that are no more

TOLERATES_60_S = {"key": "ex.com/out", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 60}


def tainted(world: NodeLifecycleCluster, added: str = "") -> None:
    taint = {"key": "ex.com/out", "effect": "NoExecute", **({"timeAdded": added} if added else {})}
    world.ask("PATCH", f"{NODES}/n", {"spec": {"taints": [taint]}}, content=MERGE)
    world.run.settle()


def test_a_pod_that_came_after_the_taint_has_its_whole_time():
    with NodeLifecycleCluster() as world:
        world.node("n")
        tainted(world, "2026-01-01T00:00:00Z")
        world.run.advance_by(600)
        world.pod("p", "n", tolerations=[TOLERATES_60_S])
        world.run.advance_by(59)
        assert not is_leaving(world)
        world.run.advance_by(1)
        assert is_leaving(world)


def test_a_taint_that_went_and_came_again_counts_anew():
    with NodeLifecycleCluster() as world:
        world.node("n")
        world.pod("p", "n", tolerations=[TOLERATES_60_S])
        tainted(world)
        world.run.advance_by(50)
        world.ask("PATCH", f"{NODES}/n", {"spec": {"taints": None}}, content=MERGE)
        world.run.settle()
        tainted(world)
        world.run.advance_by(59)
        assert not is_leaving(world)
        world.run.advance_by(1)
        assert is_leaving(world)


def test_a_node_the_cache_does_not_show_keeps_its_pods():
    late = LateWatches()
    with NodeLifecycleCluster(through=late.wrap) as world:
        late.hold("nodes")
        world.made(NODES, {"metadata": {"name": "n"}})
        world.pod("p", "n")
        world.run.advance_by(120)
        assert not is_leaving(world)
