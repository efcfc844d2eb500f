"""Requests of classes that other packages registered: what their classes say of them (specs/nodes.md 3.1).

That is a verdict, or pods to plan for. Pure but for what such a class does; `desk` asks before it lines up who waits.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from plimsoll.nodes.requests.seen import Nature, Phase

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime

    from plimsoll.nodes.planning.world import Snapshot
    from plimsoll.nodes.requests.answering import Answering
    from plimsoll.nodes.requests.registered_classes import Handled, RegisteredClass
    from plimsoll.nodes.requests.seen import Seen
    from plimsoll.nodes.requests.verdicts import Verdict


class ClassAnswers:
    """Of one turn. `verdicts`: what classes answered; `left`: everybody else, and who is planned for, in line."""

    def __init__(self, classes: Mapping[str, RegisteredClass], answering: Answering) -> None:
        self._classes = classes
        self._answering = answering
        self.verdicts: list[Verdict] = []
        self.left: list[Seen] = []

    def ask(self, line: Iterable[Seen], snapshot: Snapshot, now: datetime) -> ClassAnswers:
        for one in line:
            # Growth that was begun is finished first: nobody is asked again whether it was right to begin.
            if one.nature is not Nature.REGISTERED or one.phase is Phase.INTENDED:
                self.left.append(one)
                continue
            said = self._classes[one.request.spec.provisioning_class_name].answer(one, snapshot, now)
            self._take(one, said)
        return self

    def _take(self, one: Seen, said: Handled | str) -> None:
        if isinstance(said, str):
            self.verdicts.append(self._answering.not_checked(one, said))
            return
        told = _with(one, said)
        if said.plan:
            self.left.append(told)
        else:
            self.verdicts.append(self._answering.by_class(told))


def _with(one: Seen, said: Handled) -> Seen:
    """The request with what its class says of it; whatever pods are planned for are its own, and all or none."""
    conditions = one.conditions
    for each in said.conditions:
        conditions = conditions.with_condition(each)
    pods = tuple(
        replace(pods, key=f"{one.name}/{index}", bundle=one.name, created=one.created)
        for index, pods in enumerate(said.plan)
    )
    details = one.details.but(others={**one.details.others, **said.details})
    return replace(one, conditions=conditions, details=details, pods=pods)
