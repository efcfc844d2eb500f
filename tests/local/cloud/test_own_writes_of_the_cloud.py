"""What the cloud wrote itself is no news to it when its informer tells of it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from plimsoll.kube.informer.own_writes import MutationCache
from plimsoll.objects.api.meta import ObjectMeta
from plimsoll.objects.api.simulated_cloud import Machine


def machine(version: str) -> Machine:
    return Machine(metadata=ObjectMeta(name="m", uid="m", resource_version=version))


def machines() -> MutationCache[Machine]:
    informer: Any = SimpleNamespace(position="1", cache=SimpleNamespace(list=lambda: ()))
    return MutationCache(informer)


def test_a_write_comes_back_as_an_echo_once():
    fresh = machines()
    fresh.wrote(machine("7"))
    assert fresh.list() == (machine("7"),)
    assert fresh.is_echo(machine("7"))
    assert not fresh.is_echo(machine("7"))


def test_what_somebody_else_wrote_is_news_also_over_a_write_of_ours():
    fresh = machines()
    assert not fresh.is_echo(machine("6"))
    fresh.wrote(machine("7"))
    assert not fresh.is_echo(machine("8"))


def test_of_several_writes_the_last_is_an_echo_and_one_that_was_removed_is_none():
    fresh = machines()
    fresh.wrote(machine("7"))
    fresh.wrote(machine("8"))
    assert [fresh.is_echo(machine(version)) for version in "78"] == [False, True]
    fresh.wrote(machine("9"))
    fresh.removed(machine("9"))
    assert not fresh.is_echo(machine("9"))
