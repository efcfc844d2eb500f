"""What Leases, and kubelets of this process, report about nodes being alive."""

from __future__ import annotations

from typing import TYPE_CHECKING

from plimsoll.local.liveness import CombinedLiveness, LeaseLiveness, ReportedLiveness
from tests.local.apiserver.builders import MERGE
from tests.local.kubelet.builders import LEASES
from tests.local.local_cluster import LocalClusterHarness

if TYPE_CHECKING:
    from plimsoll.local.components import Components
    from plimsoll.runtime.supervisor import Service


class LeaseCluster(LocalClusterHarness):
    def __init__(self) -> None:
        super().__init__(self._listening)
        self.reported: list[str] = []

    def _listening(self, parts: Components) -> list[Service]:
        self.liveness = LeaseLiveness.from_informers(parts.informers, clock=self.run.clock)
        self.liveness.on_change(self.reported.append)
        return []

    def lease(self, renewed: str) -> None:
        self.made(LEASES, {"metadata": {"name": "n1"}, "spec": {"holderIdentity": "n1", "renewTime": renewed}})
        self.run.settle()

    def change(self, spec: dict[str, object]) -> None:
        assert self.ask("PATCH", f"{LEASES}/n1", {"spec": spec}, content=MERGE).status == 200
        self.run.settle()


def test_a_lease_that_was_there_counts_from_its_own_time_but_not_from_the_future():
    with LeaseCluster() as world:
        now_s = world.run.clock.monotonic_s()
        assert world.liveness.get_last_heartbeat_s("n1") is None
        world.lease("2025-12-31T23:59:30.000000Z")
        assert world.liveness.get_last_heartbeat_s("n1") == now_s - 30
    with LeaseCluster() as world:
        now_s = world.run.clock.monotonic_s()
        world.lease("2027-01-01T00:00:00.000000Z")
        assert world.liveness.get_last_heartbeat_s("n1") == now_s


def test_a_renewal_counts_from_when_it_was_seen_whatever_the_nodes_clock_says():
    with LeaseCluster() as world:
        now_s = world.run.clock.monotonic_s()
        world.lease("2026-01-01T00:00:00.000000Z")
        world.run.advance_by(10)
        world.change({"renewTime": "2020-01-01T00:00:00.000000Z"})
        assert world.liveness.get_last_heartbeat_s("n1") == now_s + 10
        assert not world.liveness.is_steady("n1")
        assert world.reported == ["n1", "n1"]


def test_a_change_without_renewal_is_no_heartbeat():
    with LeaseCluster() as world:
        now_s = world.run.clock.monotonic_s()
        world.lease("2026-01-01T00:00:00.000000Z")
        world.run.advance_by(10)
        world.change({"leaseDurationSeconds": 77})
        assert world.liveness.get_last_heartbeat_s("n1") == now_s
        assert world.reported == ["n1"]


def test_a_lease_that_is_gone_says_nothing():
    with LeaseCluster() as world:
        world.lease("2026-01-01T00:00:00.000000Z")
        world.ask("DELETE", f"{LEASES}/n1")
        world.run.settle()
        assert world.liveness.get_last_heartbeat_s("n1") is None


class ReportedLeaseCluster(LeaseCluster):
    """Leases, and a kubelet of this process that reports."""

    def _listening(self, parts: Components) -> list[Service]:
        services = super()._listening(parts)
        self.by_kubelet = ReportedLiveness(clock=self.run.clock)
        self.known = CombinedLiveness(self.by_kubelet, self.liveness)
        self.heard: list[str] = []
        self.known.on_change(self.heard.append)
        return services


def test_a_node_of_this_process_lives_however_late_its_lease_is():
    with ReportedLeaseCluster() as world:
        world.by_kubelet.report_alive("n1")
        world.lease("2026-01-01T00:00:00.000000Z")
        world.run.advance_by(500)
        assert world.known.is_steady("n1")
        assert world.known.get_last_heartbeat_s("n1") == world.run.clock.monotonic_s()
        assert world.heard == ["n1"]  # of the lease nothing new can be learnt


def test_a_silent_component_was_last_alive_when_it_fell_silent():
    with ReportedLeaseCluster() as world:
        world.lease("2026-01-01T00:00:00.000000Z")
        world.by_kubelet.report_alive("n1")
        world.run.advance_by(500)
        world.by_kubelet.report_silent("n1")
        silent_s = world.run.clock.monotonic_s()
        world.run.advance_by(100)
        assert not world.known.is_steady("n1")
        assert world.known.get_last_heartbeat_s("n1") == silent_s


def test_of_a_node_of_another_process_its_lease_decides():
    with ReportedLeaseCluster() as world:
        now_s = world.run.clock.monotonic_s()
        world.lease("2026-01-01T00:00:00.000000Z")
        world.run.advance_by(10)
        world.change({"renewTime": "2026-01-01T00:00:10.000000Z"})
        assert world.known.get_last_heartbeat_s("n1") == now_s + 10
        assert not world.known.is_steady("n1")
        assert world.heard == ["n1", "n1"]
