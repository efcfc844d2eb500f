"""A process that lost its lease moves nothing, and rotated credentials are read again without a user."""

from __future__ import annotations

import ssl
from base64 import b64encode
from typing import TYPE_CHECKING, Any

import pytest

from plimsoll.app.kafka.simulated_connector import SimulatedBrokers
from plimsoll.kafka.brokers.connection_settings import ConnectionSettings
from plimsoll.kafka.brokers.ports import KafkaRefused
from plimsoll.kafka.brokers.tls_diagnosis import find_certificate_problem
from plimsoll.runtime.clocks import RealClock
from tests.kafka.brokers.test_tls_diagnosis import GOOD, LONG_AGO, OTHER, OURS
from tests.kafka.brokers.tls_listeners import open_tls_listener, show_certificate
from tests.kafka.controllers import operator_bench
from tests.kafka.controllers.operator_bench import OperatorBench
from tests.kafka.controllers.test_bad_input import list_messages
from tests.kafka.controllers.test_k11_k31_automatic_rebalancing import ADD, scale_up
from tests.kube.http.authorities import LOOPBACK, KeyPair
from tests.kube.leases.stolen_leases import StolenLease
from tests.objects.crds.kafka_definitions import NAMESPACE

if TYPE_CHECKING:
    from plimsoll.objects.api.kafka import Kafka

SECRETS = f"/api/v1/namespaces/{NAMESPACE}/secrets"


def run_until(bench: OperatorBench, state: str) -> None:
    for _ in range(20):
        bench.step()
        bench.run_rebalances()
        if bench.rebalance_state(ADD) == state:
            return
        bench.run.advance_by(1)
    raise AssertionError(bench.rebalances)


# ---- the lease


def test_a_process_that_lost_its_lease_moves_nothing():
    with OperatorBench() as bench:
        bench.make_cluster(partitions=120)
        scale_up(bench)
        run_until(bench, "Rebalancing")
        bench.lease.steal()
        assert bench.brokers.list_reassignments()
        for _ in range(20):
            bench.run.advance_by(10)
        assert not bench.brokers.list_reassignments(), "what was under way has ended"
        before = bench.count_replicas(3)
        assert before < 60, "and nothing followed"
        bench.run.run_until(bench.parts.close())
        bench.lease = StolenLease(bench.run.clock)
        bench.start_operator()
        assert bench.run_to_the_end()[-1] == "Ready"
        assert bench.count_replicas(3) >= 80
        assert len(bench.executions) == 1


# ---- Cruise Control's password


def write_password(bench: OperatorBench, password: str) -> None:
    data = {"rebalance-operator.password": b64encode(password.encode()).decode()}
    name = "c-cruise-control-api"
    if bench.ask("GET", f"{SECRETS}/{name}").status == 404:
        bench.made(SECRETS, {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "data": data})
    else:
        bench.patch(f"{SECRETS}/{name}", {"data": data})


@pytest.fixture
def secured(monkeypatch: pytest.MonkeyPatch) -> OperatorBench:
    """An operator whose Cruise Control has a password."""
    monkeypatch.setattr(operator_bench, "ENGINE", "cruise-control")
    bench = OperatorBench()
    bench.cruise_control.password = "first"
    return bench


@pytest.mark.parametrize("state", ["PendingProposal", "ProposalReady", "Rebalancing"])
def test_a_rebalance_goes_on_after_the_password_of_cruise_control_was_rotated(secured: OperatorBench, state: str):
    with secured as bench:
        write_password(bench, "first")
        bench.make_cluster()
        scale_up(bench)
        if state != "PendingProposal":
            run_until(bench, state)
        bench.cruise_control.password = "second"
        bench.run_rebalances()
        bench.run_rebalances()
        conditions = bench.rebalances[ADD]["status"]["conditions"]
        assert any("401" in condition.get("message", "") for condition in conditions), conditions
        assert "CruiseControlAccessMissingException" in {condition.get("reason") for condition in conditions}
        write_password(bench, "second")
        assert bench.run_to_the_end()[-1] == "Ready"
        assert bench.conditions == {"Ready": [""]}
        assert [sent for sent in bench.sent if "dryrun=false" in sent].count("add_broker dryrun=false brokerid=3") == 1


def test_a_kafka_that_waits_for_cruise_control_names_the_refusal(secured: OperatorBench):
    with secured as bench:
        write_password(bench, "first")
        bench.make_cluster()
        bench.cruise_control.password = "second"
        scale_up(bench)
        assert (bench.state, bench.rebalances) == ("ScalingUp", {})
        assert bench.conditions == {"Ready": [""], "Warning": ["CruiseControlAccessMissingException"]}
        assert "401" in list_messages(bench)
        write_password(bench, "second")
        assert bench.run_to_the_end()[-1] == "Ready"
        assert bench.conditions == {"Ready": [""]}


# ---- the password of the brokers


class CheckedBrokers(SimulatedBrokers):
    """Brokers with a password. A connection has the one that was in force when it was opened or refreshed."""

    secret = "first"
    """What the Secret has."""
    password = "first"
    """What the brokers accept."""

    async def connect(self, kafka: Kafka) -> Any:
        return _CheckedConnection(await super().connect(kafka), self)


class _CheckedConnection:
    def __init__(self, connection: Any, brokers: CheckedBrokers) -> None:
        self._admin = connection.admin
        self._brokers = brokers
        self._password = brokers.secret
        self.admin = self

    def __getattr__(self, name: str) -> Any:
        async def send(*values: Any, **named: Any) -> Any:
            if self._password != self._brokers.password:
                raise KafkaRefused("the broker refuses the password", code="SASL_AUTHENTICATION_FAILED")
            return await getattr(self._admin, name)(*values, **named)

        return send

    async def refresh(self, _kafka: Kafka) -> None:
        self._password = self._brokers.secret

    async def close(self) -> None:
        """There is no socket."""


@pytest.mark.parametrize("is_executing", [False, True])
def test_a_cluster_goes_on_after_the_password_of_its_brokers_was_rotated(
    monkeypatch: pytest.MonkeyPatch, *, is_executing: bool
):
    monkeypatch.setattr(operator_bench, "SimulatedBrokers", CheckedBrokers)
    monkeypatch.setattr(CheckedBrokers, "secret", "first")
    with OperatorBench() as bench:
        bench.make_cluster()
        scale_up(bench)
        if is_executing:
            run_until(bench, "Rebalancing")
        monkeypatch.setattr(CheckedBrokers, "password", "second")
        for _ in range(3):
            bench.step()
            bench.run_rebalances()
            bench.run.advance_by(5)
        shown = f"{list_messages(bench)} {bench.rebalances[ADD]['status']}"
        assert "password" in shown
        monkeypatch.setattr(CheckedBrokers, "secret", "second")
        started = bench.run.clock.monotonic_s()
        assert bench.run_to_the_end()[-1] == "Ready"
        assert bench.run.clock.monotonic_s() - started < 600
        assert bench.count_replicas(3) >= 20
        assert len(bench.executions) == 1
        assert bench.conditions == {"Ready": [""]}


# ---- certificates


class RefusingBrokers(SimulatedBrokers):
    """Brokers whose connections fail with `refusal`, if there is one."""

    refusal: KafkaRefused | None = None

    async def connect(self, kafka: Kafka) -> Any:
        return _RefusingConnection(await super().connect(kafka), self)


class _RefusingConnection:
    def __init__(self, connection: Any, brokers: RefusingBrokers) -> None:
        self._admin = connection.admin
        self._brokers = brokers
        self.admin = self

    def __getattr__(self, name: str) -> Any:
        async def send(*values: Any, **named: Any) -> Any:
            if self._brokers.refusal is not None:
                raise self._brokers.refusal
            return await getattr(self._admin, name)(*values, **named)

        return send

    async def refresh(self, _kafka: Kafka) -> None:
        """The refusal is looked at with each request."""

    async def close(self) -> None:
        """There is no socket."""


@pytest.mark.parametrize(
    ("shown", "own", "reason"),
    [
        pytest.param(OTHER.issue(*LOOPBACK), GOOD, "not trusted: unknown authority CN=other-ca", id="unknown"),
        pytest.param(OURS.issue(*LOOPBACK, valid=LONG_AGO), GOOD, "of the broker expired at 2", id="expired"),
        pytest.param(GOOD, OURS.issue(valid=LONG_AGO), "our certificate: it expired at 2", id="our own expired"),
    ],
)
def test_a_wrong_certificate_is_a_condition_and_nothing_is_removed(
    monkeypatch: pytest.MonkeyPatch, shown: KeyPair, own: KeyPair, reason: str
):
    context = ssl.create_default_context(cadata=OURS.pem.decode())
    show_certificate(context, own)
    with open_tls_listener(shown, OURS) as server:
        settings = ConnectionSettings(
            bootstrap=(server,), security_protocol="SSL", ssl_context=context, certificate_pem=own.certificate_pem
        )
        refusal = find_certificate_problem(server, settings, now=RealClock().now())
    assert refusal is not None
    monkeypatch.setattr(operator_bench, "SimulatedBrokers", RefusingBrokers)
    with OperatorBench() as bench:
        bench.make_cluster(brokers=4)
        monkeypatch.setattr(RefusingBrokers, "refusal", refusal)
        before = bench.live
        bench.scale(3)
        for _ in range(3):
            bench.step()
            bench.run_rebalances()
            bench.run.advance_by(60)
        assert bench.conditions == {"NotReady": ["KafkaUnavailable"]}
        assert reason in list_messages(bench)
        assert (bench.pool_ids(), bench.live) == ([0, 1, 2, 3], before)
        assert not bench.executions
        monkeypatch.setattr(RefusingBrokers, "refusal", None)
        assert bench.run_to_the_end()[-1] == "Ready"
        assert bench.pool_ids() == [0, 1, 2]
        assert bench.conditions == {"Ready": [""]}
