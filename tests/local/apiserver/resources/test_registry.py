"""Whatever definitions say, a built-in resource stays what it is."""

from __future__ import annotations

import pytest

from plimsoll.local.apiserver.resources.builtin import list_builtin_resources
from plimsoll.local.apiserver.resources.registry import ResourceRegistry, ServedResource

BUILTIN = tuple(list_builtin_resources())


def custom(group: str, plural: str, *, version: str = "v1", stored_as: str = "") -> ServedResource:
    return ServedResource(
        group=group,
        version=version,
        kind="Custom",
        plural=plural,
        singular="custom",
        namespaced=True,
        stored_as=stored_as or f"{group}/{plural}",
        storage_version=f"{group}/{version}",
        list_kind="CustomList",
        definition={},
    )


def registry_with(*resources: ServedResource) -> ResourceRegistry:
    registry = ResourceRegistry(BUILTIN)
    registry.serve("x", resources)
    return registry


def test_a_custom_resource_is_served_until_its_definition_ends():
    registry = registry_with(custom("example.com", "foos"))
    assert registry.find("example.com", "v1", "foos") == custom("example.com", "foos")
    registry.serve("x", ())
    assert registry.find("example.com", "v1", "foos") is None


@pytest.mark.parametrize("builtin", BUILTIN, ids=lambda item: f"{item.full_name}/{item.version}")
@pytest.mark.parametrize("version", ["v1", "v2", "v1alpha1"])
def test_a_definition_with_the_name_of_a_builtin_resource_serves_nothing(builtin: ServedResource, version: str):
    registry = registry_with(custom(builtin.group, builtin.plural, version=version))
    assert tuple(registry) == BUILTIN
    assert registry.find(builtin.group, builtin.version, builtin.plural) == builtin


def test_no_custom_resource_lies_among_the_objects_of_a_builtin_one():
    assert tuple(registry_with(custom("example.com", "foos", stored_as="secrets"))) == BUILTIN


def test_a_builtin_group_may_have_custom_resources_of_other_names():
    registry = registry_with(custom("apps", "foos"), custom("apps", "deployments"))
    assert tuple(item.plural for item in registry if item.is_custom) == ("foos",)


def test_a_definition_that_came_to_clash_ends_what_it_served():
    registry = registry_with(custom("apps", "foos"))
    registry.serve("x", [custom("apps", "deployments")])
    assert tuple(registry) == BUILTIN


def test_every_change_is_a_new_generation():
    registry = ResourceRegistry(BUILTIN)
    before = registry.generation
    registry.serve("x", [custom("example.com", "foos")])
    assert registry.generation > before
