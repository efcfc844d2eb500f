"""The Kafka operator as a process of its own, which may end after one of its calls as if it were killed.

    python -m tests.e2e.kafka.scaling.operator_process KUBECONFIG DIRECTORY [--exit-after N] [--companion HOST:PORT]

It is `plimsoll run kafka` without the election, with the addresses of the brokers on this machine. With an address it
is the companion of Strimzi, and serves its engines there.
"""

from __future__ import annotations

import argparse
import asyncio
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from plimsoll.app.kafka.kafka_operator import CruiseControlServing, KafkaOperatorProcess, KafkaOperatorSettings
from plimsoll.cli.shared.connection import Connection
from plimsoll.cli.shared.logs import log_events_to_stderr
from plimsoll.kafka.brokers.access import KubernetesBrokers
from plimsoll.kafka.builder import KafkaOperatorParts, OperatorDependencies
from plimsoll.kafka.cruise_control.server.authentication import Authentication
from plimsoll.kafka.engine.config_map_store import ConfigMapExecutionStore
from plimsoll.kafka.settings import KafkaMode, KafkaSettings
from plimsoll.kube.secret_tls import ClusterSecrets
from plimsoll.local.kafka.processes.cluster_directory import ClusterFile
from plimsoll.local.kafka.processes.configuration import HOST, REPLICATION
from plimsoll.operator.process import ControllerOptions
from plimsoll.runtime.clocks import RealClock
from plimsoll.runtime.entropy import SystemEntropy
from plimsoll.runtime.signals import run_until_signalled
from tests.faults.ports import Call, Fault

if TYPE_CHECKING:
    from plimsoll.kube.client import Client
    from plimsoll.kube.recorder import EventRecorder
    from plimsoll.objects.api.kafka import Kafka

BOOTSTRAP_BROKERS = 3
EXIT_CODE = 9


class ExitAfter(Fault):
    """Ends the process right after a call took effect. 0: never."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self._number = number

    def after(self, call: Call) -> None:
        if call.number == self._number:
            os._exit(EXIT_CODE)


class LocalOperator(KafkaOperatorProcess):
    """Reaches the brokers of this machine. Its calls to Kubernetes and to the brokers pass a fault."""

    directory: Path
    fault: Fault

    def _build_parts(self, client: Client, *, recorder: EventRecorder, keeps_last_plans: bool) -> KafkaOperatorParts:
        clock, called = self._clock, self.fault.wrap(client)
        return KafkaOperatorParts(
            OperatorDependencies(
                client=called,
                clock=clock,
                entropy=self._entropy,
                connector=_WrappedBrokers(
                    KubernetesBrokers(ClusterSecrets(called), list_addresses=self._list_addresses), self.fault
                ),
                open_store=lambda kafka: ConfigMapExecutionStore(called, kafka, clock=clock),
                settings=self._settings.settings,
                web=self._web,
                recorder=recorder,
                journal=self._journal,
                keeps_last_plans=keeps_last_plans,
            )
        )

    def _list_addresses(self, kafka: Kafka) -> tuple[str, ...]:
        """Of the first brokers: they stay. None before the first node was started."""
        paths = list(self.directory.glob(f"{kafka.metadata.namespace}/{kafka.metadata.name}-*/cluster.json"))
        if not paths:
            return ()
        (path,) = paths
        ports = msgspec.json.decode(path.read_bytes(), type=ClusterFile).ports
        brokers = [ports[pod] for pod in sorted(ports) if REPLICATION in ports[pod]]
        return tuple(f"{HOST}:{broker[REPLICATION]}" for broker in brokers[:BOOTSTRAP_BROKERS])


class _WrappedBrokers:
    def __init__(self, brokers: KubernetesBrokers, fault: Fault) -> None:
        self._brokers = brokers
        self._fault = fault

    async def connect(self, kafka: Kafka) -> Any:
        return _WrappedConnection(await self._brokers.connect(kafka), self._fault)


class _WrappedConnection:
    def __init__(self, connection: Any, fault: Fault) -> None:
        self._connection = connection
        self.admin = fault.wrap(connection.admin)

    async def refresh(self, kafka: Kafka) -> None:
        await self._connection.refresh(kafka)

    async def close(self) -> None:
        await self._connection.close()


async def run(kubeconfig: str, directory: Path, *, exit_after: int, companion: str) -> None:
    log_events_to_stderr()
    access = Connection(kubeconfig=kubeconfig, context="", server="").build_access(clock=RealClock())
    settings = KafkaOperatorSettings(
        process=ControllerOptions(access=access, address="127.0.0.1:0", leader_elect=False),
        settings=KafkaSettings(mode=KafkaMode.COMPANION, serves_engines=True) if companion else KafkaSettings(),
        serving=CruiseControlServing(address=companion, authentication=Authentication(())) if companion else None,
    )
    operator = LocalOperator(settings, clock=RealClock(), entropy=SystemEntropy())
    operator.directory, operator.fault = directory, ExitAfter(exit_after)
    async with operator:
        await operator.run()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("kubeconfig")
    parser.add_argument("directory", type=Path)
    parser.add_argument("--exit-after", type=int, default=0)
    parser.add_argument("--companion", default="")
    chosen = parser.parse_args()
    running = run(chosen.kubeconfig, chosen.directory, exit_after=chosen.exit_after, companion=chosen.companion)
    asyncio.run(run_until_signalled(running))
