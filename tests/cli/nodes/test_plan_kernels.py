"""Which way the kernels of `plimsoll plan` run: machine code only where loading it pays."""

from __future__ import annotations

import json

import pytest

from plimsoll.cli.nodes.plan import _choose_kernels
from plimsoll.simulation.plan.inputs import read_plan_input
from plimsoll.solver import kernels


def choice_for(entries: int, pods: int) -> str | None:
    types = [{"name": f"m{cpu}", "cpu": cpu, "memory": "64Gi"} for cpu in range(1, 22)]
    spec = {"containers": [{"name": "c", "image": "i"}]}
    entry = {"count": pods // entries, "template": {"spec": spec}}
    story = {"machineTypes": types, "pods": [{"name": f"p{number}", **entry} for number in range(entries)]}
    with (
        kernels.force_choice("auto"),
        _choose_kernels(read_plan_input([("s", json.dumps(story).encode())]), prove=False),
    ):
        return kernels._switch.choice


@pytest.mark.parametrize(
    ("entries", "pods", "warm", "choice"),
    [
        (32, 524_288, True, "auto"),
        (32, 524_288, False, "plain"),
        (32, 320, True, "plain"),
        (1, 524_288, True, "plain"),
        (100, 100, True, "auto"),
    ],
)
def test_machine_code_is_loaded_for_large_questions_and_for_many_pods(
    monkeypatch: pytest.MonkeyPatch, entries: int, pods: int, warm: bool, choice: str
):
    monkeypatch.delenv(kernels.VARIABLE, raising=False)
    monkeypatch.setattr(kernels, "is_cache_warm", lambda: warm)
    assert choice_for(entries, pods) == choice
