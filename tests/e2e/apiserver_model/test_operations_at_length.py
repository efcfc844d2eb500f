"""The state machine of `tests/conformance`, at length."""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

from tests.conformance.operation_machine import InMemory, OnDisk, OperationMachine
from tests.effort import share_of


@pytest.mark.parametrize("machine", [InMemory, OnDisk])
def test_the_server_does_what_the_model_does_for_long(machine: type[OperationMachine]):
    long = settings(max_examples=share_of(200), stateful_step_count=60, deadline=None)
    run_state_machine_as_test(machine, settings=long)
