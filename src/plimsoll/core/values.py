"""The two kinds of data: `Value` (ours, always valid) and `Wire` (mirrors an API, may be partial).

Both are frozen msgspec structs: decoding into them costs a hundredth of what class-based models cost, and `gc=False`
keeps a hundred thousand pods out of the garbage collector: a pause of seconds would cost a lease. `gc=False` is safe
for data that came from JSON: it has no cycles.
"""

from __future__ import annotations

from typing import Annotated, Any, dataclass_transform

import msgspec

Int64 = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
"""A whole number of an API. Python's own are unbounded, so decoding would let any number of digits through."""

# Names whose JSON spelling is not plain camel case. msgspec's own rename="camel" writes podIp where Kubernetes writes
# podIP, and a field under a wrong name is lost without a word.
_INITIALISMS = {
    "api": "API",
    "cidr": "CIDR",
    "cidrs": "CIDRs",
    "dns": "DNS",
    "fs": "FS",
    "id": "ID",
    "ip": "IP",
    "ipc": "IPC",
    "ips": "IPs",
    "pid": "PID",
    "qos": "QOS",
    "tls": "TLS",
    "uri": "URI",
    "url": "URL",
    "urls": "URLs",
    "uuid": "UUID",
}


def to_wire_name(field: str) -> str:
    """`pod_ip` → `podIP`, `cluster_ips` → `clusterIPs`, `fs_group` → `fsGroup`: the spelling Kubernetes uses.

    A word in first place stays in lower case whatever it is; a trailing underscore (`continue_`) is Python's, not
    JSON's.
    Odd ones out are given as `msgspec.field(name=…)` where they stand, which wins over this function.
    """
    first, *rest = field.rstrip("_").split("_")
    return first + "".join(_INITIALISMS.get(word, word.capitalize()) for word in rest)


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(msgspec.field,))
class _StructMeta(msgspec.StructMeta):
    """Makes keyword-only inherited (msgspec applies it class by class) and declares it to type checkers."""

    def __new__(mcls, name: str, bases: tuple[type, ...], namespace: dict[str, Any], **config: Any) -> Any:
        return super().__new__(mcls, name, bases, namespace, **{"kw_only": True, **config})


class Value(msgspec.Struct, metaclass=_StructMeta, frozen=True, gc=False, rename=to_wire_name):
    """Base of our own data: snapshots, plans, reasons. Every field is written out, so that outputs are stable."""


class Wire(msgspec.Struct, metaclass=_StructMeta, frozen=True, gc=False, omit_defaults=True, rename=to_wire_name):
    """Base of types that mirror an external API. Unknown fields are dropped, so a `Wire` is never written whole."""
