"""Settings of all tests."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

# No test asserts seconds, hypothesis included: a slow machine is no failure. On CI the same change gives the same
# examples; at a desk every run tries new ones.
settings.register_profile("desk", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ci", parent=settings.get_profile("desk"), derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "desk")
