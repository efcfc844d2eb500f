"""Whatever the load: as long as the metrics of one instance cannot be trusted, no group gets smaller."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tidb.planner.fake_monitoring import MonitoredCluster, error_of, plans_of
from tests.tidb.planning.planner.builders import SMALL, strategy

TRAPS = ("no quota", "no usage", "no metrics", "stale", "unknown age", "NaN", "too young")
OWN = "default_homogeneous_tikv"
usages = st.floats(0, 1).map(lambda usage: round(usage, 3))


def spoilt(world: MonitoredCluster, pod: str, trap: str) -> None:
    kinds = {"no quota": ["quota"], "no usage": ["used"], "no metrics": ["used", "quota"], "unknown age": ["measured"]}
    for kind in kinds.get(trap, ["used"] if trap == "NaN" else []):
        world.forget(kind, pod)
    if trap == "NaN":
        world.measure(pod, used="NaN")
    if trap == "stale":
        world.measured(pod, ago_s=31)
    if trap == "too young":
        (store,) = [store for store in world.pd.stores if store["store"]["address"].startswith(f"{pod}.")]
        store["status"]["start_ts"] = "2025-12-31T23:59:00Z"


@settings(max_examples=60)
@given(
    own=st.lists(usages, min_size=1, max_size=5),
    group=st.lists(usages, min_size=1, max_size=4),
    traps=st.dictionaries(st.integers(0, 8), st.sampled_from(TRAPS), min_size=1),
    nodes=st.integers(0, 12),
)
def test_no_group_shrinks_while_metrics_of_an_instance_cannot_be_trusted(
    own: list[float], group: list[float], traps: dict[int, str], nodes: int
) -> None:
    world = MonitoredCluster().add(*own).add_group("small", *group)
    pods = [f"db-tikv-{i}" for i in range(len(own))] + [f"auto-small-tikv-{i}" for i in range(len(group))]
    for index, trap in traps.items():
        spoilt(world, pods[index % len(pods)], trap)
    page = world.answered(strategy(SMALL, nodes=nodes))
    if page.status_code != 200:
        assert error_of(page) == (500, "insufficient_metrics")
        return
    counts = plans_of(page)
    assert counts["small"] >= len(group)
    assert counts.get(OWN, len(own)) >= len(own)
