"""The faulty provider stands before every call that it falsifies or audits: a renamed port must not pass it by."""

from __future__ import annotations

import inspect

import pytest

from plimsoll.nodes.providers.ports import Group, NodeOwners, Provider
from tests.faults.faulty_provider import FaultyGroup, FaultyProvider

OWN = {"falsify", "falsify_size", "has_undecodable"}


@pytest.mark.parametrize(
    ("faulty", "ports"), [(FaultyProvider, (Provider, NodeOwners)), (FaultyGroup, (Group,))], ids=["provider", "group"]
)
def test_every_method_is_one_of_the_port(faulty: type, ports: tuple[type, ...]):
    methods = {name for name, _ in inspect.getmembers(faulty, inspect.isfunction) if not name.startswith("_")}
    assert methods - OWN
    assert not [name for name in methods - OWN if not any(hasattr(port, name) for port in ports)]
