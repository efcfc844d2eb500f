"""Acceptance scenarios of the operator run twice: with our engine, and with a recorded Cruise Control."""

from __future__ import annotations

import pytest

from tests.kafka.controllers import operator_bench


@pytest.fixture(params=["plimsoll", "cruise-control"])
def engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """What plans and moves. `OperatorBench` is made with it."""
    monkeypatch.setattr(operator_bench, "ENGINE", request.param)
    return str(request.param)
