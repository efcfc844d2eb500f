"""Durations as text, in Go's spelling."""

from __future__ import annotations


def format_duration(seconds: float) -> str:
    """A duration as Go writes it: 15m0s, 1h0m10s, 1.5s."""
    minutes, rest = divmod(round(seconds, 3), 60)
    shown = f"{rest:.3f}".rstrip("0").rstrip(".") + "s"
    hours, minutes = divmod(int(minutes), 60)
    if hours:
        return f"{hours}h{minutes}m{shown}"
    return f"{minutes}m{shown}" if minutes else shown
