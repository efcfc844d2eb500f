"""Where the Prometheus of a TiDB cluster is, for who was not told: PD knows, in one of two places.

First what was given, then the etcd key that deployment tools write, then PD's own setting. Asked anew every time,
because it may move.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from plimsoll.core.errors import InvalidInput
from plimsoll.core.values import Value, Wire
from plimsoll.tidb.pd.client import PdFailed
from plimsoll.web.client import check_base_url

if TYPE_CHECKING:
    from plimsoll.tidb.pd.client import Pd

_KEY: Final = "/topology/prometheus"


class NotKnown(Value):
    """No place names one."""

    problem: str


class _Place(Wire, rename={}):
    ip: str = ""
    port: int | str = 0


async def prometheus_address(given: str, pd: Pd) -> str | NotKnown:
    """The base of its address."""
    if given:
        return given
    told = await pd.key(_KEY)
    written = _of_key(told) if isinstance(told, bytes) else ""
    if not written:
        config = await pd.config()
        if isinstance(config, PdFailed):
            return NotKnown(problem=f"where Prometheus is cannot be asked: {config.problem}")
        written = config.pd_server.metric_storage
    if not written:
        return NotKnown(problem=f"no Prometheus was given, and PD knows none (key {_KEY}, pd-server.metric-storage)")
    try:
        return check_base_url(written, path="Prometheus of PD")
    except InvalidInput as error:
        return NotKnown(problem=str(error))


def _of_key(value: bytes) -> str:
    """Empty for what does not name an address."""
    try:
        place = msgspec.json.decode(value, type=_Place)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return ""
    host = f"[{place.ip}]" if ":" in place.ip else place.ip
    return f"http://{host}:{place.port}" if place.ip and place.port else ""
