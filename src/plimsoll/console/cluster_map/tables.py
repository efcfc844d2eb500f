"""Tables of columns whose rows keep their number while they live, and the rows that changed. Pure.

Fifty thousand pods as objects are ten times as large as columns, in memory and on the wire. A row has a slot number: a
change names the slot, and a slot is given again when its row is gone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Sequence


class Slots:
    """Slot numbers by key. Free slots are given again, so that columns stay short."""

    def __init__(self) -> None:
        self._slots: dict[Hashable, int] = {}
        self._free: list[int] = []
        self._end = 0

    def __len__(self) -> int:
        return len(self._slots)

    def find(self, key: Hashable) -> int | None:
        return self._slots.get(key)

    def take(self, key: Hashable) -> int:
        """The slot of a new key."""
        if self._free:
            slot = self._free.pop()
        else:
            slot, self._end = self._end, self._end + 1
        self._slots[key] = slot
        return slot

    def give_back(self, key: Hashable) -> int | None:
        """Free the slot of a key; None if it has none."""
        slot = self._slots.pop(key, None)
        if slot is not None:
            self._free.append(slot)
        return slot


class Names:
    """Text that many rows share, each once: the rows hold its number. A name that no row uses is dropped."""

    def __init__(self) -> None:
        self._slots = Slots()
        self._names: list[str | None] = []
        self._uses: list[int] = []
        self._changed: set[int] = set()

    def use(self, name: str) -> int:
        """The number of a name, which one more row uses."""
        number = self._slots.find(name)
        if number is None:
            number = self._slots.take(name)
            if number == len(self._names):
                self._names.append(None)
                self._uses.append(0)
            self._names[number] = name
            self._changed.add(number)
        self._uses[number] += 1
        return number

    def release(self, number: int) -> None:
        """Count one use less. A name that no row uses gives its number back."""
        self._uses[number] -= 1
        if not self._uses[number]:
            self._slots.give_back(self._names[number])
            self._names[number] = None

    def export(self) -> list[str | None]:
        return list(self._names)

    def take_changes(self) -> dict[str, list[Any]]:
        """The names that got a number since the last call."""
        numbers = sorted(number for number in self._changed if self._names[number] is not None)
        self._changed.clear()
        return {"slots": numbers, "values": [self._names[number] for number in numbers]}


class Table:
    """Rows by key. Columns named in `shared` hold numbers of names; the others hold plain values."""

    def __init__(self, columns: Sequence[str], *, shared: Iterable[str] = ()) -> None:
        self.names = {column: Names() for column in shared}
        self._columns: dict[str, list[Any]] = {column: [] for column in columns}
        self._slots = Slots()
        self._changed: set[int] = set()
        self._gone: set[int] = set()

    def __len__(self) -> int:
        return len(self._slots)

    def put(self, key: Hashable, row: Sequence[Any]) -> None:
        """Insert or replace the row of a key. A row that is the same is no change."""
        slot = self._slots.find(key)
        if slot is None:
            self._insert(self._slots.take(key), row)
        else:
            self._replace(slot, row)

    def remove(self, key: Hashable) -> None:
        slot = self._slots.give_back(key)
        if slot is None:
            return
        for column, values in self._columns.items():
            if column in self.names:
                self.names[column].release(values[slot])
            values[slot] = None
        self._changed.discard(slot)
        self._gone.add(slot)

    def export(self) -> dict[str, list[Any]]:
        """All columns. A slot without a row holds null."""
        return {column: list(values) for column, values in self._columns.items()}

    def take_changes(self) -> dict[str, Any]:
        """The rows that changed since the last call, and the slots whose rows are gone."""
        slots, gone = sorted(self._changed), sorted(self._gone)
        self._changed.clear()
        self._gone.clear()
        rows = {column: [values[slot] for slot in slots] for column, values in self._columns.items()}
        return {"slots": slots, "gone": gone, "rows": rows}

    @property
    def has_changes(self) -> bool:
        return bool(self._changed or self._gone)

    def _insert(self, slot: int, row: Sequence[Any]) -> None:
        for (column, values), value in zip(self._columns.items(), row, strict=True):
            if slot == len(values):
                values.append(None)
            values[slot] = self.names[column].use(value) if column in self.names else value
        self._gone.discard(slot)
        self._changed.add(slot)

    def _replace(self, slot: int, row: Sequence[Any]) -> None:
        for (column, values), value in zip(self._columns.items(), row, strict=True):
            if column in self.names:
                number = self.names[column].use(value)
                self.names[column].release(number if values[slot] == number else values[slot])
                value = number  # noqa: PLW2901 - the number stands for the name from here on
            if values[slot] != value:
                values[slot] = value
                self._changed.add(slot)
