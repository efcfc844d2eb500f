"""Whatever happens on the way, the cache ends as the server is, and every handler heard a history that leads there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from plimsoll.kube.informer import InformerSettings
from tests.kube.embedded_api import status_reply
from tests.kube.informer.checking_handlers import CheckingHandler
from tests.kube.informer.widget_server import BAD, WidgetCluster, known

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.kube.informer.widget_server import Backup

NAMES = st.sampled_from(["a", "b", "c", "d", "e"])
SIZES = st.one_of(st.integers(0, 3), st.just(BAD))
GARBAGE = st.sampled_from([b'{"type":"ADDED","object":{"metada\n', b"\xff\xfe\n", b"[]\n", b'{"type":"NEW"}\n'])

writes = st.one_of(
    st.tuples(st.just("put"), NAMES, SIZES),
    st.tuples(st.just("put"), NAMES, SIZES),
    st.tuples(st.just("delete"), NAMES),
    st.tuples(st.just("replace"), NAMES, SIZES),
)
faults = st.one_of(
    st.tuples(st.just("break")),
    st.tuples(st.just("break_after"), st.integers(0, 900)),
    st.tuples(st.just("repeat"), st.integers(1, 8)),
    st.tuples(st.just("pieces"), st.integers(1, 400)),
    st.tuples(st.just("delay"), st.floats(0, 150)),
    st.tuples(st.just("silence")),
    st.tuples(st.just("garbage"), GARBAGE),
    st.tuples(st.just("refuse"), st.sampled_from([400, 401, 403, 404, 410, 429, 500, 503, 504]), st.integers(1, 3)),
    st.tuples(st.just("compact")),
    st.tuples(st.just("restart"), st.floats(0, 90)),
    st.tuples(st.just("backup")),
    st.tuples(st.just("restore"), st.sampled_from([0.0, 60.0])),
    st.tuples(st.just("handler")),
)
pauses = st.tuples(st.just("pause"), st.sampled_from([0.0, 0.5, 5.0, 70.0, 700.0]))
steps = st.lists(st.one_of(writes, writes, writes, faults, pauses), min_size=1, max_size=6)
work = st.lists(writes, min_size=1, max_size=6)


def episode(before: list[Any], during: list[Any], after: list[Any]) -> list[Any]:
    return [*before, *during, *after]


# What single steps drawn at random would seldom come to: changes without a watch, and history forgotten.
PAUSE = ("pause", 1.0)
LOOKS_WITHIN_S = 300.0
episodes = st.one_of(
    steps,
    st.builds(episode, st.just([PAUSE, ("break",)]), work, st.sampled_from([[PAUSE], [("compact",), PAUSE]])),
    st.builds(episode, st.just([PAUSE, ("repeat", 6)]), work, st.just([("pause", 0.0)])),
    st.builds(
        episode, st.just([PAUSE, ("backup",)]), work, st.sampled_from([[PAUSE, ("restore", 0.0)], [("restore", 60.0)]])
    ),
    st.builds(episode, st.just([PAUSE, ("silence",)]), work, st.sampled_from([[("compact",)], [("restart", 5.0)]])),
)
beginnings = st.lists(st.tuples(st.just("put"), NAMES, SIZES), max_size=5)
stories = st.builds(
    lambda beginning, parts: [*beginning, *(step for part in parts for step in part)],
    beginnings,
    st.lists(episodes, min_size=2, max_size=6),
)


class InformerScenario:
    """Does step after step to a world."""

    def __init__(self, world: WidgetCluster, configuration: InformerSettings, *, keep_raw: bool) -> None:
        self.world = world
        self.informer = world.informer(configuration, keep_raw=keep_raw)
        self.witnesses: list[CheckingHandler] = []
        for witness in (
            CheckingHandler(world),
            CheckingHandler(world, takes_s=7.0),
            CheckingHandler(world, fails_every=2),
        ):
            self._add(witness)
        self._backup: Backup = world.backup()
        self._steps: dict[str, Callable[..., Any]] = {
            "put": world.put,
            "delete": world.delete,
            "replace": world.replace,
            "pause": world.run.advance_by,
            "break": lambda: world.run.run_until(world.line.break_all()),
            "break_after": lambda size: self._strike("ends_after_bytes", size),
            "repeat": lambda count: self._strike("repeats", count),
            "pieces": lambda size: self._strike("piece_bytes", size),
            "delay": lambda seconds: self._strike("delay_s", seconds),
            "silence": lambda: self._strike("is_silent", True),  # noqa: FBT003 - the value of an attribute
            "garbage": lambda text: self._strike("garbage", text),
            "refuse": lambda code, times: world.line.replies.extend([status_reply(code)] * times),
            "compact": world.compact,
            "restart": lambda seconds: world.restart(down_s=seconds),
            "backup": self._make_backup,
            "restore": self._restore,
            "handler": lambda: self._add(CheckingHandler(world)),
        }
        world.run.spawn(self.informer.run())

    def _add(self, witness: CheckingHandler) -> None:
        self.witnesses.append(witness)
        self.informer.add_handler(witness, name=f"witness {len(self.witnesses)}")

    def _strike(self, fault: str, value: Any) -> None:
        for stream in self.world.line.streams:
            setattr(stream, fault, value)

    def _make_backup(self) -> None:
        self._backup = self.world.backup()

    def _restore(self, down_s: float) -> None:
        """Read before it is back at the known version: the difference is not visible (docs/controllers.md)."""
        self.world.restore(self._backup, down_s=down_s)
        self.world.run.advance_by(down_s + LOOKS_WITHIN_S)

    def report(self, step: tuple[Any, ...]) -> None:
        self._steps[step[0]](*step[1:])

    def end(self) -> None:
        """Nothing more goes wrong, and what must be waited for has passed: silence, suspicion, slow handlers."""
        self.world.line.replies.clear()
        self.world.run.advance_by(1500)


# While the slow handler is busy, `a` becomes unreadable and is restored: for that handler nothing has changed.
RESTORED_UNNOTICED = [
    ("put", "a", 0),
    PAUSE,
    ("backup",),
    ("put", "a", BAD),
    PAUSE,
    ("restore", 0.0),
    ("put", "a", BAD),
]


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@example(story=RESTORED_UNNOTICED, watch_list=False, keep_raw=False, bare=False)
@given(story=stories, watch_list=st.booleans(), keep_raw=st.booleans(), bare=st.booleans())
def test_cache_and_handlers_end_as_the_server_is(
    story: list[tuple[Any, ...]], watch_list: bool, keep_raw: bool, bare: bool
):
    with WidgetCluster() as world:
        world.line.lists_are_bare = bare
        configuration = InformerSettings(page_size=2, uses_watch_list=watch_list)
        reported = InformerScenario(world, configuration, keep_raw=keep_raw)
        for step in story:
            reported.report(step)
        reported.end()

        assert known(reported.informer) == world.truth()
        for witness in reported.witnesses:
            assert witness.complaints == []
            assert witness.known == world.truth()
        assert reported.informer.get_age_s() < 100
        assert reported.informer.status.trouble == ""
        assert not reported.informer.status.is_suspect
