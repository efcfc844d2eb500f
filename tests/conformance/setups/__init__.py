"""What happened between the recorded requests: by id, the steps before it, and those while it was being answered."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.conformance.setups import definitions, lifecycles, objects, tables

if TYPE_CHECKING:
    from tests.conformance.setups.steps import Step

BEFORE: dict[str, list[Step]] = {**objects.BEFORE, **lifecycles.BEFORE, **tables.BEFORE, **definitions.BEFORE}
DURING: dict[str, list[Step]] = lifecycles.DURING
LONG_BODIES: dict[str, bytes] = objects.LONG_BODIES
HEADERS_AS_SENT: dict[str, dict[str, str | None]] = objects.HEADERS_AS_SENT
STATUS_BEHIND_TABLES: dict[str, dict[str, Any]] = tables.STATUS_BEHIND_TABLES
