"""`spec.cruiseControl.autoRebalance`: what users write, rightly and wrongly (docs/design/kafka.md 2.1, D1)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.kafka.model.auto_rebalance import ModeConfiguration, OnFailure, SettingsKind, SettingsReference
from plimsoll.kafka.model.requests import Mode
from plimsoll.kafka.wire.auto_rebalance_config import AutoRebalanceConfiguration, read_auto_rebalance_configuration
from plimsoll.objects.api.kafka import CruiseControlSpec

PATH = "spec.cruiseControl.autoRebalance"
ADD = {"mode": "add-brokers"}
REMOVE = {"mode": "remove-brokers"}


def read(value: Any) -> AutoRebalanceConfiguration:
    return read_auto_rebalance_configuration(CruiseControlSpec(auto_rebalance=value))


def read_one(**fields: Any) -> ModeConfiguration:
    configured = read([{**ADD, **fields}, REMOVE])
    assert [entry.mode for entry in configured.modes] == [Mode.ADD_BROKERS, Mode.REMOVE_BROKERS]
    assert configured.modes[1] == ModeConfiguration(mode=Mode.REMOVE_BROKERS)
    return configured.modes[0]


def test_without_the_field_the_feature_is_off():
    for cruise_control in (None, CruiseControlSpec()):
        assert read_auto_rebalance_configuration(cruise_control) == AutoRebalanceConfiguration()


def test_both_modes_without_settings():
    configured = read([REMOVE, ADD])
    assert configured.modes == (
        ModeConfiguration(mode=Mode.ADD_BROKERS),
        ModeConfiguration(mode=Mode.REMOVE_BROKERS),
    )
    assert not configured.warnings
    assert configured.is_complete


@pytest.mark.parametrize(
    ("fields", "settings"),
    [
        ({"settings": "s"}, SettingsReference(kind=SettingsKind.SETTINGS, name="s")),
        ({"settings": {"name": "s"}}, SettingsReference(kind=SettingsKind.SETTINGS, name="s")),
        ({"template": {"name": "t"}}, SettingsReference(kind=SettingsKind.TEMPLATE, name="t")),
    ],
)
def test_k11_settings_have_three_spellings(fields: dict[str, Any], settings: SettingsReference):
    assert read_one(**fields) == ModeConfiguration(mode=Mode.ADD_BROKERS, settings=settings)
    assert not read([{**ADD, **fields}]).warnings


def test_settings_win_over_a_template():
    configured = read([{**ADD, "settings": "s", "template": {"name": "t"}}])
    assert configured.modes[0].settings == SettingsReference(kind=SettingsKind.SETTINGS, name="s")
    assert configured.modes[0].problem is None
    assert [warning.code for warning in configured.warnings] == ["AutoRebalanceConfigAmbiguous"]


@pytest.mark.parametrize(
    ("fields", "field", "code"),
    [
        ({"settings": 3}, "settings", "AutoRebalanceSettingsInvalid"),
        ({"settings": ["s"]}, "settings", "AutoRebalanceSettingsInvalid"),
        ({"settings": {}}, "settings.name", "AutoRebalanceSettingsInvalid"),
        ({"settings": {"name": None}}, "settings.name", "AutoRebalanceSettingsInvalid"),
        ({"settings": ""}, "settings", "AutoRebalanceSettingsInvalid"),
        ({"settings": "No Name"}, "settings", "AutoRebalanceSettingsInvalid"),
        ({"settings": "x" * 1000}, "settings", "AutoRebalanceSettingsInvalid"),
        ({"template": "t"}, "template", "AutoRebalanceSettingsInvalid"),
        ({"template": {"name": 1}}, "template.name", "AutoRebalanceSettingsInvalid"),
        ({"goals": ["RackAwareGoal"]}, "goals", "AutoRebalanceConfigInvalid"),
        ({"settings": "s", "skipHardGoalCheck": True}, "skipHardGoalCheck", "AutoRebalanceConfigInvalid"),
    ],
)
def test_a_mistake_in_the_settings_holds_its_mode_back_and_not_the_other(fields: dict[str, Any], field: str, code: str):
    entry = read_one(**fields)
    assert entry.problem is not None
    assert (entry.problem.code, entry.problem.facts["field"]) == (code, f"{PATH}[0].{field}")
    assert len(entry.problem.message) < 300
    configured = read([{**ADD, **fields}, REMOVE])
    assert configured.warnings == (entry.problem,)
    assert configured.is_complete


@pytest.mark.parametrize(
    ("value", "field"),
    [
        ({"modes": ["add-brokers"]}, PATH),
        ("add-brokers", PATH),
        (True, PATH),
        (["add-brokers", REMOVE], f"{PATH}[0]"),
        ([None, REMOVE], f"{PATH}[0]"),
        ([{}, REMOVE], f"{PATH}[0].mode"),
        ([{"mode": "add-broker"}, REMOVE], f"{PATH}[0].mode"),
        ([{"mode": "full"}, REMOVE], f"{PATH}[0].mode"),
        ([{"mode": ["add-brokers"]}, REMOVE], f"{PATH}[0].mode"),
        ([REMOVE, *[{"mode": 1}] * 100_000], PATH),
    ],
)
def test_an_entry_without_a_known_mode_is_named_and_turns_nothing_off(value: Any, field: str):
    configured = read(value)
    assert not configured.is_complete
    assert field in [warning.facts["field"] for warning in configured.warnings]
    assert len(configured.warnings) <= 17
    if isinstance(value, list):
        assert configured.modes == (ModeConfiguration(mode=Mode.REMOVE_BROKERS),)


def test_an_empty_list_configures_nothing_and_says_so():
    configured = read([])
    assert (configured.modes, configured.is_complete) == ((), True)
    assert configured.warnings[0].facts["field"] == PATH


def test_a_mode_that_is_given_twice_counts_once_as_in_strimzi():
    configured = read([{**ADD, "settings": "first"}, {**ADD, "settings": "second"}])
    assert [entry.settings.name for entry in configured.modes if entry.settings] == ["first"]
    assert configured.warnings[0].facts["field"] == f"{PATH}[1].mode"


def test_on_failure():
    assert read_one(onFailure="Retry").on_failure is OnFailure.RETRY
    assert read_one(onFailure="Hold").on_failure is OnFailure.HOLD
    for wrong in ("retry", 3, ["Retry"]):
        configured = read([{**ADD, "onFailure": wrong}])
        assert configured.modes == (ModeConfiguration(mode=Mode.ADD_BROKERS),)
        assert configured.warnings[0].facts["field"] == f"{PATH}[0].onFailure"
    assert read([{**REMOVE, "onFailure": "Hold"}]).warnings[0].facts["field"] == f"{PATH}[0].onFailure"


def test_an_unknown_field_is_named_and_the_entry_holds():
    configured = read([{**ADD, "speed": 3}])
    assert configured.modes == (ModeConfiguration(mode=Mode.ADD_BROKERS),)
    assert configured.warnings[0].facts["field"] == f"{PATH}[0].speed"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.sampled_from(["add-brokers", "Retry"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["mode", "settings", "template", "name", "goals", "onFailure"]), inner)
    ),
    max_leaves=8,
)


@given(JSON)
def test_whatever_is_written_is_read_or_named(value: Any):
    configured = read(value)
    assert len({entry.mode for entry in configured.modes}) == len(configured.modes)
    assert all(warning.facts["field"].startswith(PATH) for warning in configured.warnings)
    assert configured.is_complete or configured.warnings
