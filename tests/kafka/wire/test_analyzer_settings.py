"""Settings of the analyzer from Cruise Control's properties."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from plimsoll.kafka.model.settings import AnalyzerSettings
from plimsoll.kafka.wire.analyzer_settings import AnalyzerConfiguration, read_analyzer_settings
from plimsoll.objects.api.kafka import Kafka

PACKAGE = "com.linkedin.kafka.cruisecontrol.analyzer.goals"


def read(config: Any) -> AnalyzerConfiguration:
    return read_analyzer_settings(msgspec.convert({"spec": {"kafka": {}, "cruiseControl": {"config": config}}}, Kafka))


def test_without_properties_the_defaults_hold():
    for config in (None, {}, {"webserver.security.enable": False, "num.metric.fetchers": 3}):
        assert read(config) == AnalyzerConfiguration(settings=AnalyzerSettings())
    assert read_analyzer_settings(Kafka()).settings == AnalyzerSettings()


def test_properties_are_read_as_text_and_as_numbers():
    found = read(
        {
            "default.goals": f"{PACKAGE}.RackAwareGoal, {PACKAGE}.DiskCapacityGoal",
            "hard.goals": ["RackAwareGoal"],
            "disk.capacity.threshold": "0.85",
            "cpu.capacity.threshold": 0.5,
            "disk.balance.threshold": 1.2,
            "max.replicas.per.broker": "4000",
            "topics.with.min.leaders.per.broker": "orders.*",
        }
    )
    assert found.problems == ()
    assert found.settings == msgspec.structs.replace(
        AnalyzerSettings(),
        default_goals=("RackAwareGoal", "DiskCapacityGoal"),
        hard_goals=("RackAwareGoal",),
        disk_capacity_threshold=0.85,
        cpu_capacity_threshold=0.5,
        disk_balance_threshold=1.2,
        max_replicas_per_broker=4000,
        topics_with_min_leaders_per_broker="orders.*",
    )


def test_supported_goals_are_the_default_goals_unless_those_are_given():
    assert read({"goals": "DiskCapacityGoal,PreferredLeaderElectionGoal"}).settings.default_goals == (
        "DiskCapacityGoal",
    )
    both = read({"goals": "DiskCapacityGoal,RackAwareGoal", "default.goals": "RackAwareGoal"})
    assert both.settings.default_goals == ("RackAwareGoal",)


@pytest.mark.parametrize(
    ("config", "field"),
    [
        ([], "spec.cruiseControl.config"),
        ({"default.goals": "NoSuchGoal"}, "spec.cruiseControl.config[default.goals]"),
        ({"hard.goals": {"a": 1}}, "spec.cruiseControl.config[hard.goals]"),
        ({"hard.goals": [1]}, "spec.cruiseControl.config[hard.goals]"),
        ({"disk.capacity.threshold": "2"}, "spec.cruiseControl.config[disk.capacity.threshold]"),
        ({"disk.capacity.threshold": "nan"}, "spec.cruiseControl.config[disk.capacity.threshold]"),
        ({"cpu.balance.threshold": 0.5}, "spec.cruiseControl.config[cpu.balance.threshold]"),
        ({"cpu.balance.threshold": True}, "spec.cruiseControl.config[cpu.balance.threshold]"),
        ({"max.replicas.per.broker": -1}, "spec.cruiseControl.config[max.replicas.per.broker]"),
        ({"max.replicas.per.broker": [1]}, "spec.cruiseControl.config[max.replicas.per.broker]"),
        (
            {"topics.with.min.leaders.per.broker": "("},
            "spec.cruiseControl.config[topics.with.min.leaders.per.broker]",
        ),
        (
            {"topics.with.min.leaders.per.broker": "a" * 1001},
            "spec.cruiseControl.config[topics.with.min.leaders.per.broker]",
        ),
    ],
)
def test_a_wrong_property_is_named_and_the_default_holds(config: Any, field: str):
    found = read(config)
    (problem,) = found.problems
    assert (problem.code, problem.facts) == ("CruiseControlConfigInvalid", {"field": field})
    assert found.settings == AnalyzerSettings()
