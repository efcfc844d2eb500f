"""Objects as deep as the front door lets them in are tracked and applied; nothing runs out of stack."""

from __future__ import annotations

from typing import Any

from plimsoll.local.apiserver.apply.field_manager import Applied, FieldManager
from plimsoll.local.apiserver.apply.typed.schemas import TypeSchema
from plimsoll.objects.schema.json_values import MAX_NESTING
from tests.local.apiserver.apply.recordings import NOW

_FREE = FieldManager({"ex.com/v1": TypeSchema.from_definition(None)}, api_version="ex.com/v1", kind="Free")


def _nested(depth: int, leaf: Any) -> Any:
    value = leaf
    for _ in range(depth):
        value = {"a": value}
    return value


def _free(spec: Any) -> dict[str, Any]:
    return {"apiVersion": "ex.com/v1", "kind": "Free", "metadata": {"name": "f", "uid": "u"}, "spec": spec}


def test_the_deepest_object_can_be_written_and_applied() -> None:
    depth = MAX_NESTING - 2
    live = _FREE.update(None, _free(_nested(depth, {"x": 1})), manager="one", now=NOW)
    written = _FREE.update(live, _free(_nested(depth, {"x": 2})), manager="two", now=NOW)
    assert [entry["manager"] for entry in written["metadata"]["managedFields"]] == ["one", "two"]
    applied = _FREE.apply(written, _free(_nested(depth, {"y": 1})), manager="three", force=False, now=NOW)
    assert isinstance(applied, Applied)
    assert applied.value["spec"] == _nested(depth, {"x": 2, "y": 1})
    again = _FREE.apply(applied.value, _free({}), manager="three", force=False, now=NOW)
    assert isinstance(again, Applied)
    assert again.value["spec"] == _nested(depth, {"x": 2})


def test_a_map_of_very_many_entries() -> None:
    data = {f"key-{index}": "v" for index in range(50_000)}
    live = _FREE.update(None, _free(data), manager="one", now=NOW)
    applied = _FREE.apply(live, _free({"one-more": "v"}), manager="two", force=False, now=NOW)
    assert isinstance(applied, Applied)
    assert len(applied.value["spec"]) == 50_001
