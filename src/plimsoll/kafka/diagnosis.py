"""Checks of `plimsoll doctor` for Kafka: another operator, and the Cruise Controls of clusters with their Secrets."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any, Final

from plimsoll.core.formatting import format_count
from plimsoll.kafka.cruise_control.client.access import CruiseControlAccess
from plimsoll.kafka.model.rebalances import RebalanceRefused
from plimsoll.kafka.rivals import find_rivals, is_cruise_control_needed
from plimsoll.kafka.settings import LEASE, KafkaSettings
from plimsoll.kube.diagnosis.findings import Finding, Level
from plimsoll.kube.diagnosis.held_leases import LeaseCheck, check_lease
from plimsoll.kube.errors import NotFound
from plimsoll.kube.requests.options import Selection
from plimsoll.kube.secret_tls import ClusterSecrets
from plimsoll.objects.api.kafka import Kafka
from plimsoll.web.client import AiohttpClient

if TYPE_CHECKING:
    from plimsoll.kube.client import Client
    from plimsoll.kube.diagnosis.requirements import RivalContext
    from plimsoll.web.client import HttpClient

RIVALS_CHECK: Final = "rivals.kafka"
CRUISE_CONTROLS_CHECK: Final = "cruise-control.kafka"
_TIMEOUT_S: Final = 3.0
_MOST_NAMED: Final = 3
_OWN_LEASE: Final = LeaseCheck(
    check=RIVALS_CHECK, name=LEASE, namespace=KafkaSettings().controller_namespace, controller="Kafka operator"
)
MOST_CLUSTERS: Final = 10
"""How many Cruise Controls are called: one that is silent costs seconds."""


async def check_kafka_rivals(client: Client, context: RivalContext) -> Finding:
    """Whether Strimzi's operator reconciles the same Kafka objects, and which operator of Plimsoll leads."""
    rivals = await find_rivals(client, context.namespace)
    lease = await check_lease(client, _OWN_LEASE, now=context.now)
    details: dict[str, Any] = {
        "holder": None,
        "renewTime": None,
        **lease.details,
        "deployments": [f"{rival.namespace}/{rival.name}" for rival in rivals],
    }
    if not rivals:
        message = f"no operator of Strimzi watches the same namespaces; {lease.message}"
        return Finding(check=RIVALS_CHECK, level=Level.OK, message=message, details=details)
    return Finding(
        check=RIVALS_CHECK,
        level=Level.WARN,
        message=f"Strimzi's operator runs: {'; '.join(map(str, rivals))}; {lease.message}",
        fix="run the Kafka controller beside it with --kafka-mode companion, or scale the operator to 0",
        details=details,
    )


async def check_cruise_controls(client: Client, context: RivalContext) -> Finding:
    """Whether the Cruise Controls of clusters answer, with the Secrets that they need."""
    async with AiohttpClient(timeout_s=_TIMEOUT_S) as web:
        return await call_cruise_controls(client, context.namespace, web)


async def call_cruise_controls(client: Client, namespace: str, web: HttpClient) -> Finding:
    """Ask each Cruise Control for its state. One that no operator here needs is no warning."""
    try:
        listed = await client.list(Kafka, Selection(namespace=namespace))
    except NotFound:
        return Finding(check=CRUISE_CONTROLS_CHECK, level=Level.OK, message="Kafka is not defined: nothing to reach")
    configured = [kafka for kafka in listed.items if kafka.spec.cruise_control is not None]
    access = CruiseControlAccess(web, ClusterSecrets(client))
    problems = {}
    for kafka in configured[:MOST_CLUSTERS]:
        problem = await _find_problem(access, kafka)
        if problem:
            problems[f"{kafka.metadata.namespace}/{kafka.metadata.name}"] = problem
    checked = min(len(configured), MOST_CLUSTERS)
    if not problems:
        return Finding(
            check=CRUISE_CONTROLS_CHECK,
            level=Level.OK,
            message=f"{format_count(checked, 'Cruise Control')} can be used",
        )
    names = ", ".join((*itertools.islice(problems, _MOST_NAMED), *(("…",) if len(problems) > _MOST_NAMED else ())))
    unusable, details = f"{len(problems)} of {checked} Cruise Controls cannot be used from here", {"clusters": problems}
    if not await is_cruise_control_needed(client, namespace):
        message = f"{unusable}, and no operator here needs them: {names}"
        return Finding(check=CRUISE_CONTROLS_CHECK, level=Level.OK, message=message, details=details)
    lines = [f"{name}: {problem}" for name, problem in problems.items()]
    advice = (
        "only --rebalance-engine=cruise-control and Strimzi's operator need them; the engine of Plimsoll (the default) "
        "does not"
    )
    return Finding(
        check=CRUISE_CONTROLS_CHECK,
        level=Level.WARN,
        message=f"{unusable}: {names}",
        fix="\n".join((*lines, advice)),
        details=details,
    )


async def _find_problem(access: CruiseControlAccess, kafka: Kafka) -> str:
    found = await access.find(kafka)
    if isinstance(found, RebalanceRefused):
        return found.message
    state = await found.read_executor_state()
    return state.message if isinstance(state, RebalanceRefused) else ""
