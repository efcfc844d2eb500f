"""Load over time: the cores that a TiDB cluster needs, its stored data, and its hot instances.

`plimsoll tidb simulate` reads one from a file, the simulated cluster of `plimsoll up` from a ConfigMap, so that what
was tuned in the one can be watched in the other. The form is CSV with the columns of `COLUMNS`. Only `seconds` is
required; other missing columns are 0. `spreading` spreads the load over instances.
"""

from __future__ import annotations

import csv
import math
from bisect import bisect_right
from typing import TYPE_CHECKING, Final

from plimsoll.core.errors import InvalidInput
from plimsoll.core.values import Value

if TYPE_CHECKING:
    from collections.abc import Iterator

COLUMNS: Final = ("seconds", "tikv_cores", "tidb_cores", "storage_gib", "hot_instances", "hot_share")
_TIME: Final = COLUMNS[0]
_MOST_POINTS: Final = 100_000


class Load(Value):
    """At one moment. `hot_share` of the work belongs to `hot_instances` of TiKV; none of them: it is spread evenly."""

    tikv_cores: float = 0.0
    tidb_cores: float = 0.0
    storage_gib: float = 0.0
    hot_instances: int = 0
    hot_share: float = 0.0


IDLE: Final = Load()


class LoadPoint(Value):
    """What the load is at one time of a curve."""

    at_s: float
    load: Load


class LoadCurve(Value):
    """Points in order of time; linear between them, constant before the first and after the last.

    One that `repeats` begins again at 0 when it comes to its last point.
    """

    points: tuple[LoadPoint, ...] = ()
    repeats: bool = False

    @property
    def duration_s(self) -> float:
        return self.points[-1].at_s if self.points else 0.0

    def compute_load(self, seconds: float) -> Load:
        """The load so long after the curve's beginning."""
        if not self.points:
            return IDLE
        if self.repeats and self.duration_s > 0:
            seconds %= self.duration_s
        after = bisect_right(self.points, seconds, key=lambda point: point.at_s)
        if after == 0:
            return self.points[0].load
        if after == len(self.points):
            return self.points[-1].load
        return _interpolate(self.points[after - 1], self.points[after], seconds)


def read_curve(text: str, *, repeats: bool = False) -> LoadCurve:
    """From CSV with a first row of names; empty rows and rows that begin with `#` are passed over.

    Raises `InvalidInput`, naming the line and the column.
    """
    rows = _read_rows(text)
    number, header = next(rows, (1, []))
    _check_header(header, path=f"line {number}")
    points: list[LoadPoint] = []
    for number, row in rows:
        point = _parse_point(header, row, path=f"line {number}")
        if points and point.at_s <= points[-1].at_s:
            raise InvalidInput("is not after the row before", path=f"line {number}.{_TIME}")
        if len(points) == _MOST_POINTS:
            raise InvalidInput(f"more than {_MOST_POINTS} points", path=f"line {number}")
        points.append(point)
    if not points:
        raise InvalidInput("holds no point")
    return LoadCurve(points=tuple(points), repeats=repeats)


def _interpolate(before: LoadPoint, after: LoadPoint, seconds: float) -> Load:
    """How many instances are hot does not slide: it changes at a point."""
    part = (seconds - before.at_s) / (after.at_s - before.at_s)

    def interpolate_value(old: float, new: float) -> float:
        return old + (new - old) * part

    old, new = before.load, after.load
    return Load(
        tikv_cores=interpolate_value(old.tikv_cores, new.tikv_cores),
        tidb_cores=interpolate_value(old.tidb_cores, new.tidb_cores),
        storage_gib=interpolate_value(old.storage_gib, new.storage_gib),
        hot_instances=old.hot_instances,
        hot_share=interpolate_value(old.hot_share, new.hot_share),
    )


# ---- reading


def _read_rows(text: str) -> Iterator[tuple[int, list[str]]]:
    lines = text.removeprefix("\ufeff").splitlines()
    for number, line in enumerate(lines, 1):
        if line.strip() and not line.lstrip().startswith("#"):
            yield number, [cell.strip() for cell in next(csv.reader([line]))]


def _check_header(header: list[str], *, path: str) -> None:
    unknown = [name for name in header if name not in COLUMNS]
    if unknown:
        raise InvalidInput(f"{unknown[0]!r} is none of the columns {', '.join(COLUMNS)}", path=path)
    twice = [name for name in header if header.count(name) > 1]
    if twice:
        raise InvalidInput(f"{twice[0]} occurs twice", path=path)
    if _TIME not in header:
        raise InvalidInput(f"there is no column {_TIME}", path=path)


def _parse_point(header: list[str], row: list[str], *, path: str) -> LoadPoint:
    if len(row) != len(header):
        raise InvalidInput(f"has {len(row)} cells, the first row has {len(header)}", path=path)
    cells = {name: _parse_number(cell, path=f"{path}.{name}") for name, cell in zip(header, row, strict=True)}
    hot = cells.get("hot_instances", 0.0)
    if hot != int(hot):
        raise InvalidInput(f"{hot:g} is not a whole number", path=f"{path}.hot_instances")
    share = cells.get("hot_share", 0.0)
    if share > 1:
        raise InvalidInput(f"{share:g} is not between 0 and 1", path=f"{path}.hot_share")
    load = Load(
        tikv_cores=cells.get("tikv_cores", 0.0),
        tidb_cores=cells.get("tidb_cores", 0.0),
        storage_gib=cells.get("storage_gib", 0.0),
        hot_instances=int(hot),
        hot_share=share,
    )
    return LoadPoint(at_s=cells[_TIME], load=load)


def _parse_number(cell: str, *, path: str) -> float:
    try:
        number = float(cell)
    except ValueError:
        number = math.nan
    if not math.isfinite(number) or number < 0:
        raise InvalidInput(f"{cell!r} is not a number from 0 up", path=path)
    return number
