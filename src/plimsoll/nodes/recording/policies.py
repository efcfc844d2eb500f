"""A policy as JSON and back: its flags, prices, priorities, naming and expander answers. Pure."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from plimsoll.core.errors import InvalidInput
from plimsoll.core.values import Value
from plimsoll.journal.errors import UnreadableRecording
from plimsoll.nodes.config.expander_priorities import read_priorities
from plimsoll.nodes.config.options import list_policy_flags, read_flags_of_policy
from plimsoll.nodes.model.group_names import Naming
from plimsoll.nodes.model.prices import Overlay
from plimsoll.nodes.recording.wire import Json, read, to_plain

if TYPE_CHECKING:
    from plimsoll.nodes.config.policy import Policy


class _Price(Value):
    machine_type: str
    price: float | None = None
    factor: float = 1.0


class _Tier(Value):
    priority: int
    patterns: tuple[str, ...]


class _Naming(Value):
    underscores: bool
    longest: int


class _Answer(Value):
    question: str
    groups: tuple[str, ...]


class _Policy(Value):
    flags: dict[str, Any] = {}
    overlay: tuple[_Price, ...] = ()
    priorities: tuple[_Tier, ...] = ()
    naming: _Naming | None = None
    expander_answers: tuple[_Answer, ...] | None = None


def encode_policy(policy: Policy) -> Json:
    answers = policy.expander_answers
    written = _Policy(
        flags=list_policy_flags(policy),
        overlay=tuple(
            _Price(machine_type=name, price=overlay.price, factor=overlay.factor)
            for name, overlay in policy.overlay.items()
        ),
        priorities=tuple(_Tier(priority=number, patterns=texts) for number, texts in policy.priorities.items()),
        naming=None
        if policy.naming is None
        else _Naming(underscores=policy.naming.underscores, longest=policy.naming.longest),
        expander_answers=None
        if answers is None
        else tuple(_Answer(question=question, groups=groups) for question, groups in answers.items()),
    )
    found: Json = to_plain(written)
    return found


def read_policy(value: Any) -> Policy:
    """Raises `UnreadableRecording` with the path of the problem."""
    written = read(_Policy, value, path="policy")
    try:
        policy = read_flags_of_policy(written.flags, path="policy.flags")
        priorities = read_priorities({tier.priority: list(tier.patterns) for tier in written.priorities})
    except InvalidInput as error:
        raise UnreadableRecording(error.problem, path=error.path) from error
    naming, answers = written.naming, written.expander_answers
    return dataclasses.replace(
        policy,
        overlay={price.machine_type: Overlay(price=price.price, factor=price.factor) for price in written.overlay},
        priorities=priorities,
        naming=None if naming is None else Naming(underscores=naming.underscores, longest=naming.longest),
        expander_answers=None if answers is None else {answer.question: answer.groups for answer in answers},
    )
