"""All of `plimsoll up` but its sockets, in virtual time: what it prints first, and what a long sleep does to it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import pytest

from plimsoll.app import up as app
from plimsoll.app.up import UpCluster, UpSettings, UpStatus
from plimsoll.app.up_pages import UpHealth
from plimsoll.journal.memory import MemoryJournal
from plimsoll.local import initial_cluster
from plimsoll.local.apiserver.run import Ready, Serving
from plimsoll.local.initial_cluster import InitialCluster
from plimsoll.runtime.entropy import SeededEntropy
from plimsoll.runtime.supervisor import Service, Supervisor
from tests.local.apiserver.builders import ADMIN, MERGE, ApiServerHarness

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, MutableMapping, Sequence

    from plimsoll.operator.pages import OperatorPages

READY = Ready(url="https://127.0.0.1:6443", kubeconfig=Path("/data/kubeconfig"))
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
CLOUD = "/apis/cloud.plimsoll.io/v1alpha1/clouds/cloud"
GROUP = "/apis/cloud.plimsoll.io/v1alpha1/nodegroups/workers"


@pytest.fixture(autouse=True)
def no_compiling(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels are compiled by another process, plans made in threads, which virtual time has none of."""

    async def nothing() -> None:
        return None

    async def plan_here(plan: Callable[[], Any]) -> Any:
        return plan()

    monkeypatch.setattr(app, "warm_kernels", nothing)
    monkeypatch.setattr(app, "run_in_thread", plan_here)

    monkeypatch.setattr(app, "LazyJournal", lambda _directory: MemoryJournal())


class UpHarness(ApiServerHarness):
    """An API server that outlives the clusters beside it."""

    def __init__(self) -> None:
        super().__init__()
        self.reported: list[UpStatus] = []
        self._starts = 0
        self._task: asyncio.Task[None] | None = None
        self._pages: OperatorPages

    def __enter__(self) -> Self:
        super().__enter__()
        self.run.run_until(self.application.start())
        return self

    def start(self, nodes: int | None = None, *, autoscales: bool = False, more: Sequence[Service] = ()) -> None:
        self._starts += 1
        entropy = SeededEntropy(f"start {self._starts}")
        serving = Serving(application=self.application, token=ADMIN, ready=READY)
        settings = UpSettings(data=Path("unused"), autoscales=autoscales)
        health = UpHealth(self.run.clock)
        surroundings = UpCluster(serving, settings, clock=self.run.clock, entropy=entropy, health=health)
        self.run.run_until(
            initial_cluster.prepare_cluster(surroundings.connect("plimsoll"), InitialCluster(nodes=nodes))
        )
        services = surroundings.list_services(self.reported.append)
        supervisor = Supervisor([*services, *more], clock=self.run.clock, entropy=entropy)
        health.watch(supervisor)
        self._pages = surroundings.build_pages()
        self._task = self.run.spawn(supervisor.run(), name="up")

    def page(self, path: str, query: str = "") -> tuple[int, str]:
        """What a program on the same machine sees."""
        return self.run.run_until(self._ask_page(path, query))

    async def _ask_page(self, path: str, query: str) -> tuple[int, str]:
        scope = {
            "type": "http",
            "method": "GET",
            "path": path,
            "query_string": query.encode(),
            "client": ("127.0.0.1", 1),
        }
        sent: list[MutableMapping[str, Any]] = []

        async def send(message: MutableMapping[str, Any]) -> None:
            sent.append(message)

        async def receive() -> Any:
            return {"type": "http.request"}

        await self._pages({**scope, "headers": [(b"host", b"localhost")]}, receive, send)
        return sent[0]["status"], b"".join(message.get("body", b"") for message in sent[1:]).decode()

    def kill(self) -> None:
        assert self._task is not None
        self._task.cancel()
        self._task.cancel()
        self.run.settle()

    def items(self, url: str) -> list[Any]:
        found: list[Any] = self.ask("GET", url).body["items"]
        return found


def deployment(replicas: int) -> dict[str, Any]:
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "web", "image": "nginx"}]}}
    spec = {"replicas": replicas, "selector": {"matchLabels": {"app": "web"}}, "template": template}
    return {"metadata": {"name": "web"}, "spec": spec}


def test_people_hear_of_it_when_all_nodes_are_ready():
    with UpHarness() as world:
        world.start()
        world.run.advance_by(2)
        assert world.reported == []
        world.run.advance_by(5)
        assert world.reported == [UpStatus(READY.url, READY.kubeconfig, nodes_ready=3, nodes_expected=3)]


def test_nodes_that_take_too_long_are_not_waited_for():
    with UpHarness() as world:
        world.start(nodes=0)
        world.run.advance_by(1)
        world.kill()
        world.ask("PATCH", GROUP, {"spec": {"target": 2, "bootSeconds": 600}}, content=MERGE)
        world.start()
        world.run.advance_by(10)
        assert [(up.nodes_ready, up.nodes_expected) for up in world.reported] == [(0, 0), (0, 2)]
        assert world.reported[1].waiting_for == ("workers-0: still booting", "workers-1: still booting")


def test_nodes_that_were_cut_off_and_machines_that_were_refused_are_reported_with_the_cause():
    with UpHarness() as world:
        world.start()
        world.run.advance_by(7)
        cut_off = {"metadata": {"annotations": {"plimsoll.io/silent": "true"}}}
        world.ask("PATCH", "/api/v1/nodes/workers-1", cut_off, content=MERGE)
        stock = {"name": "s", "machineType": "n1-standard-4", "machines": 0}
        world.ask("PATCH", CLOUD, {"spec": {"stock": [stock]}}, content=MERGE)
        world.ask("PATCH", GROUP, {"spec": {"target": 4}}, content=MERGE)
        world.run.advance_by(120)
        world.kill()
        world.start()
        world.run.advance_by(10)
        again = world.reported[1]
        assert (again.nodes_ready, again.nodes_expected) == (2, 4)
        assert again.waiting_for == (
            "workers-1: cut off by its annotation plimsoll.io/silent",
            "workers-3: out of stock: n1-standard-4, 0 in all",
        )


@pytest.mark.parametrize("asleep_s", [60, 3600, 3 * 86_400])
def test_after_a_long_sleep_all_nodes_and_pods_are_what_they_were(asleep_s: float):
    with UpHarness() as world:
        world.start()
        world.made(DEPLOYMENTS, deployment(20))
        world.run.advance_by(30)
        pods = world.items("/api/v1/pods")
        assert {pod["status"]["phase"] for pod in pods} == {"Running"}
        world.kill()
        world.run.advance_by(asleep_s)
        world.start()
        world.run.advance_by(600)
        after = world.items("/api/v1/pods")
        assert [pod["metadata"]["uid"] for pod in after] == [pod["metadata"]["uid"] for pod in pods]
        assert [pod["status"] for pod in after] == [pod["status"] for pod in pods]
        assert [node["spec"].get("taints") for node in world.items("/api/v1/nodes")] == [None] * 3
        events = world.items("/api/v1/events")
        assert not [event for event in events if event["reason"] in {"NodeNotReady", "TaintManagerEviction", "Killing"}]


def test_a_token_is_not_shown_by_what_carries_it():
    with UpHarness() as world:
        serving = Serving(application=world.application, token="secret", ready=READY)
        assert "secret" not in repr(serving)


def test_pages_show_metrics_health_and_plan_of_the_whole_process():
    with UpHarness() as world:
        world.start(autoscales=True)
        world.made(DEPLOYMENTS, deployment(2))
        world.run.advance_by(40)
        assert world.page("/")[1].splitlines() == ["/metrics", "/healthz", "/plan", "/explain?pod=NAMESPACE/NAME"]
        metrics = world.page("/metrics")[1]
        assert 'cluster_autoscaler_nodes_count{state="ready"} 3.0' in metrics
        for controller in ("deployment-controller", "replicaset-controller", "cloud", "tidb-autoscaler"):
            assert f'controller_runtime_reconcile_total{{controller="{controller}"' in metrics
        code, health = world.page("/healthz")
        assert code == 200
        lines = health.splitlines()
        assert "[+]deployment-controller running" in lines
        assert any(line.startswith("[+]node autoscaler: leader, the last loop iteration ended ") for line in lines)
        assert lines[-1] == "healthz check passed"
        assert json.loads(world.page("/plan")[1])["scaleUp"]["result"] == "NotNeeded"
        pod = world.items("/api/v1/pods")[0]["metadata"]["name"]
        assert world.page("/explain", f"pod=default/{pod}")[0] == 200


def test_health_fails_with_the_service_that_fails():
    async def fail() -> None:
        raise RuntimeError("no disk")

    with UpHarness() as world:
        world.start(more=[Service(name="broken", run=fail)])
        world.run.advance_by(5)
        code, health = world.page("/healthz")
        assert code == 500
        assert any(line.startswith("[-]broken backing-off") and "no disk" in line for line in health.splitlines())
        assert health.splitlines()[-1] == "healthz check failed"
