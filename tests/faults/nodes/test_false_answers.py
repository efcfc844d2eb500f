"""Whatever the API server and the provider answer, no live instance is deleted and no pod is evicted because of it.

`make test` runs a few cells of the grid, `make test-e2e` a part of it, `make test-long` all of it. A summary says how
many cells were run.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import msgspec
import pytest

from plimsoll.kube.informer.reflector.list_verifier import ListVerifier
from plimsoll.local.apiserver.storage.objects import Key
from plimsoll.nodes.actuation.deletion_guard import DeletionGuard
from plimsoll.nodes.actuation.node_pods import ListedPods
from plimsoll.nodes.loop_timer import MOST_AT_ONCE
from plimsoll.objects.api.nodes import Node
from tests.effort import share_of
from tests.faults.faulty_transport import Read
from tests.faults.lies import Lie
from tests.faults.nodes.audited_clusters import AuditedCluster, owned
from tests.faults.nodes.grid import FAULTS, READS, Cell, list_cells, run_cell

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tests.nodes.autoscaler.loop_scenarios import Json

CHOSEN = 8
HALF_OF_NODES = Cell(Read("list", "nodes"), Lie.HALF)
HALF_OF_PODS = Cell(Read("list", "pods"), Lie.HALF)
NO_PODS = Cell(Read("list", "pods"), Lie.EMPTY)
NO_INSTANCES = Cell(Read("provider", "nodes"), Lie.EMPTY)
PAST = "0000-01-01T00:00:00Z"


def choose_cells(cells: Iterable[Cell], count: int) -> list[Cell]:
    """Some of the cells, the same in each run."""
    return sorted(cells, key=lambda cell: hashlib.sha256(str(cell).encode()).digest())[:count]


def check(cells: Sequence[Cell]) -> None:
    found = {str(cell): run_cell(cell) for cell in cells}
    wrongful = {cell: verdict for cell, verdict in found.items() if verdict.wrongful or verdict.lost_pods}
    struck = sum(verdict.struck > 0 for verdict in found.values())
    reported = (
        f"{len(found)} cells, {struck} with falsified answers, {len(wrongful)} with wrongful deletions or evictions"
    )
    print(reported)  # noqa: T201 -- `pytest -s` shows how many cells were run
    assert wrongful == {}


def test_without_faults_only_the_empty_node_is_removed():
    with AuditedCluster() as cluster:
        cluster.minutes(2)
        cluster.take({"apply": [owned("more", 2, cpu="2600m")]})
        cluster.minutes(3)
        outcome = cluster.outcome()
        assert cluster.audit.wrongful == []
        targets = {name: group["target"] for name, group in outcome["nodeGroups"].items()}
        assert targets == {"g": 6, "bare": 2, "spare": 0}
        assert None not in outcome["pods"].values()
        assert cluster.faults.seen - {*READS} == set(), "the grid has every read"


@pytest.mark.parametrize("cell", choose_cells(list_cells(), CHOSEN), ids=str)
def test_a_chosen_cell(cell: Cell):
    check([cell])


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS)
def test_every_read_with(fault: Lie):
    check(choose_cells([Cell(read, fault) for read in READS], share_of(len(READS))))


# ---- the two cases that were seen


def spoil_taint(body: Json) -> None:
    body["spec"]["taints"] = [{"key": "odd", "effect": "PreferNoSchedule", "timeAdded": PAST}]


def make_undecodable(body: Json) -> None:
    body["spec"]["taints"] = "not a list"


@pytest.mark.parametrize("spoil", [spoil_taint, make_undecodable])
def test_a_node_with_an_odd_field_keeps_its_instance_and_its_pods(spoil: object):
    with AuditedCluster(**{"scale-down-enabled": False}) as cluster:
        cluster.minutes(0.75)
        before = cluster.placed_pods()
        for name in ("g-0", "g-1"):
            cluster.change_body(Key("nodes", "", name), spoil)  # type: ignore[arg-type]
        cluster.minutes(5)
        assert cluster.audit.wrongful == []
        assert cluster.placed_pods() == before
        assert {"g-0", "g-1"} <= set(cluster.outcome()["nodes"])


@pytest.mark.parametrize("quantity", ["abc", "1e400", "-1", "9" * 60, [1], True])
def test_a_node_with_an_odd_quantity_is_kept_takes_no_pods_and_the_quantity_is_named(quantity: object):
    """A huge amount would make a full node look empty; a negative one, an empty node full."""

    def spoil(body: Json) -> None:
        for name in ("capacity", "allocatable"):
            body["status"][name]["cpu"] = quantity

    with AuditedCluster() as cluster:
        cluster.minutes(0.75)
        before = cluster.placed_pods()
        for name in ("g-0", "spare-0"):
            cluster.change_body(Key("nodes", "", name), spoil)
        cluster.minutes(3)
        assert cluster.audit.requests == 0
        assert cluster.placed_pods() == before
        named = cluster.find_reasons("node/g-0")
        assert any("status.allocatable[cpu]: " in reason and "counts as full" in reason for reason in named)
        assert not any("cannot judge" in line for line in cluster.summaries()), "the rest of the node is read"


def test_a_node_with_numbers_out_of_range_is_read_without_them_and_they_are_named():
    """A bare JSON number that no float holds; the empty node is still one that may be removed."""
    number = msgspec.Raw(b"1e400")

    def spoil(body: Json) -> None:
        body["metadata"].setdefault("annotations", {})["example.com/odd"] = number
        body["metadata"]["generation"] = number

    with AuditedCluster() as cluster:
        cluster.minutes(0.75)
        before = cluster.placed_pods()
        for name in ("g-0", "spare-0"):
            cluster.change_body(Key("nodes", "", name), spoil)
        cluster.minutes(0.5)
        named = cluster.find_reasons("node/g-0")
        for field in ("metadata.annotations[example.com/odd]", "metadata.generation"):
            assert any(f"{field}: 1e400 is out of range; it is unknown" in reason for reason in named), named
        cluster.minutes(1)
        assert cluster.audit.wrongful == []
        nodes = {node.metadata.name for node in cluster.run_now(cluster.client.list(Node)).items}
        assert "g-0" in nodes
        assert cluster.placed_pods() == before
        assert any("not unneeded for" in reason for reason in cluster.find_reasons("node/spare-0")), "it is understood"


def list_half_of_the_nodes_from_the_start() -> AuditedCluster:
    cluster = AuditedCluster()
    cluster.faults.start(*HALF_OF_NODES)
    return cluster


def test_instances_whose_nodes_were_never_listed_are_kept():
    with list_half_of_the_nodes_from_the_start() as cluster:
        cluster.minutes(5)
        assert cluster.audit.wrongful == []
        held = [line for line in cluster.summaries() if "exists and was not drained" in line]
        assert held, "the loop says why it keeps them"
        assert cluster.metric("held_back_deletions_total") > 0
        assert any(event["reason"] == "DeletionHeldBack" for event in cluster.events())


# ---- without the guards, cells fail


async def find_nothing(*_args: object, **_more: object) -> dict[str, object]:
    return {}


async def contradict_nothing(*_args: object, **_more: object) -> str:
    return ""


async def check_nothing(*_args: object, **_more: object) -> None:
    return None


def test_without_the_guard_instances_of_unlisted_nodes_are_deleted(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(DeletionGuard, "find_in_use", find_nothing)
    with list_half_of_the_nodes_from_the_start() as cluster:
        cluster.minutes(5)
        assert any("was deleted with" in wrong for wrong in cluster.audit.wrongful)


def test_without_a_second_read_nodes_are_deleted_with_pods_that_a_list_misses(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(ListVerifier, "find_contradiction", contradict_nothing)
    monkeypatch.setattr(ListedPods, "_check", check_nothing)
    verdict = run_cell(NO_PODS)
    assert any("was deleted with" in wrong for wrong in verdict.wrongful)
    assert verdict.lost_pods


def test_scale_up_goes_on_while_a_list_is_not_believed():
    with AuditedCluster() as cluster:
        cluster.minutes(0.75)
        cluster.faults.start(*HALF_OF_PODS)
        cluster.minutes(0.5)
        cluster.take({"apply": [owned("more", 2, cpu="2600m")]})
        cluster.minutes(3)
        assert cluster.outcome()["nodeGroups"]["g"]["target"] == 6
        assert cluster.outcome()["nodeGroups"]["spare"]["target"] == 1, "nothing shrinks meanwhile"
        assert any("nothing is scaled down, a list of pods missed" in line for line in cluster.summaries())
        cluster.faults.stop()
        cluster.minutes(5)
        assert cluster.outcome()["nodeGroups"]["spare"]["target"] == 0, "the next list is believed"


def test_a_provider_that_lists_no_instances_is_not_believed():
    with AuditedCluster() as cluster:
        cluster.minutes(0.75)
        cluster.faults.start(*NO_INSTANCES)
        cluster.minutes(4)
        assert cluster.audit.requests == 0
        assert any("the provider lists 7 instances less than before" in line for line in cluster.summaries())


def test_a_clock_that_jumps_deletes_nothing():
    assert run_cell(Cell(Read("list", "nodes"), Lie.CLOCK_AHEAD)).wrongful == ()


def test_a_provider_with_wrong_sizes_is_not_called_without_a_pause():
    with AuditedCluster() as cluster:
        cluster.minutes(0.75)
        cluster.faults.start(Read("provider", "target_size"), Lie.HALF)
        cluster.take({"apply": [owned("more", 2, cpu="2600m")]})
        cluster.minutes(1)
        assert cluster.audit.wrongful == []
        assert len(cluster.summaries()) < 20 * MOST_AT_ONCE, "it ends at all"
