"""Reads `fleet` of a scenario file, and the steps that only a fleet has."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from plimsoll.local.ocm.settings import MOST_WORKERS, OcmDelays, OcmSettings
from plimsoll.local.ocm.simulated_agents import AgentSettings
from plimsoll.simulation.scenario import FleetEntry, OcmStep, RequestStep

if TYPE_CHECKING:
    from datetime import datetime

    from plimsoll.fleet.wire.fleet_document import FleetDocument
    from plimsoll.simulation.document import DocumentValue

_ROWS: Final = ("clusters", "kafkas")
_FIELDS: Final = ("configuration", *_ROWS, "ocm", "agents", "period", "machineBoot", "embedded")
_DELAYS: Final = {
    "pending": "pending_s",
    "installing": "installing_s",
    "addon": "addon_s",
    "uninstalling": "uninstalling_s",
}
_AGENTS: Final = {"period": "period_s", "kafkaReady": "kafka_ready_s"}
_METHODS: Final = ("GET", "POST", "PATCH", "DELETE")
_DEFAULT_PERIOD_S: Final = 30.0
_DEFAULT_BOOT_S: Final = 60.0


def read_fleet(given: DocumentValue, start: datetime) -> FleetEntry | None:
    """None: there are mistakes, which are added."""
    fields = given.read_fields(_FIELDS)
    if "configuration" not in fields:
        given.add_problem("configuration is missing")
        return None
    document = _read_document(given, fields, start)
    ocm = _read_ocm(fields["ocm"]) if "ocm" in fields else OcmSettings()
    agents = _read_agents(fields["agents"]) if "agents" in fields else AgentSettings()
    period_s = fields["period"].read_seconds() if "period" in fields else _DEFAULT_PERIOD_S
    if period_s <= 0 or agents.period_s <= 0:
        given.add_problem("a period must be longer than nothing")
    if document is None:
        return None
    return FleetEntry(
        policy=document.policy,
        clusters=document.clusters,
        kafkas=tuple(kafka for group in document.kafkas for kafka in group.list_kafkas()),
        ocm=ocm,
        agents=agents,
        period_s=period_s,
        machine_boot_s=fields["machineBoot"].read_seconds() if "machineBoot" in fields else _DEFAULT_BOOT_S,
        has_clusters=fields["embedded"].read_flag() if "embedded" in fields else True,
    )


def _read_document(given: DocumentValue, fields: dict[str, DocumentValue], start: datetime) -> FleetDocument | None:
    """Configuration and rows are those of `plimsoll fleet evaluate`."""
    from plimsoll.fleet.wire.fleet_document import FleetDocument, read_fleet_document  # noqa: PLC0415 - pydantic is slow

    written = {name: fields[name].value for name in ("configuration", *_ROWS) if name in fields}
    document = read_fleet_document({"now": start.isoformat(), **written})
    if isinstance(document, FleetDocument):
        return document
    for mistake in document:
        given.get_place(mistake.path).add_problem(mistake.reason)
    return None


def _read_ocm(given: DocumentValue) -> OcmSettings:
    fields = given.read_fields((*_DELAYS, "mostWorkers"))
    delays = {_DELAYS[name]: field.read_seconds() for name, field in fields.items() if name in _DELAYS}
    most = fields["mostWorkers"].read_whole(least=1) if "mostWorkers" in fields else MOST_WORKERS
    return OcmSettings(delays=OcmDelays(**delays), most_workers=most)


def _read_agents(given: DocumentValue) -> AgentSettings:
    fields = given.read_fields(("period", "kafkaReady"))
    known = AgentSettings()
    return AgentSettings(
        period_s=fields["period"].read_seconds() if "period" in fields else known.period_s,
        kafka_ready_s=fields["kafkaReady"].read_seconds() if "kafkaReady" in fields else known.kafka_ready_s,
    )


def read_request(given: DocumentValue) -> RequestStep:
    fields = given.read_fields(("method", "path", "query", "body", "admin", "user", "organisation"))
    for name in ("method", "path"):
        if name not in fields:
            given.add_problem(f"{name} is missing")
    texts = {name: fields[name].read_text() for name in ("path", "query", "user", "organisation") if name in fields}
    if "path" in texts and not texts["path"].startswith("/"):
        fields["path"].add_problem("must begin with a slash: /kafkas")
    body: Any = fields["body"].value if "body" in fields else None
    return RequestStep(
        **{"path": "/", **texts},
        method=fields["method"].read_choice(*_METHODS) if "method" in fields else _METHODS[0],
        body=body,
        is_admin=fields["admin"].read_flag() if "admin" in fields else False,
    )


def read_ocm_step(given: DocumentValue) -> OcmStep:
    fields = given.read_fields(("failCreations", "message"))
    return OcmStep(
        fail_creations=fields["failCreations"].read_whole() if "failCreations" in fields else 0,
        message=fields["message"].read_text() if "message" in fields else "the account has no quota left",
    )
