"""T18: names of groups. Golden values from the specification (docs/design/tidb.md 3.5.5)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.core.errors import InvalidInput
from plimsoll.objects.fnv import hash_fnv1_32
from plimsoll.tidb.model.names import NameSeed, find_free_name, make_size_suffix
from plimsoll.tidb.wire.name_seeds import read_seed
from tests.cli.tidb.tidb_commands import run_name

if TYPE_CHECKING:
    from pathlib import Path

DESIGN = {
    "component": "tikv",
    "cpu": 1000,
    "labels": {"group": "a", "specialUse": "hotRegion", "zone": "A"},
    "memory": 8589934592,
    "namespace": "prod",
    "storage": 107374182400,
    "tas": "as1",
}
TIKV = {
    "component": "tikv",
    "cpu": 1000,
    "labels": {
        "group": "pd-auto-scaling-tikv-storage_small",
        "resource-type": "storage_small",
        "specialUse": "hotRegion",
    },
    "memory": 2147483648,
    "namespace": "prod",
    "storage": 10737418240,
    "tas": "as1",
}
TIDB = {
    "component": "tidb",
    "cpu": 1000,
    "labels": {"group": "pd-auto-scaling-tidb-compute_small", "resource-type": "compute_small"},
    "memory": 2147483648,
    "namespace": "prod",
    "storage": 0,
    "tas": "as1",
}
GOLDEN = [
    (DESIGN, 289142900, "auto-6df586f44"),
    ({**DESIGN, "cpu": 1}, 683095468, "auto-bd74f98bd"),
    (TIKV, 869295988, "auto-dbf6f9fdd"),
    (TIDB, 1143382736, "auto-55877d6c7b"),
]


@pytest.mark.parametrize(("seed", "number", "name"), GOLDEN, ids=[name for _, _, name in GOLDEN])
def test_t18_golden_seeds(tmp_path: Path, seed: dict[str, Any], number: int, name: str):
    found = read_seed(json.dumps(seed).encode())
    assert found.encode() == json.dumps(seed, separators=(",", ":")).encode()
    assert hash_fnv1_32(found.encode()) == number
    ended = run_name(tmp_path, seed)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, f"{name}\n", "")


def test_t18_order_of_keys_and_blanks_do_not_matter(tmp_path: Path):
    turned = {**dict(reversed(TIKV.items())), "labels": dict(reversed(TIKV["labels"].items()))}  # type: ignore[attr-defined]
    assert run_name(tmp_path, json.dumps(turned, indent=4)).stdout == "auto-dbf6f9fdd\n"


@pytest.mark.parametrize("cpu", ["1", "1000m", "1e0", 1000])
def test_t18_amounts_are_what_they_mean(tmp_path: Path, cpu: Any):
    assert run_name(tmp_path, {**TIKV, "cpu": cpu, "memory": "2Gi", "storage": "10Gi"}).stdout == "auto-dbf6f9fdd\n"


@given(st.dictionaries(st.text(max_size=5), st.text(max_size=5), max_size=5), st.randoms(use_true_random=False))
def test_t18_equal_inputs_give_equal_names_whatever_the_order(labels: dict[str, str], chance: Any):
    one = NameSeed(namespace="n", tas="t", component="tikv", cpu=1, memory=2, labels=labels)
    keys = chance.sample(list(labels), len(labels))
    given = {"labels": {key: labels[key] for key in keys}, "memory": 2, "cpu": 1, "component": "tikv"}
    other = read_seed(json.dumps({**given, "tas": "t", "namespace": "n"}).encode())
    assert one.encode() == other.encode()
    assert one.build_name() == other.build_name()
    assert json.loads(one.encode())["labels"] == labels


def test_canonical_text_is_escaped_as_go_does():
    seed = NameSeed(namespace="ä<>&\u2028\u2029", tas="", component="", cpu=0, memory=0)
    assert '"namespace":"ä\\u003c\\u003e\\u0026\\u2028\\u2029"'.encode() in seed.encode()


def test_a_name_that_is_taken_gives_way_to_the_next_collision():
    seed = read_seed(json.dumps(TIKV).encode())
    first = find_free_name(seed, set())
    second = find_free_name(seed, {first.name})
    third = find_free_name(seed, {first.name, second.name})
    assert [name.collision for name in (first, second, third)] == [0, 1, 2]
    assert len({first.name, second.name, third.name}) == 3
    assert read_seed(json.dumps({**TIKV, "collision": 1}).encode()).build_name() == second.name
    assert b'{"collision":1,"component"' in read_seed(json.dumps({**TIKV, "collision": 1}).encode()).encode()


@pytest.mark.parametrize(
    ("seed", "complaint"),
    [
        ({**TIKV, "count": 3}, "count: is not a field of a seed"),
        ({**TIKV, "cpu": "1x"}, "cpu: "),
        ({**TIKV, "cpu": 1.5}, "Expected `int`"),
        ({"cpu": 1}, "missing required field"),
        ([], "Expected `object`"),
        ('{"cpu": 1,}', "trailing comma"),
    ],
    ids=["count", "no quantity", "broken", "half", "list", "comma"],
)
def test_what_is_no_seed_is_refused(tmp_path: Path, seed: Any, complaint: str):
    ended = run_name(tmp_path, seed)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert complaint in ended.stderr
    with pytest.raises(InvalidInput):
        read_seed((seed if isinstance(seed, str) else json.dumps(seed)).encode())


def test_the_suffix_of_a_size_is_of_its_numbers():
    assert make_size_suffix(1000, 2147483648, 10737418240) == make_size_suffix(1000, 2 * 2**30, 10 * 2**30)
    assert len(make_size_suffix(1000, 1, 1)) == 8
    assert make_size_suffix(1000, 1, 1) != make_size_suffix(1000, 1, 0)
