"""Runs of many falsified answers log thousands of warnings, which take longer to write than the runs themselves."""

from __future__ import annotations

import logging

import pytest
import structlog


@pytest.fixture(autouse=True)
def silence_logs() -> None:
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
