"""The client of our own engine: its refusals are written for people, without the wrapping of Cruise Control."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from plimsoll.kafka.cruise_control.client.client import CruiseControlClient
from plimsoll.kafka.model.rebalances import RebalanceRefused, RebalanceTask

if TYPE_CHECKING:
    from plimsoll.kafka.model.rebalances import RebalanceAnswer, RebalanceSpec, RebalanceTaskAnswer

_ANSWER: Final = re.compile(r"^Cruise Control answers \d+: ")
_REQUEST: Final = re.compile(r"^Error processing \w+ request '[^']*' due to: '(?P<error>.*)'\.?$", re.DOTALL)
_CLASSES: Final = re.compile(r"^(?:[a-z][\w$]*\.)+[A-Z][\w$]*: ")
_PARAMETERS: Final = {
    "Add skip_hard_goal_check=true parameter to ignore this sanity check": "Add them, or set spec.skipHardGoalCheck",
}
"""Advice about parameters of a request, and what it is for a KafkaRebalance."""


class EngineClient(CruiseControlClient):
    """Reaches the engine of this process. Other programs get the engine's answers as Cruise Control writes them."""

    async def request_rebalance(self, spec: RebalanceSpec, *, is_dry_run: bool) -> RebalanceAnswer:
        answer = await super().request_rebalance(spec, is_dry_run=is_dry_run)
        return _write_refusal(answer) if isinstance(answer, RebalanceRefused) else answer

    async def read_user_task(self, session_id: str) -> RebalanceTaskAnswer:
        answer = await super().read_user_task(session_id)
        if isinstance(answer, RebalanceTask) and isinstance(answer.failure, RebalanceRefused):
            return replace(answer, failure=_write_refusal(answer.failure))
        return _write_refusal(answer) if isinstance(answer, RebalanceRefused) else answer


def _write_refusal(refused: RebalanceRefused) -> RebalanceRefused:
    """The refusal in plain words. The text of a transient one is kept: its class is found by it."""
    return refused if refused.is_transient else replace(refused, message=remove_wrapping(refused.message))


def remove_wrapping(message: str) -> str:
    """The text without what wraps it: status, request and classes of exceptions. No sentence stands there twice.

    Advice about parameters of the request names fields of the KafkaRebalance.
    """
    text = _ANSWER.sub("", message)
    if (wrapped := _REQUEST.match(text)) is not None:
        text = wrapped["error"]
    while (named := _CLASSES.match(text)) is not None:
        text = text[named.end() :]
    for advice, of_rebalance in _PARAMETERS.items():
        text = text.replace(advice, of_rebalance)
    sentences = re.split(r"(?<=\.) (?=[A-Z])", text)
    return f"the engine refuses: {' '.join(dict.fromkeys(sentences))}"
