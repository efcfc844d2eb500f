"""All functions and type names an expression can use: Kubernetes' environment for CRDs of version 1.34.

Not here on purpose: `authorizer` (admission only), `cel.bind`, `reverse`, and the lists extension (`sort`, `flatten`,
…), which 1.34 does not offer to new expressions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from plimsoll.objects.cel.library import conversions, kubernetes, lists, network, operators, string_format, strings
from plimsoll.objects.cel.types import types as t
from plimsoll.objects.cel.values.values import TypeValue

if TYPE_CHECKING:
    from plimsoll.objects.cel.types.signatures import Overload

_LIBRARIES = (
    operators,
    conversions,
    strings,
    string_format,
    lists,
    network,
    kubernetes,
)


def _index_by_name() -> dict[str, list[Overload]]:
    functions: dict[str, list[Overload]] = {}
    for library in _LIBRARIES:
        for overload in library.LIBRARY.overloads:
            functions.setdefault(overload.name, []).append(overload)
    return functions


FUNCTIONS: dict[str, list[Overload]] = _index_by_name()

TYPES: dict[str, tuple[t.CelType, TypeValue]] = {
    name: (t.TypeType(of), TypeValue(name))
    for name, of in {
        "bool": t.BOOL,
        "int": t.INT,
        "uint": t.UINT,
        "double": t.DOUBLE,
        "string": t.STRING,
        "bytes": t.BYTES,
        "list": t.ListType(t.DYN),
        "map": t.MapType(t.DYN, t.DYN),
        "null_type": t.NULL,
        "type": t.TypeType(t.DYN),
        "optional_type": t.OptionalType(t.DYN),
        "google.protobuf.Timestamp": t.TIMESTAMP,
        "google.protobuf.Duration": t.DURATION,
        "kubernetes.Quantity": t.QUANTITY,
        "kubernetes.URL": t.URL,
        "kubernetes.Semver": t.SEMVER,
        "net.IP": t.IP,
        "net.CIDR": t.CIDR,
    }.items()
}
