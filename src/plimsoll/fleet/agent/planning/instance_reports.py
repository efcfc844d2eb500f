"""The state of an instance, as it is reported (docs/design/fleet.md 17.5): the first rule that holds. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from plimsoll.core.values import Value
from plimsoll.fleet.agent.model.reports import (
    ERROR,
    FALSE,
    INSTALLING,
    REJECTED,
    TRUE,
    InstanceReport,
    RunningVersions,
)
from plimsoll.fleet.agent.planning.claiming import REJECTED_MESSAGE
from plimsoll.objects.api.kafka import Kafka  # noqa: TC001 - msgspec reads annotations at run time

if TYPE_CHECKING:
    from plimsoll.objects.api.managed_kafkas import ManagedKafka, ManagedKafkaVersions

FAILING_S: Final = 600.0
"""So long a Kafka is not ready before that is an error."""
_NOT_READY: Final = "NotReady"
_IDLE: Final = frozenset({"", "Idle"})
_INGRESS: Final = "ingress."


class PoolState(Value):
    """A node pool and its pods. `desired`: the pods of the shape; the pool may still have others."""

    name: str
    desired: int
    replicas: int
    pods: int | None
    """None: its pods are not seen yet."""
    ready_pods: int

    @property
    def is_complete(self) -> bool:
        return self.replicas == self.desired and self.ready_pods >= self.desired

    @property
    def has_more(self) -> bool:
        """Whether pods above the desired number may exist."""
        return self.pods is None or self.pods > self.desired


class KafkaState(Value):
    """What exists of a real instance. `kafka` None: it is not made yet.

    `refusal`: what the API server answered to its objects; `failing_s`: how long the Kafka is NotReady without a break.
    """

    kafka: Kafka | None = None
    pools: tuple[PoolState, ...] = ()
    refusal: str = ""
    failing_s: float = 0.0

    @property
    def is_resizing(self) -> bool:
        """Whether brokers come or go, or replicas move because of that."""
        if self.kafka is None or any(pool.has_more or not pool.is_complete for pool in self.pools):
            return True
        return is_rebalancing(self.kafka)


class ReservedState(Value):
    """The pods of a reserved instance."""

    desired: int
    ready: int
    refusal: str = ""


def report_rejected(managed: ManagedKafka) -> InstanceReport:
    return _report(managed, FALSE, REJECTED, REJECTED_MESSAGE)


def report_deleting(managed: ManagedKafka) -> InstanceReport:
    """It goes. That it is gone is reported when its namespace is."""
    return _report(managed, FALSE, INSTALLING, "it is being deleted")


def report_waiting(managed: ManagedKafka, message: str) -> InstanceReport:
    return _report(managed, FALSE, INSTALLING, message)


def report_reserved(managed: ManagedKafka, state: ReservedState) -> InstanceReport:
    if state.refusal:
        return _report(managed, FALSE, ERROR, state.refusal)
    if state.ready >= state.desired:
        return _report(managed, TRUE, "", "")
    return _report(managed, FALSE, INSTALLING, f"{state.ready} of {state.desired} pods are ready")


def report_instance(managed: ManagedKafka, state: KafkaState) -> InstanceReport:
    kafka = state.kafka
    actual = read_actual_versions(managed, kafka)
    if kafka is not None and not state.refusal and _is_ready(kafka) and _are_complete(state):
        host = managed.spec.endpoint.bootstrap_server_host
        _, _, domain = host.partition(".")
        return InstanceReport(
            id=_get_id(managed),
            status=TRUE,
            versions=actual,
            router=f"{_INGRESS}{domain}" if domain else host,
            admin_server_uri=f"https://admin-server-{host}",
        )
    if kafka is not None and (update := _find_update(managed.spec.versions, actual)):
        return _report(managed, FALSE, *update, versions=actual)
    if state.refusal:
        return _report(managed, FALSE, ERROR, state.refusal, versions=actual)
    problem = "" if kafka is None else find_problem(kafka)
    if problem and state.failing_s > FAILING_S:
        return _report(managed, FALSE, ERROR, problem, versions=actual)
    return _report(managed, FALSE, INSTALLING, problem or _describe_progress(state), versions=actual)


def is_rebalancing(kafka: Kafka) -> bool:
    """Whether its operator moves replicas onto brokers that came or off brokers that leave, or is about to."""
    summary = kafka.status.auto_rebalance
    is_late = kafka.status.observed_generation < kafka.metadata.generation
    return is_late or (
        summary is not None and (summary.state not in _IDLE or any(mode.brokers for mode in summary.modes))
    )


def find_problem(kafka: Kafka) -> str:
    """Why a Kafka is not ready, in the words of its operator; empty: it does not say so."""
    found = next((condition for condition in kafka.status.conditions if condition.type == _NOT_READY), None)
    if found is None or found.status != TRUE or not found.reason:
        return ""
    return f"{found.reason}: {found.message}" if found.message else found.reason


def read_actual_versions(managed: ManagedKafka, kafka: Kafka | None) -> RunningVersions:
    """What runs: what the operator names, or what is specified where it is ready and the operator names nothing."""
    if kafka is None:
        return RunningVersions()
    status, wanted = kafka.status, managed.spec.versions
    is_current = _is_ready(kafka)
    return RunningVersions(
        kafka=status.kafka_version or (wanted.kafka if is_current else ""),
        strimzi=wanted.strimzi if is_current else managed.status.versions.strimzi,
        kafka_ibp=shorten_ibp(status.kafka_metadata_version) or (wanted.kafka_ibp if is_current else ""),
    )


def shorten_ibp(metadata_version: str) -> str:
    """`4.3-IV0` is the metadata version of `4.3`."""
    return metadata_version.partition("-")[0]


def _find_update(wanted: ManagedKafkaVersions, actual: RunningVersions) -> tuple[str, str] | None:
    """The reason of an update that runs. A version that is not known yet is not updated but installed."""
    for reason, before, after in (
        ("StrimziUpdating", actual.strimzi, wanted.strimzi),
        ("KafkaUpdating", actual.kafka, wanted.kafka),
        ("KafkaIbpUpdating", actual.kafka_ibp, wanted.kafka_ibp),
    ):
        if before and after and before != after:
            return reason, f"from {before} to {after}"
    return None


def _is_ready(kafka: Kafka) -> bool:
    ready = next((condition for condition in kafka.status.conditions if condition.type == "Ready"), None)
    is_current = kafka.status.observed_generation >= kafka.metadata.generation
    return ready is not None and ready.status == TRUE and is_current


def _are_complete(state: KafkaState) -> bool:
    return bool(state.pools) and all(pool.is_complete for pool in state.pools)


def _describe_progress(state: KafkaState) -> str:
    if state.kafka is None:
        return "its objects are being made"
    waiting = [f"{pool.ready_pods} of {pool.desired} {pool.name}" for pool in state.pools if not pool.is_complete]
    return f"ready: {', '.join(waiting)}" if waiting else "its Kafka operator has not reported it ready"


def _report(
    managed: ManagedKafka, status: str, reason: str, message: str, *, versions: RunningVersions | None = None
) -> InstanceReport:
    return InstanceReport(
        id=_get_id(managed),
        status=status,
        reason=reason,
        message=message,
        versions=versions or RunningVersions(),
    )


def _get_id(managed: ManagedKafka) -> str:
    return managed.metadata.annotations.get("bf2.org/id", "")
