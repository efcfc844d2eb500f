"""Installs and upgrades CustomResourceDefinitions. It never deletes one: a definition takes all its objects with it.

A definition that a newer program installed stays as it is, so that a rollback of the program loses no field of stored
objects. A definition that another project installed stays too, unless its adoption is requested.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, Final

from plimsoll.kube.errors import ApiCallFailed, NotFound
from plimsoll.objects.api.apiextensions import CustomResourceDefinition

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from plimsoll.core.clock import Clock
    from plimsoll.kube.client import Client

INSTALLED_BY: Final = "plimsoll.io/definition-installed-by"
"""Annotation with the version of the program that wrote the definition last."""
FIELD_MANAGER: Final = "plimsoll-definitions"
OUR_GROUP: Final = re.compile(r"(?:^|\.)plimsoll\.io$")
_TRIES = 30
_PAUSE_S = 1.0


class Change(Enum):
    """What happened to a definition."""

    INSTALLED = "installed"
    UPGRADED = "upgraded"
    UNCHANGED = "unchanged"
    KEPT_NEWER = "kept: a newer program installed it"
    KEPT_FOREIGN = "kept: another project installed it"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class InstalledDefinition:
    """The result for one definition; `details`: the version that installed it, or the error."""

    name: str
    change: Change
    details: str = ""


class DefinitionInstaller:
    """Installs definitions into one cluster, as one version of the program."""

    def __init__(self, client: Client, *, version: str, clock: Clock, is_adopting: bool = False) -> None:
        self._client = client
        self._version = version
        self._clock = clock
        self._is_adopting = is_adopting

    async def install(self, definitions: Iterable[Mapping[str, Any]]) -> tuple[InstalledDefinition, ...]:
        """Install or upgrade each, and wait until the server serves those that changed."""
        results = [await self._install_definition(definition) for definition in definitions]
        changed = {result.name for result in results if result.change in {Change.INSTALLED, Change.UPGRADED}}
        not_served = await self._wait_until_served(changed)
        return tuple(
            InstalledDefinition(name=result.name, change=Change.FAILED, details="the server does not serve it yet")
            if result.name in not_served
            else result
            for result in results
        )

    async def _install_definition(self, definition: Mapping[str, Any]) -> InstalledDefinition:
        name = str(definition["metadata"]["name"])
        try:
            stored = await self._find_definition(name)
            kept = None if stored is None else self._find_reason_to_keep(stored)
            if kept is not None:
                return kept
            applied = await self._apply(name, definition)
        except ApiCallFailed as error:
            return InstalledDefinition(name=name, change=Change.FAILED, details=str(error))
        if stored is None:
            return InstalledDefinition(name=name, change=Change.INSTALLED, details=self._version)
        is_same = stored.metadata.resource_version == applied.metadata.resource_version
        change = Change.UNCHANGED if is_same else Change.UPGRADED
        return InstalledDefinition(name=name, change=change, details=self._version)

    async def _find_definition(self, name: str) -> CustomResourceDefinition | None:
        try:
            return await self._client.get(CustomResourceDefinition, name)
        except NotFound:
            return None

    def _find_reason_to_keep(self, stored: CustomResourceDefinition) -> InstalledDefinition | None:
        name, written_by = stored.metadata.name, stored.metadata.annotations.get(INSTALLED_BY, "")
        if parse_version(written_by) > parse_version(self._version):
            return InstalledDefinition(name=name, change=Change.KEPT_NEWER, details=written_by)
        if not written_by and not self._is_adopting and not OUR_GROUP.search(stored.spec.group):
            return InstalledDefinition(name=name, change=Change.KEPT_FOREIGN)
        return None

    async def _apply(self, name: str, definition: Mapping[str, Any]) -> CustomResourceDefinition:
        annotations = {**definition["metadata"].get("annotations", {}), INSTALLED_BY: self._version}
        body = {**definition, "metadata": {**definition["metadata"], "annotations": annotations}}
        return await self._client.apply(CustomResourceDefinition, name, body, field_manager=FIELD_MANAGER, force=True)

    async def _wait_until_served(self, names: Collection[str]) -> set[str]:
        waiting = set(names)
        for _ in range(_TRIES):
            for name in sorted(waiting):
                found = await self._find_definition(name)
                if found is not None and is_established(found):
                    waiting.remove(name)
            if not waiting:
                break
            await self._clock.sleep(_PAUSE_S)
        return waiting


def is_established(definition: CustomResourceDefinition) -> bool:
    """Whether the server serves the objects of a definition."""
    return any(
        condition.type == "Established" and condition.status == "True" for condition in definition.status.conditions
    )


def parse_version(text: str) -> tuple[int, ...]:
    """The numbers of a version: 0.10.2 is newer than 0.9.0. Text that is no version is older than all."""
    found = re.match(r"(\d{1,9})\.(\d{1,9})\.(\d{1,9})", text)
    return () if found is None else tuple(int(number) for number in found.groups())
