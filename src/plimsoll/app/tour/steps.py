"""What a step of the tour is: something that is done, what must follow, and the journal entries that say why.

A step that does not see what must follow fails with what it waited for, and the tour ends there.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from plimsoll.core.errors import PlimsollError
from plimsoll.core.plans import Ref
from plimsoll.journal.entries import Query

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator
    from datetime import datetime

    from plimsoll.app.tour.world import TourWorld
    from plimsoll.core.plans import Reason
    from plimsoll.journal.entries import Entry

LOOK_EVERY_S: Final = 2.0
_ENTRIES_READ: Final = 200


class StepFailed(PlimsollError):
    """Something that a step waits for did not happen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """A decision behind a step: where it is written, about what, and its reason."""

    journal: str
    number: int
    at: datetime
    ref: Ref
    reason: Reason


@dataclass(slots=True, kw_only=True)
class Stage:
    """What a step works with. `say` shows a line of progress."""

    world: TourWorld
    say: Callable[[str], None]
    look: Callable[[], Awaitable[object]]
    """Called whenever something changed: machines that come and go within a step are counted, too."""
    evidence: list[Evidence] = field(default_factory=list)
    began: datetime

    async def wait_until(
        self,
        what: str,
        is_so: Callable[[], Awaitable[Any]],
        *,
        within_s: float,
        describe: Callable[[], Awaitable[str]] | None = None,
    ) -> Any:
        """Look until something is so, and give what was found. `describe`: shown whenever it changes."""
        clock, shown = self.world.clock, ""
        until_s = clock.monotonic_s() + within_s
        while True:
            found = await is_so()
            now = await describe() if describe is not None else ""
            if now not in {"", shown}:
                self.say(now)
                shown = now
                await self.look()
            if found:
                return found
            if clock.monotonic_s() >= until_s:
                raise StepFailed(f"{what}: not within {within_s:.0f} s" + (f" ({shown})" if shown else ""))
            await clock.sleep(LOOK_EVERY_S)

    async def find_reason(self, journal: str, ref: str, word: str, *, within_s: float = 60.0) -> Evidence:
        """The newest decision of this step about an object, with this reason or verb; the step stands on it."""
        kind, _, rest = ref.partition("/")
        namespace, _, name = rest.rpartition("/")
        named = Ref(kind=kind, namespace=namespace, name=name)

        async def look() -> Evidence | None:
            return await self._find_evidence(journal, named, word)

        found: Evidence = await self.wait_until(f"a decision {word} about {ref}", look, within_s=within_s)
        self.evidence.append(found)
        return found

    async def find_action(self, journal: str, verb: str, *, within_s: float = 60.0) -> Evidence:
        """The newest action of this step with this verb, whatever it is about."""

        async def look() -> Evidence | None:
            query = Query(since=self.began, limit=_ENTRIES_READ)
            for entry in await self.world.journals[journal].list_entries(query):
                for action in entry.plan.actions:
                    if action.verb == verb:
                        return Evidence(
                            journal=journal, number=entry.number, at=entry.at, ref=action.target, reason=action.reason
                        )
            return None

        found: Evidence = await self.wait_until(f"a decision {verb}", look, within_s=within_s)
        self.evidence.append(found)
        return found

    async def _find_evidence(self, journal: str, ref: Ref, word: str) -> Evidence | None:
        query = Query(ref=ref, since=self.began, limit=_ENTRIES_READ)
        for entry in await self.world.journals[journal].list_entries(query):
            for reason in _iterate_reasons(entry, ref, word):
                return Evidence(journal=journal, number=entry.number, at=entry.at, ref=ref, reason=reason)
        return None

    def check(self, holds: object, what: str) -> None:
        if not holds:
            raise StepFailed(what)


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """`name` is what a failed tour names; `title` is a sentence for people."""

    name: str
    title: str
    run: Callable[[Stage], Awaitable[None]]


def _iterate_reasons(entry: Entry, ref: Ref, word: str) -> Iterator[Reason]:
    """The reasons about an object whose code is the word, and of actions whose verb it is."""
    part = entry.filter_by_ref(ref).plan
    for action in part.actions:
        if action.verb == word:
            yield action.reason
    decided = [*(action.reason for action in part.actions), *(not_done.reason for not_done in part.not_done)]
    for whole in decided:
        yield from (reason for reason in _iterate_causes(whole) if reason.code == word)


def _iterate_causes(reason: Reason) -> Iterator[Reason]:
    yield reason
    for cause in reason.because:
        yield from _iterate_causes(cause)


async def wait_for_kafka(stage: Stage, name: str, *, within_s: float = 600.0) -> dict[str, Any]:
    """The row of a Kafka when it is ready."""

    async def get_status() -> str:
        kafkas = await stage.world.list_kafkas()
        return f"{name} is {kafkas[name]['status'] if name in kafkas else 'gone'}"

    async def is_ready() -> bool:
        return await get_status() == f"{name} is ready"

    await stage.wait_until(f"{name} becomes ready", is_ready, within_s=within_s, describe=get_status)
    kafka = (await stage.world.list_kafkas())[name]
    row: dict[str, Any] = await stage.world.call("GET", f"/admin/kafkas/{kafka['id']}")
    return {**row, **kafka}
