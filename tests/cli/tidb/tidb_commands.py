"""Runs `plimsoll tidb …` on files made of plain data."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import yaml

from tests.cli.runner import CommandResult, plimsoll

if TYPE_CHECKING:
    from pathlib import Path

Json = dict[str, Any]


def run_plan(folder: Path, asked: Json | str, seen: Json | str, *arguments: str) -> CommandResult:
    """Text is written as it is."""
    files = {"strategy": asked, "snapshot": seen}
    for name, content in files.items():
        (folder / f"{name}.json").write_text(content if isinstance(content, str) else json.dumps(content))
    given: tuple[Any, ...] = (
        "--strategy",
        folder / "strategy.json",
        "--snapshot",
        folder / "snapshot.json",
        *arguments,
    )
    return plimsoll("tidb", "plan", *given, cwd=folder)


def plans(ended: CommandResult) -> list[Json]:
    assert ended.returncode == 0, ended.stderr
    found: list[Json] = json.loads(ended.stdout)
    return found


def reasons(ended: CommandResult) -> list[str]:
    return [json.loads(line)["reason"] for line in ended.stderr.splitlines()]


def run_name(folder: Path, seed: Json | str) -> CommandResult:
    (folder / "seed.json").write_text(seed if isinstance(seed, str) else json.dumps(seed))
    return plimsoll("tidb", "name", "--seed", folder / "seed.json", cwd=folder)


def run_validate(folder: Path, autoscaler: Json | str, *others: Json, arguments: tuple[str, ...] = ()) -> CommandResult:
    """`others` are written into the file of the TidbCluster."""
    text = autoscaler if isinstance(autoscaler, str) else yaml.safe_dump(autoscaler)
    (folder / "tac.yaml").write_text(text)
    (folder / "tc.yaml").write_text("---\n".join(map(yaml.safe_dump, others)))
    files = ("-f", folder / "tac.yaml", "--tc", folder / "tc.yaml")
    return plimsoll("tidb", "validate", *files, *arguments, cwd=folder)


def cluster(**changes: Any) -> Json:
    """The specification's base cluster `prod/db`."""
    spec: Json = {
        "version": "v8.5.0",
        "pd": {"replicas": 3, "requests": {"cpu": "1", "storage": "10Gi"}},
        "tikv": {"replicas": 3, "requests": {"cpu": "4", "memory": "16Gi", "storage": "100Gi"}},
        "tidb": {"replicas": 2, "requests": {"cpu": "4", "memory": "16Gi"}},
    }
    present = {name: part for name, part in {**spec, **changes}.items() if part is not None}
    metadata = {"name": "db", "namespace": "prod"}
    return {"apiVersion": "pingcap.com/v1alpha1", "kind": "TidbCluster", "metadata": metadata, "spec": present}


def autoscaler(**spec: Any) -> Json:
    """`prod/as1`, which scales what is given."""
    return {
        "apiVersion": "pingcap.com/v1alpha1",
        "kind": "TidbClusterAutoScaler",
        "metadata": {"name": "as1", "namespace": "prod"},
        "spec": {"cluster": {"name": "db"}, **spec},
    }
