"""A KafkaRebalance and its Kafka, read for one step; the annotations that a step writes. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from plimsoll.kafka.model.rebalance_steps import BegunStep, KafkaSummary, ObservedRebalance
from plimsoll.kafka.wire.names import (
    AUTO_APPROVAL_ANNOTATION,
    CLUSTER_LABEL,
    PAUSE_ANNOTATION,
    REBALANCE_ANNOTATION,
    TEMPLATE_ANNOTATION,
    build_auto_rebalance_name,
    is_annotated,
)
from plimsoll.kafka.wire.rebalance_specs import read_rebalance_spec
from plimsoll.kafka.wire.rebalance_status import read_state
from plimsoll.kafka.wire.status_views import read_status_views

if TYPE_CHECKING:
    from collections.abc import Mapping

    from plimsoll.core.selectors import LabelSelector
    from plimsoll.objects.api.kafka import Kafka, KafkaRebalance

BEGUN_ANNOTATION: Final = "plimsoll.io/rebalance-step"
"""The step that was begun, as JSON (`BegunStep`). It is there only while a step runs, and after a crash."""
_MAX_BEGUN: Final = 1_000
_DECODER: Final = msgspec.json.Decoder(BegunStep)


def observe_rebalance(rebalance: KafkaRebalance, kafka: Kafka | None) -> ObservedRebalance:
    """What a step must know about a rebalance."""
    metadata, status = rebalance.metadata, rebalance.status
    annotations = metadata.annotations
    reading = read_rebalance_spec(rebalance.spec, supported_goals=_list_configured_goals(kafka))
    state, condition, state_problem = read_state(status.conditions)
    return ObservedRebalance(
        name=metadata.name,
        cluster=metadata.labels.get(CLUSTER_LABEL, "").strip(),
        state=state,
        reason=condition.reason,
        message=condition.message,
        state_problem=state_problem,
        session_id=status.session_id,
        has_result=bool(status.optimization_result),
        annotation=annotations.get(REBALANCE_ANNOTATION, "").strip(),
        begun=read_begun(annotations),
        is_auto_approved=is_annotated(annotations, AUTO_APPROVAL_ANNOTATION),
        is_template=is_annotated(annotations, TEMPLATE_ANNOTATION),
        is_paused=is_annotated(annotations, PAUSE_ANNOTATION),
        is_deleting=metadata.deletion_timestamp is not None,
        is_spec_changed=bool(status.conditions) and status.observed_generation != metadata.generation,
        spec=reading.spec,
        problems=reading.problems,
        warnings=reading.warnings,
    )


def summarize_kafka(kafka: Kafka, *, selector: LabelSelector | None = None) -> KafkaSummary:
    """What a step must know about the Kafka. `selector` None: every Kafka is the operator's."""
    running = None if kafka.metadata.deletion_timestamp is not None else read_status_views(kafka.status).running
    return KafkaSummary(
        is_selected=selector is None or selector.matches(kafka.metadata.labels),
        is_ready=any(condition.type == "Ready" and condition.status == "True" for condition in kafka.status.conditions),
        has_cruise_control=kafka.spec.cruise_control is not None,
        running="" if running is None else build_auto_rebalance_name(kafka.metadata.name, running),
    )


def read_begun(annotations: Mapping[str, str]) -> BegunStep | None:
    """The begun step; None: there is none, or its annotation is not one that we wrote."""
    text = annotations.get(BEGUN_ANNOTATION, "")
    if not text or len(text) > _MAX_BEGUN:
        return None
    try:
        return _DECODER.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return None


def write_begun(begun: BegunStep) -> str:
    """The value of the annotation."""
    return msgspec.json.encode(begun).decode()


def _list_configured_goals(kafka: Kafka | None) -> tuple[str, ...]:
    """Goals of the user's own that `spec.cruiseControl.config` names."""
    cruise_control = None if kafka is None else kafka.spec.cruise_control
    config = None if cruise_control is None else cruise_control.config
    goals = config.get("goals") if isinstance(config, dict) else None
    return tuple(goals.split(",")) if isinstance(goals, str) else ()
