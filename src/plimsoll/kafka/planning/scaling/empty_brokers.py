"""New brokers onto which a proposal moves nothing, and why: read from Cruise Control's answer. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from plimsoll.core.plans import Reason
from plimsoll.kafka.model.requests import Mode
from plimsoll.kafka.planning.scaling.reasons import format_brokers

if TYPE_CHECKING:
    from collections.abc import Mapping

    from plimsoll.kafka.model.rebalances import RebalanceSpec

BROKERS_STAY_EMPTY: Final = "BrokersStayEmpty"
_VIOLATED: Final = "VIOLATED"
_GOALS_AT_MOST: Final = 3
_LONGEST_REASON: Final = 200
_LISTED_AT_MOST: Final = 100


def find_empty_brokers(spec: RebalanceSpec | None, body: Mapping[str, Any] | None) -> Reason | None:
    """The warning about new brokers that hold no replica after a proposal, although other brokers hold some.

    None too if the answer does not say how many replicas each broker holds afterwards.
    """
    if spec is None or spec.mode is not Mode.ADD_BROKERS or body is None:
        return None
    replicas = _read_replicas(body)
    empty = [broker for broker in sorted(spec.brokers) if replicas.get(broker) == 0]
    if not empty or not any(replicas.values()):
        return None
    return Reason(
        code=BROKERS_STAY_EMPTY,
        message=f"no replica moves onto {format_brokers(empty)}: {_explain(body)}",
        facts={"brokers": empty[:_LISTED_AT_MOST]},
    )


def _read_replicas(body: Mapping[str, Any]) -> dict[int, int]:
    """The replicas per broker after the proposal."""
    load = body.get("loadAfterOptimization")
    listed = load.get("brokers") if isinstance(load, dict) else None
    return {
        entry["Broker"]: entry["Replicas"]
        for entry in (listed if isinstance(listed, list) else [])
        if isinstance(entry, dict) and isinstance(entry.get("Broker"), int) and isinstance(entry.get("Replicas"), int)
    }


def _explain(body: Mapping[str, Any]) -> str:
    """The goals that stay violated, and what the engine holds back."""
    listed = body.get("goalSummary")
    goals = [entry for entry in (listed if isinstance(listed, list) else []) if isinstance(entry, dict)]
    violated = [_describe_goal(entry) for entry in goals if entry.get("status") == _VIOLATED]
    held = body["summary"].get("held") if isinstance(body.get("summary"), dict) else None
    parts = [text[:_LONGEST_REASON] for text in (held if isinstance(held, list) else []) if isinstance(text, str)]
    if violated:
        more = len(violated) - _GOALS_AT_MOST
        named = "; ".join(violated[:_GOALS_AT_MOST]) + (f"; and {more} more goals" if more > 0 else "")
        parts.insert(0, f"no move that the goals allow improves {named}")
    return "; ".join(parts[: _GOALS_AT_MOST + 1]) or "the cluster is already balanced, every goal is met without them"


def _describe_goal(entry: Mapping[str, Any]) -> str:
    name, reason = str(entry.get("goal", ""))[:_LONGEST_REASON], entry.get("reason")
    return f"{name} ({reason[:_LONGEST_REASON]})" if isinstance(reason, str) and reason else name
