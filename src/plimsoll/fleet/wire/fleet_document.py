"""The document of `plimsoll fleet evaluate`, which export writes and import reads: rows and configuration in one file.

docs/design/formats/fleet-evaluate.md. Rows that `count` multiplies stay one value, so that a document of a million
Kafkas is as small in memory as it is on disk.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from datetime import datetime  # noqa: TC003 - pydantic reads annotations at run time
from typing import TYPE_CHECKING, Any, Final, Literal

import msgspec

from plimsoll.fleet.config.policy_documents import PolicyDocuments, build_policy
from plimsoll.fleet.config.strict import Document, Mistake, find_repeated, parse_document
from plimsoll.fleet.model.policy import CreationPolicy, FleetPolicy
from plimsoll.fleet.model.statuses import CONSUMING, KafkaStatus, ScalingType
from plimsoll.fleet.model.units import KafkaCount
from plimsoll.fleet.wire.row_documents import ClusterRowDocument, KafkaRowDocument, Moment, find_latest_time

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from plimsoll.fleet.model.clusters import Cluster
    from plimsoll.fleet.model.kafkas import KafkaRequest

SECTIONS: Final = ("scale_up", "scale_down", "deprovisioning", "placement", "prewarming")
MOST_LISTED: Final = 100_000
"""Kafkas that a result lists one by one."""
SECRET_COLUMNS: Final = frozenset({"client_secret", "canary_service_account_client_secret"})
NO_BACKOFF: Final = CreationPolicy(retry_initial_s=0, max_failed=0)
"""For a document without options of creations: a failed row of unknown age must not stop a what-if."""


class ConfigurationDocument(Document):
    """The configuration: each value is the document of the file of that name."""

    scaling_type: Literal["none", "manual", "auto"] = "auto"
    dynamic_scaling: Any = None
    node_prewarming: Any = None
    providers: Any = None
    kafka_instance_types: Any = None
    dataplane_clusters: Any = None


class FleetDocumentModel(Document):
    """The whole document. Rows are checked one by one, after it."""

    now: Moment | None = None
    evaluate: list[Literal["scale_up", "scale_down", "deprovisioning", "placement", "prewarming"]] | None = None
    configuration: ConfigurationDocument
    clusters: list[Any] | None = None
    kafkas: list[Any] | None = None


@dataclass(frozen=True, slots=True)
class KafkaGroup:
    """Equal Kafkas. Their ids are `<id>-1` to `<id>-<count>`, or the id itself if there is one."""

    kafka: KafkaRequest
    count: int

    def list_ids(self) -> Iterator[str]:
        if self.count == 1:
            yield self.kafka.id
        else:
            yield from (f"{self.kafka.id}-{number}" for number in range(1, self.count + 1))

    def list_kafkas(self) -> Iterator[KafkaRequest]:
        """The rows; each has its own id, and its own name unless one was given."""
        for row_id in self.list_ids():
            name = row_id if self.kafka.name == self.kafka.id else self.kafka.name
            yield msgspec.structs.replace(self.kafka, id=row_id, name=name)


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetDocument:
    """A document without mistakes. Rows that are soft-deleted are left out; the others are in visiting order."""

    now: datetime
    sections: tuple[str, ...]
    policy: FleetPolicy
    clusters: tuple[Cluster, ...]
    kafkas: tuple[KafkaGroup, ...]

    def count_kafkas(self) -> tuple[KafkaCount, ...]:
        """The Kafkas as the database counts them."""
        consuming: defaultdict[tuple[Any, ...], list[int]] = defaultdict(lambda: [0, 0, 0])
        examples: dict[tuple[Any, ...], str] = {}
        for group in self.kafkas:
            kafka = group.kafka
            key = (kafka.locator, kafka.cluster_id, kafka.size_id)
            numbers = consuming[key]
            numbers[0] += group.count if kafka.status in CONSUMING else 0
            numbers[1] += group.count if kafka.status is KafkaStatus.DELETING else 0
            numbers[2] += group.count if kafka.status is KafkaStatus.ACCEPTED else 0
            examples.setdefault(key, next(group.list_ids()))
        return tuple(
            KafkaCount(
                locator=key[0],
                cluster_id=key[1],
                size_id=key[2],
                consuming=numbers[0],
                deleting=numbers[1],
                accepted=numbers[2],
                example_id=examples[key],
            )
            for key, numbers in consuming.items()
        )


def read_fleet_document(document: Any) -> FleetDocument | list[Mistake]:
    """The document, or all its mistakes with their paths."""
    model = parse_document(FleetDocumentModel, document)
    mistakes = list(model) if isinstance(model, list) else []
    given = document if isinstance(document, dict) else {}
    clusters, cluster_mistakes = _read_rows(ClusterRowDocument, given.get("clusters"), path="clusters")
    kafkas, kafka_mistakes = _read_rows(KafkaRowDocument, given.get("kafkas"), path="kafkas")
    configuration = given.get("configuration")
    policy, policy_mistakes = read_configuration_policy(configuration if isinstance(configuration, dict) else {})
    has_rows_only = isinstance(model, list) and not isinstance(configuration, dict)
    mistakes += [] if has_rows_only else policy_mistakes
    mistakes += [*cluster_mistakes, *kafka_mistakes, *_find_row_mistakes(clusters, kafkas)]
    if mistakes or isinstance(model, list) or policy is None:
        return mistakes
    now = model.now or max(find_latest_time(clusters), find_latest_time(kafkas))
    sections = SECTIONS if model.evaluate is None else tuple(name for name in SECTIONS if name in model.evaluate)
    live = [row.build_cluster(now) for row in clusters if row.deleted_at is None]
    groups = [KafkaGroup(row.build_kafka(now), row.count) for row in kafkas if row.deleted_at is None]
    read = FleetDocument(
        now=now,
        sections=sections,
        policy=_drop_backoff(policy, given["configuration"]),
        clusters=tuple(sorted(live, key=lambda cluster: (cluster.created_at, cluster.id))),
        kafkas=tuple(sorted(groups, key=lambda group: (group.kafka.created_at, group.kafka.id))),
    )
    return _find_too_many(read) or read


def read_rows(document: Any, now: datetime) -> tuple[tuple[Cluster, ...], tuple[KafkaGroup, ...]] | list[Mistake]:
    """The rows of a document for import, soft-deleted ones included, or all mistakes. `now`: the time of new rows."""
    if not isinstance(document, dict):
        return [Mistake("", "must be a mapping")]
    odd = [key for key in ("clusters", "kafkas") if not isinstance(document.get(key, []), list | None)]
    if odd:
        return [Mistake(key, "must be a list") for key in odd]
    clusters, cluster_mistakes = _read_rows(ClusterRowDocument, document.get("clusters"), path="clusters")
    kafkas, kafka_mistakes = _read_rows(KafkaRowDocument, document.get("kafkas"), path="kafkas")
    mistakes = [*cluster_mistakes, *kafka_mistakes, *_find_row_mistakes(clusters, kafkas)]
    if mistakes:
        return mistakes
    return (
        tuple(row.build_cluster(now) for row in clusters),
        tuple(KafkaGroup(row.build_kafka(now), row.count) for row in kafkas),
    )


def write_rows(
    clusters: Iterable[Cluster], kafkas: Iterable[KafkaRequest], *, with_secrets: bool = False
) -> dict[str, Any]:
    """Rows as a document: every column, without those that have the values of a new row."""
    hidden = frozenset() if with_secrets else SECRET_COLUMNS
    return {
        "clusters": [_write_row(cluster, hidden) for cluster in clusters],
        "kafkas": [_write_row(kafka, hidden) for kafka in kafkas],
    }


def _write_row(row: Cluster | KafkaRequest, hidden: Collection[str]) -> dict[str, Any]:
    defaults = {field.name: field.default for field in msgspec.structs.fields(row)}
    written: dict[str, Any] = msgspec.to_builtins(row)
    chosen = {name: value for name, value in written.items() if name not in hidden and value != defaults[name]}
    return {name: value for name, value in chosen.items() if value is False or value}


def _read_rows(model: Any, rows: Any, *, path: str) -> tuple[list[Any], list[Mistake]]:
    """Rows without mistakes, and the mistakes of the others."""
    found: list[Any] = []
    mistakes: list[Mistake] = []
    for number, row in enumerate(rows if isinstance(rows, list) else ()):
        parsed = parse_document(model, row, path=f"{path}[{number}]")
        if isinstance(parsed, list):
            mistakes += parsed
        else:
            found.append(parsed)
    return found, mistakes


def read_configuration_policy(configuration: dict[str, Any]) -> tuple[FleetPolicy | None, list[Mistake]]:
    """The policy as the service has it, and the mistakes of the configuration with their paths."""
    try:
        scaling_type = ScalingType(configuration.get("scaling_type", ScalingType.AUTO))
    except ValueError:
        return None, []  # the model of the document reports it
    result = build_policy(PolicyDocuments(scaling_type=scaling_type, documents=configuration))
    mistakes = [
        mistake.with_parent(f"configuration.{key}") for key, found in result.mistakes.items() for mistake in found
    ]
    return result.policy, mistakes


def _drop_backoff(policy: FleetPolicy, configuration: dict[str, Any]) -> FleetPolicy:
    """The policy of a what-if: without options of creations nothing is known about the age of failed rows."""
    scaling = configuration.get("dynamic_scaling")
    if isinstance(scaling, dict) and scaling.get("cluster_creation"):
        return policy
    return msgspec.structs.replace(policy, creation=NO_BACKOFF)


def _find_row_mistakes(clusters: list[ClusterRowDocument], kafkas: list[KafkaRowDocument]) -> list[Mistake]:
    """Ids that occur twice. Ids of rows that are soft-deleted count too: they are in one table."""
    live = [cluster.cluster_id for cluster in clusters if cluster.cluster_id and cluster.deleted_at is None]
    return [
        *(Mistake("clusters", f"the id {name!r} occurs twice") for name in find_repeated(row.id for row in clusters)),
        *(Mistake("clusters", f"the cluster_id {name!r} occurs twice") for name in find_repeated(live)),
        *(Mistake("kafkas", f"the id {name!r} occurs twice") for name in find_repeated(row.id for row in kafkas)),
    ]


def _find_too_many(document: FleetDocument) -> list[Mistake]:
    """Results of placement and prewarming name every Kafka: there is a limit for these."""
    listed = {
        "placement": sum(group.count for group in document.kafkas if is_without_place(group.kafka)),
        "prewarming": sum(group.count for group in document.kafkas if group.kafka.bootstrap_server_host),
    }
    return [
        Mistake("kafkas", f"{name} would list {number} Kafkas, and the most is {MOST_LISTED}; leave it out of evaluate")
        for name, number in listed.items()
        if name in document.sections and number > MOST_LISTED
    ]


def is_without_place(kafka: KafkaRequest) -> bool:
    """Whether placement decides about it: accepted, or given back by a full cluster."""
    return kafka.status is KafkaStatus.ACCEPTED or (kafka.status is KafkaStatus.PROVISIONING and not kafka.cluster_id)
