"""Any call of a process, to its provider, to a cluster or to the database, is its last, loses its answer, or fails.

Three stories for each provider: a cluster is made, an empty one is deleted beside one in use, and a marked one is
needed again. The end is the same as without a fault: one cluster at the provider per row, no orphan, no pool twice, and
nothing deleted that was in use. CI strikes a part of the calls, `make test-long` each.
"""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import pytest

from plimsoll.fleet.model.statuses import ClusterStatus, KafkaStatus
from tests.effort import IS_LONG
from tests.faults import Branches, Strike
from tests.fleet.workers.cluster_lives import ROW_A, ROW_B, UNITS, WORLDS, Lives

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.faults import Call

# Tasks of a process that crashed never end: their exceptions are not retrieved.
pytestmark = [
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning"),
]
PROVIDER_CALL = "send"
READS = ("list_", "count_", "get_", "find_")
STRIDES = {"ocm": 11, "cluster_api": 43, "standalone": 43}
"""Every how many calls one is struck in a short run, in one of the three ways: Kubernetes needs more calls."""


class End(NamedTuple):
    """What is left."""

    statuses: tuple[tuple[str, str], ...]
    """Of the rows; a row that the story made itself is `new`."""
    provided: int
    created: int
    problems: tuple[str, ...]


def read_end(lives: Lives, *, deleted: str = "") -> End:
    rows = lives.list_rows()
    ids = lives.list_ids()
    problems = [f"row {row.id} has no cluster" for row in rows if row.cluster_id not in ids]
    problems += [f"{orphan}" for orphan in lives.run.run_until(lives.fleet.store.list_orphans())]
    problems += [f"row {row.id} shows {row.status_details}" for row in rows if row.status_details]
    if lives.provider.deletes:
        problems += [f"cluster {found} has no row" for found in ids if found not in {row.cluster_id for row in rows}]
    if deleted and lives.find_row(deleted) is not None:
        problems.append(f"row {deleted} is still there")
    kafkas = lives.run.run_until(lives.fleet.list_kafkas())
    known = {row.cluster_id for row in rows if row.status is ClusterStatus.READY}
    problems += [f"kafka {kafka.id} lost its cluster" for kafka in kafkas if kafka.cluster_id not in known]
    problems += [f"kafka {kafka.id} is {kafka.status}" for kafka in kafkas if kafka.status is not KafkaStatus.READY]
    named = {row.id if row.id in {ROW_A, ROW_B} else "new": row.status.value for row in rows}
    return End(tuple(sorted(named.items())), len(ids), lives.provider.count_created(), tuple(problems))


def is_settled(lives: Lives) -> bool:
    return all(row.status is ClusterStatus.READY for row in lives.list_rows())


def forget_failures(lives: Lives) -> None:
    """Calls that failed are repeated, and succeed."""
    lives.tick(2)
    lives.tick_until(lambda: not any(row.status_details for row in lives.list_rows()))


# ---- stories


def create(lives: Lives) -> End:
    if not lives.provider.deletes:
        lives.register(ROW_B)
    lives.tick_until(lambda: bool(lives.list_rows()) and is_settled(lives))
    forget_failures(lives)
    (row,) = lives.list_rows()
    assert row.client_id
    assert row.dynamic_capacity_info["standard"].max_nodes == 18
    return read_end(lives)


def delete(lives: Lives) -> End:
    lives.add_ready(ROW_A, used=2)
    lives.add_ready(ROW_B)
    lives.tick_until(lambda: lives.find_row(ROW_B) is None)
    forget_failures(lives)
    return read_end(lives, deleted=ROW_B)


def need_again(lives: Lives) -> End:
    """What is left fills up once B is marked. With a delete call made B goes, and another cluster is made for it."""
    first = lives.add_ready(ROW_A, used=2)
    lives.add_ready(ROW_B)
    lives.tick_until(lambda: (row := lives.find_row(ROW_B)) is None or row.status is ClusterStatus.DEPROVISIONING)
    marked = lives.find_row(ROW_B)
    assert marked is not None
    assert marked.delete_requested_at is None
    for number in range(UNITS - 2):
        lives.add_kafka(first, f"late-{number}")
    lives.tick_until(lambda: is_settled(lives))
    forget_failures(lives)
    return read_end(lives)


@dataclass(frozen=True)
class Story:
    """`play` gives the end of it."""

    provider: str
    play: Callable[[Lives], End]

    @property
    def name(self) -> str:
        return f"{self.play.__name__} with {self.provider}"


STORIES = [Story(provider, play) for provider in WORLDS for play in (create, delete, need_again)]
CASES = [
    pytest.param(story, id=story.name, marks=[] if story.provider == "ocm" else [pytest.mark.slow]) for story in STORIES
]


def pick(call: Call, strike: Strike, *, stride: int) -> bool:
    if strike is Strike.LOST and call.method.startswith(READS):
        return False  # The caller cannot distinguish it from a refusal.
    if IS_LONG:
        return True
    number, rest = divmod(call.number, stride)
    return rest == 0 and strike is list(Strike)[number % len(Strike)]


@pytest.mark.parametrize("story", CASES)
def test_whichever_call_fails_or_is_the_last_there_is_one_cluster_per_need(
    story: Story, capsys: pytest.CaptureFixture[str]
):
    fault = Branches(partial(pick, stride=STRIDES[story.provider]))
    with Lives(WORLDS[story.provider], fault) as lives:
        expected = fault.run(lambda: story.play(lives))
    assert not expected.problems
    assert fault.ended
    problems = [
        f"{branch}: {branch.end.problem or branch.end.result}"
        for branch in fault.ended
        if branch.end.problem or branch.end.result != expected
    ]
    assert not problems, "\n".join(problems[:10])
    kinds = ", ".join(
        f"{number} {strike}" for strike, number in Counter(branch.strike.value for branch in fault.ended).items()
    )
    provided = sum(branch.call.method == PROVIDER_CALL for branch in fault.ended)
    with capsys.disabled():
        sys.stdout.write(
            f"\n{story.name}: {len(fault.ended)} struck of {fault.completed} calls "
            f"({provided} to the provider or a cluster, {len(fault.ended) - provided} to the database): {kinds}\n"
        )
