"""Extreme values in every field that the TiDB controllers read: one object fails alone, and says which field it is."""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING, Any

import pytest
from structlog.testing import capture_logs

from plimsoll.core.plans import Ref
from plimsoll.journal.entries import Query
from tests.effort import share_of
from tests.tidb.autoscaled_clusters import AUTO, TIDB, AutoscaledCluster, EmbeddedServer, group
from tests.tidb.field_table import KINDS, PD_STORE, SAMPLES, build_patch
from tests.tidb.planner.fake_monitoring import MonitoredCluster
from tests.tidb.planning.planner.builders import SMALL, strategy

if TYPE_CHECKING:
    from collections.abc import Iterator

CASES = [
    (plural, path, value) for plural, fields in KINDS.items() for path, values in fields.items() for value in values
]
MERGE = "application/merge-patch+json"


@pytest.fixture(scope="module")
def world() -> Iterator[AutoscaledCluster]:
    with AutoscaledCluster(EmbeddedServer, drains_actively=True) as made:
        made.autoscaler().cluster().planner.says(group(1))
        made.once()
        made.once(30)
        yield made


def test_an_extreme_field_fails_alone(world: AutoscaledCluster) -> None:
    """Nothing crashes, and the bystander is reconciled, whatever the object says."""
    assert isinstance(world.server, EmbeddedServer)
    server = world.server.world
    world.server.make(
        "tidbclusterautoscalers",
        {"metadata": {"name": "bystander"}, "spec": {"cluster": {"name": "nowhere"}, "tikv": {"rules": {}}}},
    )
    chosen = random.Random("tidb fields").sample(CASES, share_of(len(CASES)))
    accepted, crashes = 0, []
    for number, (plural, path, value) in enumerate(chosen):
        names = ["as1"] if plural == "tidbclusterautoscalers" else ["db", AUTO]
        name = names[number % len(names)]
        place = f"{TIDB}/namespaces/prod/{plural}/{name}"
        sub = "/status" if plural == "tidbclusterautoscalers" and path.startswith("status.") else ""
        before = world.server.get(plural, name)
        reply = server.ask("PATCH", place + sub, build_patch(path, value), content=MERGE)
        assert reply.status in {200, 400, 422}, (path, value, reply)
        if reply.status != 200 or before is None:
            continue
        accepted += 1
        with capture_logs() as logs:
            results = world.run.run_until(run_pass(world))
        crashes += [(plural, path, value, log) for log in logs if log["event"].endswith("crashed")]
        assert "bystander" in results, (path, value)
        restore(world, plural, before)
    assert not crashes, crashes[0]
    assert accepted > len(chosen) / 4


async def run_pass(world: AutoscaledCluster) -> list[str]:
    """The names of the autoscalers of a pass."""
    parts = world.parts(world.client(world.server.transport()), journal=world.journal)
    results = await parts.reconciler.run_all()
    return [getattr(result, "name", "") or result.autoscaler.name for result in results]  # type: ignore[union-attr]


def restore(world: AutoscaledCluster, plural: str, before: dict[str, Any]) -> None:
    assert isinstance(world.server, EmbeddedServer)
    place = f"{TIDB}/namespaces/prod/{plural}/{before['metadata']['name']}"
    for sub in ("", "/status") if plural == "tidbclusterautoscalers" else ("",):
        body = json.loads(json.dumps(before))
        current = world.server.get(plural, before["metadata"]["name"])
        assert current is not None, "nothing is deleted because of a field"
        body["metadata"]["resourceVersion"] = current["metadata"]["resourceVersion"]
        reply = world.server.world.ask("PUT", place + sub, body)
        assert reply.status == 200, reply


@pytest.mark.parametrize("path", PD_STORE)
def test_an_extreme_field_of_a_store_is_a_named_problem_or_harmless(path: str) -> None:
    for value in PD_STORE[path]:
        world = MonitoredCluster().add(0.05, 0.05, 0.05).add_group("small", 0.05)
        part, _, field = path.partition(".")
        world.pd.stores[3][part][field] = value
        page = world.answered(strategy(SMALL))
        assert page.status_code in {200, 500}, (value, page.body)


@pytest.mark.parametrize("kind", ["used", "quota", "measured"])
def test_an_extreme_sample_is_missing_data(kind: str) -> None:
    for value in SAMPLES:
        world = MonitoredCluster().add(0.05, 0.05, 0.05).add_group("small", 0.05, 0.05)
        labels, _ = world.prometheus.vectors[kind][4]
        world.prometheus.vectors[kind][4] = (labels, value)
        page = world.answered(strategy(SMALL))
        assert page.status_code == 200, (value, page.body)
        counts = {plan["resource_type"]: plan["count"] for plan in json.loads(bytes(page.body))}
        if kind != "used" or value not in {"0", "-0", "5e-324", "1e-400"}:
            assert counts["small"] == 2, (kind, value)


@pytest.mark.parametrize(
    ("path", "value", "reported"),
    [
        ("spec.tikv.scaleInIntervalSeconds", 2**62, "spec.tikv.scaleInIntervalSeconds: 4611686018427387904 is out of"),
        ("spec.tikv.resources.storage_small.cpu", "1e30", "spec.tikv.resources.storage_small.cpu: 1e30 is out of"),
        ("spec.tikv.resources.storage_small.count", 2**40, "spec.tikv.resources.storage_small.count: 1099511627776 is"),
    ],
)
def test_a_number_out_of_range_is_named_in_the_condition_and_the_journal(path: str, value: Any, reported: str) -> None:
    with AutoscaledCluster(EmbeddedServer) as world:
        world.autoscaler().cluster().planner.says(group(1))
        world.server.edit("tidbclusterautoscalers", "as1", build_patch(path, value))
        (result,) = world.once()
        assert reported in str(result.problems[0])
        assert (world.condition("Valid")[0], reported in world.message("Valid")) == ("False", True)
        ref = Ref(kind="tidbclusterautoscaler", namespace="prod", name="as1")
        (entry,) = world.run.run_until(world.journal.list_entries(Query(ref=ref)))
        assert [reported in not_done.reason.message for not_done in entry.plan.not_done] == [True]
