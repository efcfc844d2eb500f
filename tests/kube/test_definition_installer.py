"""Definitions are installed and upgraded, never deleted, and never replaced by older or foreign ones."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import pytest

from plimsoll.kube.definition_installer import (
    INSTALLED_BY,
    Change,
    DefinitionInstaller,
    InstalledDefinition,
    is_established,
    parse_version,
)
from plimsoll.objects.api.apiextensions import CustomResourceDefinition
from plimsoll.objects.validation import list_shipped_definitions
from tests.kube.embedded_api import EmbeddedApi
from tests.local.apiserver.builders import definition

if TYPE_CHECKING:
    from collections.abc import Iterator

WIDGETS = "widgets.ex.com"


@pytest.fixture
def world() -> Iterator[EmbeddedApi]:
    with EmbeddedApi() as world:
        yield world


def install(
    world: EmbeddedApi, *bodies: dict[str, Any], version: str = "1.2.0", is_adopting: bool = False
) -> list[InstalledDefinition]:
    installer = DefinitionInstaller(world.client, version=version, clock=world.run.clock, is_adopting=is_adopting)
    return list(world.do(installer.install(bodies)))


def find(world: EmbeddedApi, name: str = WIDGETS) -> CustomResourceDefinition:
    return world.do(world.client.get(CustomResourceDefinition, name))


def with_short_name(body: dict[str, Any], name: str) -> dict[str, Any]:
    changed = copy.deepcopy(body)
    changed["spec"]["names"]["shortNames"] = [name]
    return changed


def test_all_definitions_that_the_program_carries_are_installed_and_served(world: EmbeddedApi):
    bodies = [shipped.body for shipped in list_shipped_definitions()]
    results = install(world, *bodies)
    assert {result.change for result in results} == {Change.INSTALLED}
    assert {result.name for result in results} == {body["metadata"]["name"] for body in bodies}
    assert all(is_established(find(world, result.name)) for result in results)
    assert {result.change for result in install(world, *bodies)} == {Change.UNCHANGED}


def test_a_newer_program_upgrades_and_an_older_one_keeps(world: EmbeddedApi):
    install(world, definition(), version="1.2.0")
    [upgraded] = install(world, with_short_name(definition(), "wd"), version="1.10.0")
    assert upgraded.change is Change.UPGRADED
    [kept] = install(world, definition(), version="1.9.9")
    assert (kept.change, kept.details) == (Change.KEPT_NEWER, "1.10.0")
    assert find(world).spec.names.short_names == ("wd",)


def test_a_definition_of_another_project_is_replaced_only_on_request(world: EmbeddedApi):
    world.server.made("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition())
    [kept] = install(world, with_short_name(definition(), "wd"))
    assert kept.change is Change.KEPT_FOREIGN
    assert INSTALLED_BY not in find(world).metadata.annotations
    [adopted] = install(world, with_short_name(definition(), "wd"), is_adopting=True)
    assert adopted.change is Change.UPGRADED
    assert find(world).spec.names.short_names == ("wd",)


def test_a_definition_of_our_own_groups_is_upgraded_however_it_was_installed(world: EmbeddedApi):
    [ours] = [
        shipped.body for shipped in list_shipped_definitions() if shipped.body["metadata"]["name"].startswith("clouds.")
    ]
    world.server.made("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", with_short_name(ours, "old"))
    assert [result.change for result in install(world, ours)] == [Change.UPGRADED]


def test_one_refused_definition_does_not_stop_the_others(world: EmbeddedApi):
    refused = definition()
    refused["metadata"]["name"] = "others.ex.com"
    first, second = install(world, refused, definition())
    assert (first.change, second.change) == (Change.FAILED, Change.INSTALLED)
    assert "others.ex.com" in first.details


@pytest.mark.parametrize(
    ("older", "newer"), [("0.9.0", "0.10.0"), ("", "0.0.1"), ("1.2.3", "1.2.4-rc1"), ("soon", "0.1.0")]
)
def test_versions_are_compared_by_their_numbers(older: str, newer: str):
    assert parse_version(older) < parse_version(newer)
