"""The time of a manager's last write, also from odd entries."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from plimsoll.kube.managed_fields import find_last_write_time

START = datetime(2026, 1, 1, tzinfo=UTC)
REPLICAS = ("spec", "tikv", "replicas")


def entry(**more: Any) -> dict[str, Any]:
    fields: dict[str, Any] = {"f:spec": {"f:tikv": {"f:replicas": {}}}}
    return {"manager": "us", "operation": "Update", "time": "2026-01-01T00:00:10Z", "fieldsV1": fields, **more}


@pytest.mark.parametrize(
    ("entries", "expected"),
    [
        ([entry()], START + timedelta(seconds=10)),
        ([entry(), entry(time="2026-01-01T00:00:20Z")], START + timedelta(seconds=20)),
        ([entry(manager="others")], None),
        ([entry(fieldsV1={"f:spec": {"f:tidb": {"f:replicas": {}}}})], None),
        ([entry(time=None)], None),
        ([entry(time="soon")], None),
        ([entry(fieldsV1=[])], None),
        (["odd"], None),
        (None, None),
    ],
    ids=["ours", "the later of two", "theirs", "another field", "no time", "odd time", "odd fields", "odd", "none"],
)
def test_when_a_field_was_written(entries: Any, expected: Any) -> None:
    raw = json.dumps({"metadata": {"managedFields": entries}}).encode()
    assert find_last_write_time(raw, REPLICAS, manager="us") == expected
