"""Reads `spec.cruiseControl.autoRebalance` (docs/design/kafka.md sections 2.1 and D1).

Users write it, and the schema in force may accept more than we understand. Every mistake gets a reason with the path of
the field. A mistake that changes what would run holds its mode back (`ModeConfiguration.problem`): running with other
settings than the user meant is worse than waiting. The other mode is not affected.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from plimsoll.core.names import find_subdomain_problems
from plimsoll.core.plans import Reason
from plimsoll.core.value_parsing import quote
from plimsoll.core.values import Value
from plimsoll.kafka.model.auto_rebalance import ModeConfiguration, OnFailure, SettingsKind, SettingsReference
from plimsoll.kafka.model.requests import Mode

if TYPE_CHECKING:
    from plimsoll.objects.api.kafka import CruiseControlSpec

PATH: Final = "spec.cruiseControl.autoRebalance"
_MODES: Final = {mode.value: mode for mode in (Mode.ADD_BROKERS, Mode.REMOVE_BROKERS)}
_FIELDS: Final = frozenset({"mode", "settings", "template", "onFailure"})
# The fields of a KafkaRebalance. In an entry they would be ignored, and the rebalance would run without them.
_INLINE: Final = frozenset(
    {
        *("brokers", "goals", "skipHardGoalCheck", "rebalanceDisk", "excludedTopics", "replicationThrottle"),
        *("concurrentPartitionMovementsPerBroker", "concurrentIntraBrokerPartitionMovements"),
        *("concurrentLeaderMovements", "replicaMovementStrategies", "moveReplicasOffVolumes"),
    }
)
_MOST_ENTRIES: Final = 16
"""There are two modes. Of a longer list only the beginning is read, which bounds the number of warnings."""


class AutoRebalanceConfiguration(Value):
    """The configured modes, and a warning for every mistake."""

    modes: tuple[ModeConfiguration, ...] = ()
    warnings: tuple[Reason, ...] = ()
    is_complete: bool = True
    """Every entry could be read. Otherwise a mode that is not there may be one that the user meant."""

    def has_mode(self, mode: Mode) -> bool:
        return any(configured.mode is mode for configured in self.modes)


def read_auto_rebalance_configuration(cruise_control: CruiseControlSpec | None) -> AutoRebalanceConfiguration:
    """Without `cruiseControl` or `autoRebalance` the feature is off."""
    if cruise_control is None or cruise_control.auto_rebalance is None:
        return AutoRebalanceConfiguration()
    value = cruise_control.auto_rebalance
    if not isinstance(value, list | tuple):
        hint = "write a list, for example [{mode: add-brokers}, {mode: remove-brokers}]"
        return AutoRebalanceConfiguration(warnings=(_report(PATH, f"is not a list; {hint}"),), is_complete=False)
    if not value:
        return AutoRebalanceConfiguration(warnings=(_report(PATH, "has no entry; name at least one mode"),))
    reader = _Reader()
    for index, entry in enumerate(value[:_MOST_ENTRIES]):
        reader.read_entry(entry, f"{PATH}[{index}]")
    if len(value) > _MOST_ENTRIES:
        reader.refuse(PATH, f"has {len(value)} entries; only the first {_MOST_ENTRIES} are read")
    modes = sorted(reader.modes.values(), key=lambda configured: configured.mode)
    return AutoRebalanceConfiguration(
        modes=tuple(modes), warnings=tuple(reader.warnings), is_complete=reader.is_complete
    )


class _Reader:
    """Collects modes and warnings, entry by entry."""

    def __init__(self) -> None:
        self.modes: dict[Mode, ModeConfiguration] = {}
        self.warnings: list[Reason] = []
        self.is_complete = True

    def refuse(self, path: str, problem: str) -> None:
        """An entry whose mode is not known: no mode is turned off because of it."""
        self.is_complete = False
        self.warnings.append(_report(path, problem))

    def read_entry(self, entry: Any, path: str) -> None:
        if not isinstance(entry, dict):
            self.refuse(path, f"is {quote(entry)}; write an object with a mode")
            return
        written = entry.get("mode")
        mode = _MODES.get(written) if isinstance(written, str) else None
        if mode is None:
            problem = "is missing" if written is None else f"{quote(written)} is not a mode"
            self.refuse(f"{path}.mode", f"{problem}; use add-brokers or remove-brokers")
            return
        if mode in self.modes:
            self.warnings.append(_report(f"{path}.mode", f"{mode} is configured twice; the first entry holds"))
            return
        self.modes[mode] = self._read_mode(entry, mode, path)

    def _read_mode(self, entry: dict[str, Any], mode: Mode, path: str) -> ModeConfiguration:
        inline = sorted(str(field) for field in entry if field in _INLINE)
        problem: Reason | None = None
        if inline:
            advice = "settings belong into a KafkaRebalanceSettings that `settings` names"
            problem = _report(f"{path}.{inline[0]}", f"is not possible here; {advice}")
        for field in sorted(str(field) for field in entry if field not in _FIELDS and field not in _INLINE)[:1]:
            self.warnings.append(_report(f"{path}.{field[:60]}", "is not a field of an entry, and is ignored"))
        settings: SettingsReference | None = None
        if problem is None:
            settings, problem = self._read_settings(entry, path)
        if problem is not None:
            self.warnings.append(problem)
        on_failure = self._read_on_failure(entry, mode, path)
        return ModeConfiguration(mode=mode, settings=settings, on_failure=on_failure, problem=problem)

    def _read_settings(self, entry: dict[str, Any], path: str) -> tuple[SettingsReference | None, Reason | None]:
        """`settings` wins over `template`."""
        settings, template = entry.get("settings"), entry.get("template")
        if settings is not None:
            if template is not None:
                self.warnings.append(
                    Reason(
                        code="AutoRebalanceConfigAmbiguous",
                        message=f"{path} has both settings and template; settings holds, template is ignored",
                        facts={"field": f"{path}.template"},
                    )
                )
            return _read_reference(SettingsKind.SETTINGS, settings, f"{path}.settings")
        if template is not None:
            return _read_reference(SettingsKind.TEMPLATE, template, f"{path}.template")
        return None, None

    def _read_on_failure(self, entry: dict[str, Any], mode: Mode, path: str) -> OnFailure:
        written = entry.get("onFailure")
        if written is None:
            return OnFailure.HOLD
        path = f"{path}.onFailure"
        if not isinstance(written, str) or written not in set(OnFailure):
            self.warnings.append(_report(path, f"{quote(written)} is not known; Hold is used. Write Hold or Retry"))
            return OnFailure.HOLD
        if mode is Mode.REMOVE_BROKERS and written == OnFailure.HOLD:
            self.warnings.append(_report(path, "Hold has no effect on remove-brokers: a failed removal is tried again"))
        return OnFailure(written)


def _read_reference(kind: SettingsKind, value: Any, path: str) -> tuple[SettingsReference | None, Reason | None]:
    """A name, or an object with a name. A template is only given as an object, as Strimzi has it."""
    name = value
    if isinstance(value, dict):
        name, path = value.get("name"), f"{path}.name"
    elif kind is SettingsKind.TEMPLATE:
        name = None
    if not isinstance(name, str):
        form = "{name: NAME}" if kind is SettingsKind.TEMPLATE else "NAME or {name: NAME}"
        return None, _refuse_settings(path, f"is {quote(value)}; write {form}")
    if find_subdomain_problems(name):
        return None, _refuse_settings(path, f"{quote(name)} is not a name of an object")
    return SettingsReference(kind=kind, name=name), None


def _report(path: str, problem: str) -> Reason:
    return Reason(code="AutoRebalanceConfigInvalid", message=f"{path}: {problem}", facts={"field": path})


def _refuse_settings(path: str, problem: str) -> Reason:
    return Reason(code="AutoRebalanceSettingsInvalid", message=f"{path}: {problem}", facts={"field": path})
