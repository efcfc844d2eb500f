"""`plimsoll kafka status` without brokers: the Kafka objects of a Kubernetes cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import typer

from plimsoll.cli.shared.connection import run_with_client
from plimsoll.cli.shared.output import Output, Table, echo_parts, echo_value

if TYPE_CHECKING:
    from collections.abc import Iterable

    from plimsoll.cli.shared.connection import Connection
    from plimsoll.kafka.model.auto_rebalance import AutoRebalance
    from plimsoll.kafka.reporting.cluster_overview import ClusterOverview
    from plimsoll.kube.client import Client
    from plimsoll.objects.api.kafka import Kafka


def print_clusters(connection: Connection, output: Output) -> None:
    """Print the clusters of a namespace; without one, those of all namespaces."""
    from plimsoll.core.errors import InvalidInput
    from plimsoll.kube.configuration.loader import NoClusterConfigured

    try:
        clusters = run_with_client(
            connection,
            lambda client: read_clusters(client, connection.namespace),
            is_silent=output in {Output.JSON, Output.YAML},
        )
    except NoClusterConfigured as error:
        raise InvalidInput(f"{error.problem}; for brokers without Kubernetes give --bootstrap HOST:PORT") from None
    match output:
        case Output.TABLE:
            echo_parts(list_clusters(clusters), title="Kafka clusters")
        case Output.NAME:
            for cluster in clusters:
                typer.echo(f"kafka/{cluster.namespace}/{cluster.name}")
        case _:
            echo_value([_build_data(cluster) for cluster in clusters], output)


async def read_clusters(client: Client, namespace: str) -> tuple[ClusterOverview, ...]:
    """Raises `InvalidInput` if the server does not define Kafka."""
    from plimsoll.core.errors import InvalidInput
    from plimsoll.kafka.reporting.cluster_overview import describe_clusters
    from plimsoll.kube.errors import NotFound
    from plimsoll.kube.requests.options import Selection
    from plimsoll.objects.api.kafka import Kafka, KafkaRebalance

    try:
        kafkas = await client.list(Kafka, Selection(namespace=namespace))
        rebalances = await client.list(KafkaRebalance, Selection(namespace=namespace))
    except NotFound:
        raise InvalidInput(
            "the server has no definition of Kafka (deploy/crds); for brokers without Kubernetes say --bootstrap"
        ) from None
    stored, executions = await _read_stored(client, kafkas.items), await _read_executions(client, kafkas.items)
    return describe_clusters(kafkas.items, rebalances.items, stored, executions)


async def _read_stored(client: Client, kafkas: Iterable[Kafka]) -> dict[tuple[str, str], AutoRebalance]:
    """What was stored beside Kafkas: by a companion, or where the status is pruned. What cannot be read is left out."""
    import msgspec

    from plimsoll.kafka.controllers.companion_reconciler import is_enabled
    from plimsoll.kafka.controllers.config_maps.auto_rebalance_states import decode_state
    from plimsoll.kafka.wire.names import build_auto_rebalance_config_map_name
    from plimsoll.kafka.wire.status_views import is_view_missing
    from plimsoll.kube.errors import ApiError
    from plimsoll.objects.api.core import ConfigMap

    found: dict[tuple[str, str], AutoRebalance] = {}
    for kafka in kafkas:
        if not is_enabled(kafka) and not is_view_missing(kafka.status):
            continue
        namespace, name = kafka.metadata.namespace, kafka.metadata.name
        try:
            stored = await client.get(ConfigMap, build_auto_rebalance_config_map_name(name), namespace=namespace)
            found[namespace, name] = decode_state(stored).auto_rebalance
        except (ApiError, msgspec.DecodeError):
            continue
    return found


async def _read_executions(client: Client, kafkas: Iterable[Kafka]) -> dict[tuple[str, str], str]:
    """The executions that engines of Plimsoll have recorded. A record that cannot be read is left out."""
    from plimsoll.core.errors import PlimsollError
    from plimsoll.kafka.engine.config_map_store import ConfigMapExecutionStore
    from plimsoll.kube.diagnosis.parallel_requests import request_all
    from plimsoll.runtime.clocks import RealClock

    configured = [kafka for kafka in kafkas if kafka.spec.cruise_control is not None]
    states = await request_all(
        configured, lambda kafka: ConfigMapExecutionStore(client, kafka, clock=RealClock()).read_state()
    )
    return {
        (kafka.metadata.namespace, kafka.metadata.name): state.execution_id
        for kafka, state in zip(configured, states, strict=True)
        if state is not None and not isinstance(state, PlimsollError)
    }


def list_clusters(clusters: Iterable[ClusterOverview]) -> list[str | Table]:
    from plimsoll.core.formatting import format_time
    from plimsoll.journal.rendering import remove_control_characters

    rows = [
        (
            cluster.namespace,
            cluster.name,
            cluster.ready,
            cluster.state or "-",
            _join(cluster.add_brokers),
            _join(cluster.remove_brokers),
            ", ".join(f"{rebalance.name} ({rebalance.state})" for rebalance in cluster.rebalances) or "-",
            "-" if cluster.since is None else format_time(cluster.since),
        )
        for cluster in clusters
    ]
    if not rows:
        return ["there is no Kafka"]
    heading = ("NAMESPACE", "NAME", "READY", "STATE", "ADD", "REMOVE", "REBALANCE", "SINCE")
    problems = [
        remove_control_characters(f"{cluster.namespace}/{cluster.name}: {cluster.problem}")
        for cluster in clusters
        if cluster.problem
    ]
    moving = [
        f"{cluster.namespace}/{cluster.name}: replicas move, and no KafkaRebalance shows it (execution "
        f"{cluster.execution}); docs/kafka-operator.md says how to stop it"
        for cluster in clusters
        if cluster.execution
    ]
    return [Table(heading, rows), *problems, *moving]


def _join(brokers: tuple[int, ...]) -> str:
    return ",".join(map(str, brokers)) or "-"


def _build_data(cluster: ClusterOverview) -> dict[str, Any]:
    import msgspec

    data: dict[str, Any] = msgspec.to_builtins(cluster)
    return data
