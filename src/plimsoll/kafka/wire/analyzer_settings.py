"""Settings of the analyzer from `spec.cruiseControl.config`: the properties of Cruise Control that our engine has.

Other properties are Cruise Control's own and are left alone. A wrong value is named, and the default holds.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

import msgspec

from plimsoll.core.plans import Reason
from plimsoll.core.value_parsing import read_number, read_whole_number
from plimsoll.core.values import Value
from plimsoll.kafka.model.settings import AnalyzerSettings
from plimsoll.kafka.planning.goal_list import DEFAULT_GOALS, find_goal
from plimsoll.objects.schema.regular_expressions import BadPattern, compile_pattern

if TYPE_CHECKING:
    from plimsoll.objects.api.kafka import Kafka

INVALID: Final = "CruiseControlConfigInvalid"
_PATH: Final = "spec.cruiseControl.config"
_MAX_GOALS: Final = 100
_MAX_PATTERN: Final = 1_000
_SHARES: Final = {
    "disk.capacity.threshold": "disk_capacity_threshold",
    "cpu.capacity.threshold": "cpu_capacity_threshold",
    "network.inbound.capacity.threshold": "network_inbound_capacity_threshold",
    "network.outbound.capacity.threshold": "network_outbound_capacity_threshold",
}
_BALANCES: Final = {
    "replica.count.balance.threshold": "replica_count_balance_threshold",
    "leader.replica.count.balance.threshold": "leader_replica_count_balance_threshold",
    "topic.replica.count.balance.threshold": "topic_replica_count_balance_threshold",
    "disk.balance.threshold": "disk_balance_threshold",
    "cpu.balance.threshold": "cpu_balance_threshold",
    "network.inbound.balance.threshold": "network_inbound_balance_threshold",
    "network.outbound.balance.threshold": "network_outbound_balance_threshold",
}
_COUNTS: Final = {
    "max.replicas.per.broker": "max_replicas_per_broker",
    "topic.replica.count.balance.min.gap": "topic_replica_count_balance_min_gap",
    "topic.replica.count.balance.max.gap": "topic_replica_count_balance_max_gap",
    "min.topic.leaders.per.broker": "min_topic_leaders_per_broker",
}
_MIN_LEADERS: Final = "topics.with.min.leaders.per.broker"


class AnalyzerConfiguration(Value):
    """The settings, and what is wrong in the properties."""

    settings: AnalyzerSettings
    problems: tuple[Reason, ...] = ()


def read_analyzer_settings(kafka: Kafka) -> AnalyzerConfiguration:
    """The settings of the Kafka's engine."""
    config = kafka.spec.cruise_control.config if kafka.spec.cruise_control is not None else None
    if config is None:
        return AnalyzerConfiguration(settings=AnalyzerSettings())
    if not isinstance(config, dict):
        return AnalyzerConfiguration(settings=AnalyzerSettings(), problems=(_complain("", "must be an object"),))
    problems: list[Reason] = []
    given: dict[str, Any] = _read_numbers(config, problems)
    supported = _read_goals(config, "goals", problems)
    default = _read_goals(config, "default.goals", problems)
    hard = _read_goals(config, "hard.goals", problems)
    if default or supported:
        given["default_goals"] = default or tuple(goal for goal in supported if goal in DEFAULT_GOALS)
    if hard:
        given["hard_goals"] = hard
    pattern = config.get(_MIN_LEADERS)
    if pattern is not None and pattern != "":
        problem = _find_pattern_problem(pattern)
        if problem:
            problems.append(_complain(_MIN_LEADERS, problem))
        else:
            given["topics_with_min_leaders_per_broker"] = pattern
    return AnalyzerConfiguration(
        settings=msgspec.structs.replace(AnalyzerSettings(), **given), problems=tuple(problems)
    )


def _read_numbers(config: dict[str, Any], problems: list[Reason]) -> dict[str, Any]:
    given: dict[str, Any] = {}
    for table, least, most in ((_SHARES, 0.0, 1.0), (_BALANCES, 1.0, 1e6)):
        for key, field in table.items():
            if (value := config.get(key)) is None:
                continue
            number = read_number(str(value)) if not isinstance(value, bool) else None
            if number is not None and math.isfinite(number) and least <= number <= most:
                given[field] = number
            else:
                problems.append(_complain(key, f"must be a number between {least:g} and {most:g}"))
    for key, field in _COUNTS.items():
        if (value := config.get(key)) is None:
            continue
        count = read_whole_number(str(value)) if not isinstance(value, bool) else None
        if count is not None:
            given[field] = count
        else:
            problems.append(_complain(key, "must be a whole number that is not negative"))
    return given


def _read_goals(config: dict[str, Any], key: str, problems: list[Reason]) -> tuple[str, ...]:
    """Goals by their names, with or without a package. One that is not known is named and left out."""
    value = config.get(key)
    if value is None:
        return ()
    names = value.split(",") if isinstance(value, str) else value
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        problems.append(_complain(key, "must be a list of goals, separated by commas"))
        return ()
    goals = []
    for name in [name.strip() for name in names[:_MAX_GOALS] if name.strip()]:
        goal = find_goal(name)
        if goal is None:
            problems.append(_complain(key, f"no goal is named {name[:100]!r}"))
        else:
            goals.append(goal)
    return tuple(dict.fromkeys(goals))


def _find_pattern_problem(pattern: Any) -> str:
    if not isinstance(pattern, str) or len(pattern) > _MAX_PATTERN:
        return f"must be a regular expression of at most {_MAX_PATTERN} characters"
    try:
        compile_pattern(pattern)
    except BadPattern as error:
        return f"is not a regular expression: {error}"
    return ""


def _complain(key: str, problem: str) -> Reason:
    path = f"{_PATH}[{key}]" if key else _PATH
    return Reason(code=INVALID, message=f"{path}: {problem}", facts={"field": path})
