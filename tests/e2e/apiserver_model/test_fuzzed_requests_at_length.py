"""The fuzzer of `tests/conformance`, at length: `PLIMSOLL_FUZZ_REQUESTS`, or 100,000 requests in a long run."""

from __future__ import annotations

import os

import pytest

from tests.conformance.fuzz_runs import fuzzed
from tests.effort import share_of

REQUESTS = int(os.environ.get("PLIMSOLL_FUZZ_REQUESTS", share_of(100_000)))
_SEEDS = range(10)


@pytest.mark.parametrize("seed", _SEEDS)
def test_no_request_breaks_the_server(seed: int):
    offences = fuzzed(REQUESTS // len(_SEEDS), seed=1_000 + seed)
    assert not offences, "\n\n".join(f"{offence.request}\n{offence.answer}" for offence in offences[:10])
