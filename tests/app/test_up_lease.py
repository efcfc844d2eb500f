"""The controllers of `plimsoll up` and ones that are started beside them: they take the same leases, and one acts."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import pytest

from plimsoll.app import embedded_nodes
from plimsoll.app import up as app
from plimsoll.app.embedded_tidb import TIDB_LEASE
from plimsoll.app.kafka.embedded_kafka import KAFKA_LEASE
from plimsoll.app.kafka.trying import TriedCluster, TrySettings
from plimsoll.app.up import UpCluster, UpSettings
from plimsoll.journal.memory import MemoryJournal
from plimsoll.kube.leases import LeaderElector, LeaseHolder, LeaseLock
from plimsoll.local import initial_cluster
from plimsoll.local.apiserver.run import Ready, Serving
from plimsoll.local.apiserver.transport.kube_transport import EmbeddedTransport
from plimsoll.local.initial_cluster import InitialCluster
from plimsoll.local.kafka.processes.distribution import KafkaDistribution
from plimsoll.nodes.config.policy import AUTOSCALER_LEASE
from plimsoll.runtime.entropy import SeededEntropy
from plimsoll.runtime.supervisor import Supervisor
from tests.app.test_up import DEPLOYMENTS, deployment
from tests.local.apiserver.builders import ADMIN, ApiServerHarness

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Iterator

    from plimsoll.kube.leases import LeaseSettings

T = TypeVar("T")

LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"
LEASE = f"{LEASES}/{AUTOSCALER_LEASE}"
SETTINGS = UpSettings(data=Path("unused"))
READY = Ready(url="https://127.0.0.1:6443", kubeconfig=Path("/data/kubeconfig"))


async def _inline(plan: Callable[[], T]) -> T:
    return plan()


async def _nothing() -> None:
    return None


class AutoscaledUp(ApiServerHarness):
    """`plimsoll up` with its autoscaler, which may be killed and started again."""

    def __init__(self) -> None:
        super().__init__()
        self._starts = 0
        self._task: asyncio.Task[None] | None = None
        self.embedded: UpCluster | None = None

    @property
    def serving(self) -> Serving:
        return Serving(application=self.application, token=ADMIN, ready=READY)

    def start(self, settings: UpSettings = SETTINGS) -> None:
        self._starts += 1
        entropy = SeededEntropy(f"start {self._starts}")
        self.embedded = UpCluster(self.serving, settings, clock=self.run.clock, entropy=entropy)
        self.run.run_until(initial_cluster.prepare_cluster(self.embedded.connect("plimsoll"), InitialCluster(nodes=1)))
        services = self.embedded.list_services(lambda _: None)
        self._task = self.run.spawn(Supervisor(services, clock=self.run.clock, entropy=entropy).run(), name="up")

    def kill(self) -> None:
        """As `kill -9`: the lease is not given back."""
        assert self._task is not None
        lease = self.ask("GET", LEASE).body["spec"]
        self._task.cancel()
        self.run.advance_by(5)
        self.ask("PATCH", LEASE, {"spec": lease}, content="application/merge-patch+json")

    @property
    def holder(self) -> str:
        return self.find_holder(AUTOSCALER_LEASE)

    def find_holder(self, lease: str) -> str:
        reply = self.ask("GET", f"{LEASES}/{lease}")
        return str(reply.body["spec"].get("holderIdentity", "")) if reply.status == 200 else ""

    def count_nodes(self) -> int:
        return len(self.ask("GET", "/api/v1/nodes").body["items"])

    def take_lease(self, lease: LeaseSettings = embedded_nodes.LEASE) -> asyncio.Task[None]:
        """Another controller, of another process, which contends for the lease and does nothing else."""
        holder = LeaseHolder(lease, identity="elsewhere_1", clock=self.run.clock)
        port = LeaseLock(EmbeddedTransport(self.application, token=ADMIN), lease, clock=self.run.clock)
        return self.run.spawn(LeaderElector(holder, port, entropy=SeededEntropy("elsewhere")).run(), name="elsewhere")

    def show_health(self) -> str:
        assert self.embedded is not None
        return bytes(self.embedded._health.respond().body).decode()


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[AutoscaledUp]:
    """Nothing leaves virtual time: kernels are not compiled, plans are made inline, the journal has no file."""
    monkeypatch.setattr(app, "warm_kernels", _nothing)
    monkeypatch.setattr(app, "run_in_thread", _inline)
    monkeypatch.setattr(app, "LazyJournal", lambda _: MemoryJournal())
    with AutoscaledUp() as world:
        world.run.run_until(world.application.start())
        yield world


def demand(world: AutoscaledUp, replicas: int) -> None:
    body: dict[str, Any] = deployment(replicas)
    requests = {"requests": {"cpu": "1", "memory": "1Gi"}}
    body["spec"]["template"]["spec"]["containers"][0]["resources"] = requests
    world.made(DEPLOYMENTS, body)


def test_the_embedded_autoscaler_holds_the_lease_and_acts(world: AutoscaledUp):
    world.start()
    world.run.advance_by(20)
    before = world.count_nodes()
    demand(world, 30)
    world.run.advance_by(60)
    assert world.holder.startswith("plimsoll-up_")
    assert world.count_nodes() > before
    assert "[+]node autoscaler: leader, " in world.show_health()


def test_beside_one_that_leads_the_embedded_autoscaler_is_a_standby_and_takes_over_when_it_is_gone(
    world: AutoscaledUp,
):
    other = world.take_lease()
    world.run.advance_by(1)
    world.start()
    world.run.advance_by(20)
    before = world.count_nodes()
    demand(world, 30)
    world.run.advance_by(120)
    assert world.holder == "elsewhere_1"
    assert world.count_nodes() == before
    assert "[+]node autoscaler: standby: elsewhere_1 leads" in world.show_health()
    other.cancel()
    world.run.advance_by(60)
    assert world.holder.startswith("plimsoll-up_")
    assert world.count_nodes() > before


def test_after_a_kill_the_next_one_does_not_wait_for_the_lease_of_the_dead(world: AutoscaledUp):
    world.start()
    world.run.advance_by(20)
    dead = world.holder
    world.kill()
    assert world.holder == dead
    world.start()
    world.run.advance_by(3)
    assert world.holder.startswith("plimsoll-up_")
    assert world.holder != dead


def test_one_that_loses_the_lease_stops_acting_and_contends_again(world: AutoscaledUp):
    world.start()
    world.run.advance_by(20)
    before = world.count_nodes()
    stolen = {"holderIdentity": "elsewhere_1", "leaseDurationSeconds": 60, "leaseTransitions": 9}
    world.ask("PATCH", LEASE, {"spec": stolen}, content="application/merge-patch+json")
    world.run.advance_by(5)
    demand(world, 30)
    world.run.advance_by(40)
    assert world.count_nodes() == before
    world.run.advance_by(120)
    assert world.holder.startswith("plimsoll-up_")
    assert world.count_nodes() > before


@pytest.mark.parametrize(("lease", "controller"), [(KAFKA_LEASE, "Kafka operator"), (TIDB_LEASE, "TiDB autoscaler")])
def test_the_other_controllers_hold_their_leases_and_wait_beside_one_that_leads(
    world: AutoscaledUp, lease: LeaseSettings, controller: str
):
    other = world.take_lease(lease)
    world.run.advance_by(1)
    world.start()
    world.run.advance_by(20)
    assert f"[+]{controller}: standby: elsewhere_1 leads" in world.show_health()
    other.cancel()
    world.run.advance_by(60)
    assert world.find_holder(lease.name).startswith("plimsoll-up_")
    assert f"[+]{controller}: leader" in world.show_health()


def test_without_its_controllers_it_holds_none_of_their_leases(world: AutoscaledUp):
    world.start(SETTINGS._replace(autoscales=False, scales_tidb=False, operates_kafka=False))
    world.run.advance_by(30)
    assert world.ask("GET", LEASES).body["items"] == []
    assert "autoscaler" not in world.show_health()
    assert "operator" not in world.show_health()


def test_the_operator_of_kafka_try_holds_the_lease_of_run_kafka(world: AutoscaledUp, tmp_path: Path):
    entropy = SeededEntropy("try")
    distribution = KafkaDistribution(class_path="", log4j=tmp_path / "log4j", archive=tmp_path / "archive")
    tried = TriedCluster(
        world.serving, TrySettings(data=tmp_path), distribution, clock=world.run.clock, entropy=entropy
    )
    world.run.run_until(tried.prepare())
    # Without the sample cluster: its pods would be processes.
    services = [service for service in tried.list_services(lambda _: None) if service.name != "greeting"]
    world.run.spawn(Supervisor(services, clock=world.run.clock, entropy=entropy).run(), name="try")
    world.run.advance_by(5)
    assert world.find_holder(KAFKA_LEASE.name).startswith("plimsoll-kafka-try_")
