"""Namespaces and what people put into them as data: ConfigMap and Secret.

Bytes that are base64 on the wire are bytes here. A secret never shows its values: not in a log, a traceback or a test.
"""

# ruff: noqa: D101 - a struct means what the API type of the same name means; docstrings only where that surprises

from typing import Any

from plimsoll.core.values import Wire
from plimsoll.objects.api.meta import Time, WireObject


class NamespaceSpec(Wire):
    finalizers: tuple[str, ...] = ()


class NamespaceCondition(Wire):
    type: str = ""
    status: str = ""
    last_transition_time: Time | None = None
    reason: str = ""
    message: str = ""


class NamespaceStatus(Wire):
    phase: str = ""
    conditions: tuple[NamespaceCondition, ...] = ()


class Namespace(WireObject):
    spec: NamespaceSpec = NamespaceSpec()
    status: NamespaceStatus = NamespaceStatus()


class ConfigMap(WireObject):
    data: dict[str, str] = {}
    binary_data: dict[str, bytes] = {}
    immutable: bool = False


class Secret(WireObject):
    """`string_data` is write-only: a server answers it as `data`."""

    type: str = ""
    data: dict[str, bytes] = {}
    string_data: dict[str, str] = {}
    immutable: bool = False

    def __repr__(self) -> str:
        keys = sorted({*self.data, *self.string_data})
        return f"Secret(namespace={self.metadata.namespace!r}, name={self.metadata.name!r}, keys={keys!r})"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        """The representation for rich, which would otherwise print every field of the struct."""
        keys = sorted({*self.data, *self.string_data})
        return [("namespace", self.metadata.namespace), ("name", self.metadata.name), ("keys", keys)]
