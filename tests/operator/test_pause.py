"""Pause and dry run: what keeps a controller from acting."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from plimsoll.kube.errors import NotFound
from plimsoll.operator.pause import PAUSED_ANNOTATION, ActionGuard, read_pause, read_pause_annotation, set_pause
from tests.kube.embedded_api import EmbeddedApi

if TYPE_CHECKING:
    from collections.abc import Iterator

URL = "/api/v1/namespaces/kube-system/configmaps/plimsoll"


@pytest.fixture
def world() -> Iterator[EmbeddedApi]:
    with EmbeddedApi() as world:
        yield world


def test_actions_are_allowed_without_a_dry_run_or_a_pause():
    assert ActionGuard().reason is None


def test_a_dry_run_and_a_pause_give_their_reason():
    dry_run = ActionGuard(dry_run=True, paused="maintenance").reason
    paused = ActionGuard(paused="maintenance").reason
    plain = ActionGuard(paused="true").reason
    assert dry_run is not None
    assert dry_run.code == "DryRun"
    assert paused is not None
    assert (paused.code, paused.message) == ("Paused", "paused: maintenance")
    assert plain is not None
    assert plain.message == "paused"


@pytest.mark.parametrize(
    ("value", "pause"),
    [("", ""), (" ", ""), ("false", ""), ("true", "true"), (" Ada, until 14:00", "Ada, until 14:00")],
)
def test_the_value_of_the_annotation_is_the_reason(value: str, pause: str):
    assert read_pause_annotation({PAUSED_ANNOTATION: value}) == pause


def test_a_pause_is_made_and_ended(world: EmbeddedApi):
    assert world.do(set_pause(world.client, "kube-system", "")) == ""
    assert world.ask("GET", URL)["metadata"]["annotations"] == {"plimsoll.io/paused": "true"}
    assert world.do(read_pause(world.client, "kube-system")) == "true"
    assert world.do(set_pause(world.client, "kube-system", None)) == "true"
    assert world.do(read_pause(world.client, "kube-system")) == ""


def test_ending_a_pause_that_is_not_there_makes_nothing(world: EmbeddedApi):
    world.do(set_pause(world.client, "kube-system", None))
    assert world.server.ask("GET", URL).status == 404


def test_a_missing_namespace_is_an_error(world: EmbeddedApi):
    with pytest.raises(NotFound):
        world.do(set_pause(world.client, "nowhere", "x"))
