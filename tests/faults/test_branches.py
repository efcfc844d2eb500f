"""A run that forks at each of its calls: what each copy sees, and that nothing of it comes back."""

from __future__ import annotations

import pytest

from plimsoll.testing import run_virtual
from tests.faults import Branches, Strike, translate_strikes
from tests.faults.branches import run_in_copy
from tests.faults.crashes import Crashed

pytestmark = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")


class Cloud:
    """A port whose effects are kept."""

    def __init__(self) -> None:
        self.effects: list[str] = []

    async def create(self, name: str) -> str:
        self.effects.append(name)
        return name


def run(fault: Branches) -> list[str]:
    """Two calls; the answers, or what came instead, and the effects."""
    cloud = Cloud()
    port = translate_strikes(fault.wrap(cloud), lost=lambda: "lost", refused=lambda: "refused")

    async def main() -> list[str]:
        seen = []
        for name in ("a", "b"):
            try:
                seen.append(await port.create(name))
            except Crashed:
                seen.append("crashed")
        return [*seen, "|", *cloud.effects]

    found: list[str] = fault.run(lambda: run_virtual(main()))
    return found


def test_each_call_is_struck_in_each_way_and_the_run_itself_in_none():
    fault = Branches(lambda _call, _strike: True)
    assert run(fault) == ["a", "b", "|", "a", "b"]
    assert [(branch.strike, branch.call.number, branch.end.result) for branch in fault.ended] == [
        (Strike.REFUSED, 1, ["refused", "b", "|", "b"]),
        (Strike.LOST, 1, ["lost", "b", "|", "a", "b"]),
        (Strike.CRASH, 1, ["crashed", "crashed", "|", "a"]),
        (Strike.REFUSED, 2, ["a", "refused", "|", "a"]),
        (Strike.LOST, 2, ["a", "lost", "|", "a", "b"]),
        (Strike.CRASH, 2, ["a", "crashed", "|", "a", "b"]),
    ]


def test_only_chosen_calls_are_struck():
    fault = Branches(lambda call, strike: call.number == 2 and strike is Strike.LOST)
    run(fault)
    assert [str(branch) for branch in fault.ended] == ["lost answer at call 2, create"]


def test_a_copy_reports_its_failure_and_changes_nothing_here():
    kept: list[int] = []

    def count() -> int:
        kept.append(1)
        return len(kept)

    def fail() -> None:
        kept.append(1)
        raise ValueError("of the copy")

    assert run_in_copy(count).result == 1
    assert run_in_copy(fail).problem.endswith("ValueError: of the copy\n")
    assert kept == []
