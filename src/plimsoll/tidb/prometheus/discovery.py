"""Finds the Prometheus of a TiDB cluster.

The order is: the given address, the etcd key that deployment tools write, PD's own setting. PD is asked every time,
because the address may change.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from plimsoll.core.errors import InvalidInput
from plimsoll.core.values import Value, Wire
from plimsoll.tidb.pd.client import PdFailed
from plimsoll.web.client import check_base_url

if TYPE_CHECKING:
    from plimsoll.tidb.pd.client import PdClient

_KEY: Final = "/topology/prometheus"


class PrometheusNotFound(Value):
    """No Prometheus address is known."""

    problem: str


class _Address(Wire, rename={}):
    ip: str = ""
    port: int | str = 0


async def find_prometheus(given: str, pd: PdClient) -> str | PrometheusNotFound:
    """The base of its address."""
    if given:
        return given
    value = await pd.get_key(_KEY)
    address = _read_key(value) if isinstance(value, bytes) else ""
    if not address:
        config = await pd.get_config()
        if isinstance(config, PdFailed):
            return PrometheusNotFound(problem=f"the address of Prometheus is unknown: {config.problem}")
        address = config.pd_server.metric_storage
    if not address:
        return PrometheusNotFound(
            problem=f"no Prometheus address is given, and PD has none (key {_KEY}, pd-server.metric-storage)"
        )
    try:
        return check_base_url(address, path="Prometheus of PD")
    except InvalidInput as error:
        return PrometheusNotFound(problem=str(error))


def _read_key(value: bytes) -> str:
    """The address in the etcd key; empty if it has none."""
    try:
        address = msgspec.json.decode(value, type=_Address)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return ""
    host = f"[{address.ip}]" if ":" in address.ip else address.ip
    return f"http://{host}:{address.port}" if address.ip and address.port else ""
