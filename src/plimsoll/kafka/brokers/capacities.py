"""Capacities of brokers from a file, in the format of Cruise Control's `capacity.json` (docs/design/kafka.md 8.1).

Broker -1 is the default. DISK is in MiB, or an object of log directories; CPU is percent, or `num.cores`; networks are
in KiB per second.
"""

from __future__ import annotations

import json
import math
from typing import Any, Final

import msgspec

from plimsoll.core.errors import InvalidInput
from plimsoll.core.value_parsing import read_number, read_whole_number
from plimsoll.kafka.model.description import LARGEST_AMOUNT, BrokerCapacity, ClusterDescription

DEFAULT_BROKER: Final = -1
_LARGEST_FILE: Final = 16 << 20
_NAMED_AT_MOST: Final = 20
_CORES: Final = "num.cores"
_ENTRY_FIELDS: Final = frozenset({"brokerId", "capacity", "doc"})
_KEYS: Final = frozenset({"DISK", "CPU", "NW_IN", "NW_OUT"})


def parse_capacities(text: bytes, *, name: str) -> dict[int, BrokerCapacity]:
    """Capacities by broker id. Raises `InvalidInput` with the path of the field."""
    if len(text) > _LARGEST_FILE:
        raise InvalidInput(f"is larger than {_LARGEST_FILE >> 20} MiB", path=name)
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"is not JSON: {error}", path=name) from error
    listed = document.get("brokerCapacities") if isinstance(document, dict) else None
    if not isinstance(listed, list):
        raise InvalidInput("must be a list", path=f"{name}: brokerCapacities")
    if not listed:
        raise InvalidInput("lists no broker", path=f"{name}: brokerCapacities")
    capacities: dict[int, BrokerCapacity] = {}
    for index, entry in enumerate(listed):
        path = f"{name}: brokerCapacities[{index}]"
        if not isinstance(entry, dict) or not isinstance(entry.get("capacity"), dict):
            raise InvalidInput("must have brokerId and capacity", path=path)
        broker = read_whole_number(str(entry.get("brokerId", "")), least=DEFAULT_BROKER)
        if broker is None:
            raise InvalidInput(f"{entry.get('brokerId')!r} is not a broker id", path=f"{path}.brokerId")
        if broker in capacities:
            raise InvalidInput(f"broker {broker} is listed twice", path=f"{path}.brokerId")
        capacities[broker] = _read_capacity(entry["capacity"], f"{path}.capacity")
    return capacities


def list_unknown_fields(text: bytes) -> list[str]:
    """The paths of fields that a capacity file does not have. Cruise Control's own files have `doc` for comments."""
    document = json.loads(text)
    paths = [name for name in document if name != "brokerCapacities"]
    for index, entry in enumerate(document["brokerCapacities"]):
        path = f"brokerCapacities[{index}]"
        paths += [f"{path}.{name}" for name in entry if name not in _ENTRY_FIELDS]
        cpu = entry["capacity"].get("CPU")
        paths += [f"{path}.capacity.CPU.{name}" for name in cpu if name != _CORES] if isinstance(cpu, dict) else []
    return paths[:_NAMED_AT_MOST]


def apply_capacities(description: ClusterDescription, capacities: dict[int, BrokerCapacity]) -> ClusterDescription:
    """The description with capacities. A broker that is not listed has the default, marked as estimated."""
    default = capacities.get(DEFAULT_BROKER)
    brokers = []
    for broker in description.brokers:
        capacity = capacities.get(broker.id)
        if capacity is None and default is not None:
            capacity = msgspec.structs.replace(default, is_estimated=True)
        brokers.append(msgspec.structs.replace(broker, capacity=capacity) if capacity is not None else broker)
    return msgspec.structs.replace(description, brokers=tuple(brokers))


def _read_capacity(capacity: dict[str, Any], path: str) -> BrokerCapacity:
    unknown = sorted(set(capacity) - _KEYS)
    if unknown:
        raise InvalidInput(f"is not a resource; there are {', '.join(sorted(_KEYS))}", path=f"{path}.{unknown[0]}")
    disk, cpu = capacity.get("DISK"), capacity.get("CPU")
    if disk == {}:
        raise InvalidInput("lists no log directory", path=f"{path}.DISK")
    if isinstance(disk, dict):
        disk_mb: float | None = math.fsum(
            _read_amount(size, f"{path}.DISK[{log_dir}]") for log_dir, size in disk.items()
        )
    else:
        disk_mb = None if disk is None else _read_amount(disk, f"{path}.DISK")
    cores = 1.0
    if isinstance(cpu, dict):
        cores = _read_amount(cpu.get(_CORES), f"{path}.CPU.{_CORES}")
    return BrokerCapacity(
        disk_mb=disk_mb,
        nw_in_kb_s=_read_optional(capacity.get("NW_IN"), f"{path}.NW_IN"),
        nw_out_kb_s=_read_optional(capacity.get("NW_OUT"), f"{path}.NW_OUT"),
        cpu_pct=100.0 if cpu is None or isinstance(cpu, dict) else _read_amount(cpu, f"{path}.CPU"),
        num_cores=cores,
    )


def _read_optional(written: Any, path: str) -> float | None:
    return None if written is None else _read_amount(written, path)


def _read_amount(written: Any, path: str) -> float:
    number = read_number(str(written)) if isinstance(written, (str, int, float)) else None
    if number is None or not 0 < number <= LARGEST_AMOUNT:
        shown = written if isinstance(written, (int, float)) else repr(written)[:100]
        raise InvalidInput(f"{shown} is not a number above 0 and up to {LARGEST_AMOUNT:.0e}", path=path)
    return number
