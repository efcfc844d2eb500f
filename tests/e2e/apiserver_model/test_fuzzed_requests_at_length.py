"""The fuzzer of `tests/conformance`, at length: 100,000 requests, or as many as `PLIMSOLL_FUZZ_REQUESTS` says."""

from __future__ import annotations

import os

import pytest

from tests.conformance.fuzz_runs import fuzzed

REQUESTS = int(os.environ.get("PLIMSOLL_FUZZ_REQUESTS", "100000"))
_SEEDS = range(10)


@pytest.mark.parametrize("seed", _SEEDS)
def test_no_request_breaks_the_server(seed: int):
    offences = fuzzed(REQUESTS // len(_SEEDS), seed=1_000 + seed)
    assert not offences, "\n\n".join(f"{offence.request}\n{offence.answer}" for offence in offences[:10])
