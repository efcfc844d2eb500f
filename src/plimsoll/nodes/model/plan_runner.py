"""The port through which controllers run planning functions: in a worker thread, or inline in tests."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

PlanRunner = Callable[[Callable[[], Any]], Awaitable[Any]]
"""Calls a planning function and returns its result without blocking the event loop."""
