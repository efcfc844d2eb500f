"""Parameters of a ProvisioningRequest, with those of its ProvisioningClass (docs/design/nodes.md 3.7, 3.9). Pure.

An unreadable value counts as absent and is listed in `problems`: a typing mistake does not fail the request.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from plimsoll.core.value_parsing import LONGEST_S, quote, read_duration_s

if TYPE_CHECKING:
    from collections.abc import Mapping


DAY_S: Final = 86_400
DEFAULT_VALID_S: Final = 7 * DAY_S
LONGEST_BOOKING_S: Final = DAY_S


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameters:
    """The effective parameters of one request."""

    valid_s: float = DEFAULT_VALID_S
    """How long to retry, counted from creation."""
    booking_s: float = 600
    retries: bool = True
    """False only for a check with `noRetry: "true"`."""
    reserves: bool = True
    """False only for a check with `reserve: "false"`."""
    counts_upcoming: bool = True
    """False only for a check: it is promised nodes that exist, unless `countUpcoming: "true"`."""
    instance: str = ""
    problems: tuple[str, ...] = ()

    @classmethod
    def from_maps(
        cls,
        own: Mapping[str, str],
        of_class: Mapping[str, str],
        *,
        is_check: bool,
        booking_default_s: float,
        counts_upcoming: bool = False,
    ) -> Parameters:
        """`counts_upcoming`: whether checks that do not say so count upcoming nodes."""
        texts = {**of_class, **own}
        problems: list[str] = []
        valid_s = _read_seconds(texts, "ValidUntilSeconds", problems)
        most_s = _read_seconds(of_class, "ValidUntilSeconds", problems)
        booking_s = _read_seconds(texts, "BookingDurationSeconds", problems)
        if booking_s is not None and not 1 <= booking_s <= LONGEST_BOOKING_S:
            problems.append(
                f"BookingDurationSeconds is {texts['BookingDurationSeconds']!r}, not 1 to {LONGEST_BOOKING_S}"
            )
            booking_s = None
        known_s = DEFAULT_VALID_S if valid_s is None else valid_s
        return cls(
            valid_s=known_s if most_s is None else min(known_s, most_s),
            booking_s=booking_default_s if booking_s is None else booking_s,
            retries=not (is_check and _read_switch(texts, "noRetry", problems, default=False)),
            reserves=not is_check or _read_switch(texts, "reserve", problems, default=True),
            counts_upcoming=not is_check or _read_switch(texts, "countUpcoming", problems, default=counts_upcoming),
            instance=texts.get("processorInstance", ""),
            problems=tuple(problems),
        )


def _read_seconds(texts: Mapping[str, str], name: str, problems: list[str]) -> float | None:
    """Whole seconds or a Go duration; None: absent or unreadable."""
    text = texts.get(name, "").strip()
    if not text:
        return None
    # More seconds than a duration can have never end; so it is with whole numbers, which Kubernetes' users write.
    read_s = min(float(text), LONGEST_S) if text.isascii() and text.isdigit() else read_duration_s(text)
    if read_s is None:
        problem = f"{name} is {quote(text)}, not a number of seconds, or out of range"
        if problem not in problems:
            problems.append(problem)
        return None
    return read_s


def _read_switch(texts: Mapping[str, str], name: str, problems: list[str], *, default: bool) -> bool:
    text = texts.get(name, "")
    if text not in {"", "true", "false"}:
        problems.append(f"{name} is {text!r}, not true or false")
    return text == "true" if text in {"true", "false"} else default
