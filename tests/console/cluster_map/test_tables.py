"""Columns and their changes: a reader that applies the changes has what the server has."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from plimsoll.console.cluster_map.tables import Table

KEYS = st.sampled_from(["a", "b", "c", "d"])
TEXTS = st.sampled_from(["", "red", "blue"])
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), KEYS, st.tuples(st.integers(0, 2), TEXTS)),
        st.tuples(st.just("remove"), KEYS, st.none()),
        st.tuples(st.just("take"), st.none(), st.none()),
    ),
    max_size=40,
)


class Mirror:
    """What a browser keeps: it applies names first, then rows."""

    def __init__(self, table: Table) -> None:
        self.columns = table.export()
        self.names = table.names["colour"].export()

    def apply(self, names: dict[str, list[Any]], changes: dict[str, Any]) -> None:
        for slot, name in zip(names["slots"], names["values"], strict=True):
            _set(self.names, slot, name)
        for slot in changes["gone"]:
            for values in self.columns.values():
                _set(values, slot, None)
        for column, values in changes["rows"].items():
            for slot, value in zip(changes["slots"], values, strict=True):
                _set(self.columns[column], slot, value)

    def rows(self) -> set[tuple[Any, Any]]:
        return read_rows(self.columns, self.names)


def _set(values: list[Any], slot: int, value: Any) -> None:
    values.extend([None] * (slot + 1 - len(values)))
    values[slot] = value


def read_rows(columns: dict[str, list[Any]], names: list[str | None]) -> set[tuple[Any, Any]]:
    pairs = zip(columns["size"], columns["colour"], strict=True)
    return {(size, names[colour]) for size, colour in pairs if size is not None}


@given(STEPS)
def test_a_reader_that_applies_the_changes_has_the_rows(steps: list[tuple[str, str | None, Any]]) -> None:
    table = Table(("size", "colour"), shared=("colour",))
    wanted: dict[str | None, tuple[int, str]] = {}
    mirror = Mirror(table)
    for verb, key, row in steps:
        if verb == "put":
            table.put(key, row)
            wanted[key] = row
        elif verb == "remove":
            table.remove(key)
            wanted.pop(key, None)
        else:
            mirror.apply(table.names["colour"].take_changes(), table.take_changes())
            assert mirror.rows() == set(wanted.values())
    assert read_rows(table.export(), table.names["colour"].export()) == set(wanted.values())
    assert len(table) == len(wanted)


def test_the_same_row_is_no_change() -> None:
    table = Table(("size", "colour"), shared=("colour",))
    table.put("a", (1, "red"))
    table.take_changes()
    table.put("a", (1, "red"))
    assert not table.has_changes


def test_a_name_that_no_row_uses_is_dropped() -> None:
    table = Table(("size", "colour"), shared=("colour",))
    for number in range(1_000):
        table.put("a", (1, f"colour {number}"))
    assert len(table.names["colour"].export()) <= 2
