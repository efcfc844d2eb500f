"""All objects are reconciled in order; one that fails does not stop the others."""

from __future__ import annotations

import pytest
from structlog.testing import capture_logs

from plimsoll.core.errors import PlimsollError
from plimsoll.operator.reconcile_all import FailedReconcile, reconcile_all

pytestmark = pytest.mark.asyncio


async def reconcile(namespace: str, name: str) -> str | None:
    if name == "refused":
        raise PlimsollError("refused by the server")
    if name == "crashes":
        raise KeyError("spec")
    return None if name == "gone" else f"{namespace}/{name}"


async def test_failures_and_crashes_stop_one_object_only():
    keys = [("b", "fine"), ("a", "refused"), ("a", "crashes"), ("a", "gone"), ("a", "zz")]
    with capture_logs() as entries:
        results = await reconcile_all(keys, reconcile, what="rebalance")
    crashed, refused, *others = results
    assert others == ["a/zz", "b/fine"]
    assert isinstance(crashed, FailedReconcile)
    assert (crashed.name, str(crashed.error)) == ("crashes", "unexpected KeyError: 'spec'")
    assert isinstance(refused, FailedReconcile)
    assert (refused.name, str(refused.error)) == ("refused", "refused by the server")
    assert [entry["event"] for entry in entries] == ["rebalance.crashed", "rebalance.failed"]
