"""The whole of `plimsoll up` but its sockets, in virtual time: what is said first, and what a long sleep does to it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import pytest

from plimsoll.app import up as app
from plimsoll.app.up import EmbeddedCluster, PortBusy, UpSettings, UpStatus
from plimsoll.local import initial_cluster
from plimsoll.local.apiserver.run import Ready, Serving
from plimsoll.local.initial_cluster import InitialCluster
from plimsoll.runtime.entropy import SeededEntropy
from plimsoll.runtime.supervisor import Supervisor
from plimsoll.web.serving import CannotListen
from tests.local.apiserver.builders import ADMIN, MERGE, ApiServerHarness

if TYPE_CHECKING:
    import asyncio
    import socket

READY = Ready(url="https://127.0.0.1:6443", kubeconfig=Path("/data/kubeconfig"))
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
CLOUD = "/apis/cloud.plimsoll.io/v1alpha1/clouds/cloud"
GROUP = "/apis/cloud.plimsoll.io/v1alpha1/nodegroups/workers"


@pytest.fixture(autouse=True)
def no_compiling(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels are compiled by another process, which virtual time has none of."""

    async def nothing() -> None:
        return None

    monkeypatch.setattr(app, "warm_kernels", nothing)


class UpCluster(ApiServerHarness):
    """An API server that outlives the clusters beside it."""

    def __init__(self) -> None:
        super().__init__()
        self.told: list[UpStatus] = []
        self._starts = 0
        self._task: asyncio.Task[None] | None = None

    def __enter__(self) -> Self:
        super().__enter__()
        self.run.until(self.application.start())
        return self

    def start(self, nodes: int | None = None) -> None:
        self._starts += 1
        entropy = SeededEntropy(f"start {self._starts}")
        serving = Serving(application=self.application, token=ADMIN, ready=READY)
        settings = UpSettings(data=Path("unused"), autoscales=False)
        surroundings = EmbeddedCluster(serving, settings, clock=self.run.clock, entropy=entropy)
        self.run.until(initial_cluster.prepare_cluster(surroundings.connect("plimsoll"), InitialCluster(nodes=nodes)))
        services = surroundings.services(self.told.append)
        self._task = self.run.spawn(Supervisor(services, clock=self.run.clock, entropy=entropy).run(), name="up")

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
    with UpCluster() as world:
        world.start()
        world.run.advance_by(2)
        assert world.told == []
        world.run.advance_by(5)
        assert world.told == [UpStatus(READY.url, READY.kubeconfig, nodes_ready=3, nodes_expected=3)]


def test_nodes_that_take_too_long_are_not_waited_for():
    with UpCluster() as world:
        world.start(nodes=0)
        world.run.advance_by(1)
        world.kill()
        world.ask("PATCH", GROUP, {"spec": {"target": 2, "bootSeconds": 600}}, content=MERGE)
        world.start()
        world.run.advance_by(10)
        assert [(up.nodes_ready, up.nodes_expected) for up in world.told] == [(0, 0), (0, 2)]
        assert world.told[1].waiting_for == ("workers-0: still booting", "workers-1: still booting")


def test_nodes_that_were_cut_off_and_machines_that_were_refused_are_told_with_the_cause():
    with UpCluster() as world:
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
        again = world.told[1]
        assert (again.nodes_ready, again.nodes_expected) == (2, 4)
        assert again.waiting_for == (
            "workers-1: cut off by its annotation plimsoll.io/silent",
            "workers-3: out of stock: n1-standard-4, 0 in all",
        )


@pytest.mark.parametrize("asleep_s", [60, 3600, 3 * 86_400])
def test_after_a_long_sleep_all_nodes_and_pods_are_what_they_were(asleep_s: float):
    with UpCluster() as world:
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
    with UpCluster() as world:
        serving = Serving(application=world.application, token="secret", ready=READY)
        assert "secret" not in repr(serving)


@pytest.mark.parametrize(("base", "advice"), [(6443, 7443), (59_000, 6443)])
def test_a_busy_port_is_told_with_another_that_all_others_fit_above(
    monkeypatch: pytest.MonkeyPatch, base: int, advice: int
):
    def refuse(host: str, port: int) -> socket.socket:
        raise CannotListen(f"{host} {port}")

    monkeypatch.setattr(app, "bind_socket", refuse)
    with pytest.raises(PortBusy, match=f"port {base}, for the Kubernetes API.*--port-base {advice}$"):
        app.check_ports(base)
