"""No request made from our own OpenAPI, however wrong, breaks the server: `PLIMSOLL_FUZZ_REQUESTS` says how many."""

from __future__ import annotations

import os

from tests.conformance.fuzz_runs import fuzzed

REQUESTS = int(os.environ.get("PLIMSOLL_FUZZ_REQUESTS", "3000"))


def test_no_request_is_answered_with_an_error_a_real_server_does_not_give():
    offences = fuzzed(REQUESTS, seed=1)
    assert not offences, "\n\n".join(f"{offence.request}\n{offence.answer}" for offence in offences[:10])
