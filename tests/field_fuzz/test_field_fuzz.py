"""Every field of every kind that a controller reads with extreme values, through the API, with all controllers on."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.field_fuzz.field_table import list_fields
from tests.field_fuzz.fuzzed_cluster import FuzzedCluster, FuzzedObject
from tests.field_fuzz.seeds import OBJECTS_PER_SEED, fuzz_cluster

FIXTURES = Path(__file__).parents[1] / "fixtures" / "field_fuzz"
SHORT = 200
SLOW = 20_000
"""`make test-fuzz` runs a million, in as many processes as wanted."""


def check(seed: int, count: int) -> None:
    findings = fuzz_cluster(seed, count).findings
    assert not findings, f"seed {seed}: {findings[0].problem}\n{json.dumps(findings[0].objects)}"


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
@pytest.mark.parametrize("seed", range(1, SLOW // OBJECTS_PER_SEED + 1))
def test_many_objects_with_extreme_fields_crash_nothing(seed: int):
    check(seed, OBJECTS_PER_SEED)


@pytest.mark.parametrize("file", sorted(FIXTURES.glob("*.json")), ids=lambda file: str(file.stem))
def test_objects_that_crashed_something_once(file: Path):
    """Each file holds objects of a batch after which a controller or the server had failed."""
    batch = [FuzzedObject(**fuzzed) for fuzzed in json.loads(file.read_bytes())]
    with FuzzedCluster(0) as cluster:
        findings = [*cluster.write(batch), *cluster.write(()), *cluster.clear()]
        assert not findings, findings[0].problem
        assert cluster.serves_a_pending_pod()
