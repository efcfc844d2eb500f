"""Every field of every kind that a controller reads with extreme values, through the API, with all controllers on."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.effort import IS_LONG
from tests.field_fuzz.field_table import list_fields
from tests.field_fuzz.fuzzed_cluster import FuzzedCluster, FuzzedObject

FIXTURES = Path(__file__).parents[1] / "fixtures" / "field_fuzz"
SHORT = 200
SLOW = 20_000
LONG = 1_000_000
PER_CLUSTER = 2_000
"""A cluster that is written to at random fills up; a fresh one now and then keeps objects meaningful."""


def check(seed: int, count: int) -> None:
    """Nothing crashed, and the autoscaler still serves a plain pod."""
    with FuzzedCluster(seed) as cluster:
        findings = [*cluster.fuzz(count), *cluster.clear()]
        assert not findings, f"seed {seed}: {findings[0].problem}\n{json.dumps(findings[0].objects)}"
        assert cluster.serves_a_pending_pod(), f"seed {seed}"


def test_the_table_has_every_kind_and_every_field():
    fields = list_fields()
    assert len({field.kind for field in fields}) >= 25
    assert sum(len(field.values) for field in fields) > 100_000
    paths = {(field.kind, field.path) for field in fields}
    assert ("pods", ("spec", "terminationGracePeriodSeconds")) in paths
    assert ("nodes", ("spec", "taints", 0, "timeAdded")) in paths
    assert ("pods", ("metadata", "annotations", "cluster-autoscaler.kubernetes.io/pod-scale-up-delay")) in paths


def test_objects_with_extreme_fields_crash_nothing():
    check(0, SHORT)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, (LONG if IS_LONG else SLOW) // PER_CLUSTER + 1))
def test_many_objects_with_extreme_fields_crash_nothing(seed: int):
    check(seed, PER_CLUSTER)


@pytest.mark.parametrize("file", sorted(FIXTURES.glob("*.json")), ids=lambda file: str(file.stem))
def test_objects_that_crashed_something_once(file: Path):
    """Each file holds objects of a batch after which a controller or the server had failed."""
    batch = [FuzzedObject(**fuzzed) for fuzzed in json.loads(file.read_bytes())]
    with FuzzedCluster(0) as cluster:
        findings = [*cluster.write(batch), *cluster.write(()), *cluster.clear()]
        assert not findings, findings[0].problem
        assert cluster.serves_a_pending_pod()
