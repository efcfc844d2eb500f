"""Options and the pause of a running autoscaler: judged before they are written, and never written over others'."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import yaml

from plimsoll.core.errors import GaveUp, InvalidInput
from plimsoll.nodes.config.configure import ConfigChange, ConfigDiff, configure, read_runtime_config
from plimsoll.nodes.config.flags import InvalidOptions
from plimsoll.objects.api.core import ConfigMap
from plimsoll.operator.pause import set_pause
from tests.kube.embedded_api import EmbeddedApi
from tests.nodes.config.fake_configmaps import followed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from plimsoll.kube.client import Client
    from tests.golden.reviewed_sentences import ReviewedSentences

MAPS = "/api/v1/namespaces/kube-system/configmaps"
URL = f"{MAPS}/plimsoll"


@pytest.fixture
def world() -> Iterator[EmbeddedApi]:
    with EmbeddedApi() as world:
        yield world


def written(world: EmbeddedApi) -> Any:
    return yaml.safe_load(world.ask("GET", URL)["data"]["nodes"])


def configured(world: EmbeddedApi, *, unset: tuple[str, ...] = (), **options: Any) -> ConfigDiff:
    given = {name.replace("_", "-"): value for name, value in options.items()}
    return world.do(configure(world.client, "kube-system", ConfigChange(options=given, unset=unset)))


def test_options_are_written_by_the_one_name_of_each_flag(world: EmbeddedApi):
    changed = configured(world, enable_node_autoprovisioning="true", max_memory="800", nodes=["0:3:a", "1:2:b"])
    wanted = {"max-memory": 800, "node-autoprovisioning": True, "nodes": ["0:3:a", "1:2:b"]}
    assert written(world) == wanted
    assert changed.list_differences() == [(name, None, wanted[name]) for name in sorted(wanted)]


def test_options_that_are_there_stay_and_those_unset_go(world: EmbeddedApi):
    configured(world, max_cpu="10", max_memory="20")
    changed = configured(world, unset=("max-memory",), max_cpu="30")
    assert written(world) == {"max-cpu": 30}
    assert changed.list_differences() == [("max-cpu", 10, 30), ("max-memory", 20, None)]


def test_other_keys_and_the_pause_stay(world: EmbeddedApi):
    world.do(set_pause(world.client, "kube-system", "maintenance"))
    world.do(world.client.merge_patch(ConfigMap, "plimsoll", {"data": {"kafka": "x: 1"}}, namespace="kube-system"))
    configured(world, max_cpu="10")
    assert world.ask("GET", URL)["data"]["kafka"] == "x: 1"
    assert world.do(read_runtime_config(world.client, "kube-system")).paused == "maintenance"


def test_options_are_judged_together_with_those_that_are_there(world: EmbeddedApi, reviewed: ReviewedSentences):
    configured(world, max_cpu="10")
    with pytest.raises(InvalidOptions) as raised:
        configured(world, min_cpu="20")
    reviewed(str(raised.value))
    assert written(world) == {"max-cpu": 10}


def test_options_are_judged_together_with_those_in_force(world: EmbeddedApi, reviewed: ReviewedSentences):
    wanted = ConfigChange(options={"cores-total": "0:50"}, in_force={"max-cpu": 1000})
    with pytest.raises(InvalidOptions) as raised:
        world.do(configure(world.client, "kube-system", wanted))
    reviewed(str(raised.value))
    assert world.server.ask("GET", URL).status == 404


@pytest.mark.parametrize("options", [{"no_such": "1"}, {"max_cpu": "many"}, {"cloud_provider": "clusterapi"}])
def test_what_cannot_be_is_refused(world: EmbeddedApi, options: dict[str, Any]):
    with pytest.raises(InvalidOptions):
        configured(world, **options)


def test_an_unknown_flag_cannot_be_unset(world: EmbeddedApi, reviewed: ReviewedSentences):
    with pytest.raises(InvalidInput) as raised:
        configured(world, unset=("no-such",))
    reviewed(str(raised.value))


def test_text_that_is_no_mapping_is_not_written_over(world: EmbeddedApi, reviewed: ReviewedSentences):
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "plimsoll"}, "data": {"nodes": "- a"}}
    world.made(MAPS, body)
    with pytest.raises(InvalidInput) as refused:
        configured(world, max_cpu="10")
    reviewed(str(refused.value))


def test_nothing_is_written_where_nothing_changes(world: EmbeddedApi):
    configured(world, max_cpu="10")
    before = world.ask("GET", URL)["metadata"]["resourceVersion"]
    assert configured(world, max_cpu="10").list_differences() == []
    assert world.ask("GET", URL)["metadata"]["resourceVersion"] == before


class InterferingClient:
    """A client between whose reading and writing others write, so often."""

    def __init__(self, world: EmbeddedApi, times: int) -> None:
        self._world = world
        self.times = times

    def __getattr__(self, name: str) -> Any:
        return getattr(self._world.client, name)

    async def get(self, *arguments: Any, **more: Any) -> Any:
        found = await self._world.client.get(*arguments, **more)
        if self.times:
            self.times -= 1
            patch = {"data": {"nodes": f"max-memory: {50 + self.times}"}}
            await self._world.client.merge_patch(*arguments, patch, **more)  # type: ignore[call-arg, arg-type]
        return found


def interfered(world: EmbeddedApi, times: int) -> Client:
    return InterferingClient(world, times)  # type: ignore[return-value] # it has what is asked for


def test_what_others_write_meanwhile_is_not_lost(world: EmbeddedApi):
    configured(world, max_cpu="10")
    world.do(configure(interfered(world, 2), "kube-system", ConfigChange(options={"max-cpu": 30})))
    assert written(world) == {"max-cpu": 30, "max-memory": 50}


def test_a_waiter_that_is_never_served_is_reported(world: EmbeddedApi, reviewed: ReviewedSentences):
    configured(world, max_cpu="10")
    with pytest.raises(GaveUp) as refused:
        world.do(configure(interfered(world, 100), "kube-system", ConfigChange(options={"max-cpu": 30})))
    reviewed(str(refused.value))


# ---- what the running program makes of it


def test_what_is_configured_goes_before_flags_of_any_spelling(world: EmbeddedApi):
    options = followed(world, {"node-autoprovisioning": "true", "max-cpu": "9"})
    body = {"nodes": "enable-node-autoprovisioning: false\nmax-memory: 7\n"}
    world.made(MAPS, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "plimsoll"}, "data": body})
    world.run.advance_by(5)
    wishes = options.get_current()
    assert (wishes.policy.nap.enabled, wishes.policy.limits.max_cpu, wishes.policy.limits.max_memory) == (False, 9, 7)
    assert wishes.problems == ()


@pytest.mark.parametrize("text", ["- a", "{", "max-cpu: many"])
def test_options_that_cannot_be_read_change_nothing_and_are_reported(world: EmbeddedApi, text: str):
    options = followed(world, {"max-cpu": "9"})
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "plimsoll"}, "data": {"nodes": text}}
    world.made(MAPS, body)
    world.run.advance_by(5)
    wishes = options.get_current()
    assert wishes.policy.limits.max_cpu == 9
    assert "ConfigMap kube-system/plimsoll" in wishes.problems[0]
