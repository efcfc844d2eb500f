"""Capacities of brokers from Kafka and KafkaNodePool objects (docs/design/kafka.md 8.1).

Disk: the volumes of the pool. Processor: an override, the common value, the requests, the limits. Network: an override
or the common value. What is not set stays unknown: the brokers report their volumes, and goals of a resource without a
capacity do not apply. A wrong field is named and counts as not set.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

import msgspec

from plimsoll.core.errors import InvalidInput, InvalidQuantity
from plimsoll.core.plans import Reason
from plimsoll.core.quantity import Quantity
from plimsoll.core.values import Value
from plimsoll.kafka.model.description import LARGEST_BYTES, LARGEST_INT, LARGEST_RATE, BrokerCapacity
from plimsoll.kafka.wire.names import BROKER_ROLE

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    from plimsoll.objects.api.kafka import Kafka, KafkaNodePool

INVALID: Final = "BrokerCapacityInvalid"
DEFAULT_BROKER: Final = -1
_MIB: Final = 1 << 20
_LARGEST_CORES: Final = 1e6
_LARGEST_OVERRIDES: Final = 1_000
_CPU: Final = re.compile(r"[0-9]{1,12}([.][0-9]{0,3}|m?)")
_NETWORK: Final = re.compile(r"([0-9]{1,15})(?:([KMG])(i?))?B/s")
_SCALES: Final = {"": 0, "K": 1, "M": 2, "G": 3}


class BrokerCapacities(Value):
    """Capacities by broker id; -1 is the default of brokers that are not listed. `problems`: fields that are wrong."""

    brokers: dict[int, BrokerCapacity]
    problems: tuple[Reason, ...] = ()


def read_broker_capacities(kafka: Kafka, pools: Collection[KafkaNodePool]) -> BrokerCapacities:
    """The capacities of all brokers of a cluster."""
    return _Reader(kafka).read(pools)


class _Reader:
    """Reads one Kafka and its pools, and collects what is wrong."""

    def __init__(self, kafka: Kafka) -> None:
        self._kafka = kafka
        self._problems: list[Reason] = []

    def read(self, pools: Collection[KafkaNodePool]) -> BrokerCapacities:
        common, overrides = self._read_configured()
        spec = self._kafka.spec.kafka
        default = self._build("spec.kafka", spec.storage, spec.resources, common)
        brokers = {DEFAULT_BROKER: default}
        for pool in sorted(pools, key=lambda pool: pool.metadata.name):
            if BROKER_ROLE not in pool.spec.roles:
                continue
            where = f"KafkaNodePool {pool.metadata.name}: spec"
            capacity = self._build(where, pool.spec.storage, pool.spec.resources, common)
            brokers |= dict.fromkeys(pool.status.node_ids, capacity)
        for broker, changes in overrides.items():
            brokers[broker] = msgspec.structs.replace(brokers.get(broker, default), **changes)
        return BrokerCapacities(brokers=brokers, problems=tuple(self._problems))

    def _build(self, where: str, storage: Any, resources: Any, common: dict[str, float]) -> BrokerCapacity:
        given: dict[str, Any] = {"disk_mb": self._try(_read_disk, storage, f"{where}.storage")}
        cores = common.get("num_cores") or self._try(_read_requested_cores, resources, f"{where}.resources")
        if cores:
            given["num_cores"] = cores
        return BrokerCapacity(**(common | given))

    def _read_configured(self) -> tuple[dict[str, float], dict[int, dict[str, float]]]:
        """The common values and those of single brokers, by field of `BrokerCapacity`."""
        cruise_control = self._kafka.spec.cruise_control
        written = None if cruise_control is None else cruise_control.broker_capacity
        path = "spec.cruiseControl.brokerCapacity"
        if written is None:
            return {}, {}
        if not isinstance(written, dict):
            self._complain(path, "must be an object")
            return {}, {}
        overrides: dict[int, dict[str, float]] = {}
        for broker, changes in self._iterate_overrides(written.get("overrides"), f"{path}.overrides"):
            overrides.setdefault(broker, changes)  # The first one counts, as in Strimzi.
        return self._read_amounts(written, path), overrides

    def _iterate_overrides(self, written: Any, path: str) -> Iterator[tuple[int, dict[str, float]]]:
        if written is None:
            return
        if not isinstance(written, list):
            self._complain(path, "must be a list")
            return
        if len(written) > _LARGEST_OVERRIDES:
            self._complain(path, f"has {len(written)} entries; {_LARGEST_OVERRIDES} are used")
        for index, entry in enumerate(written[:_LARGEST_OVERRIDES]):
            place = f"{path}[{index}]"
            if not isinstance(entry, dict) or not isinstance(entry.get("brokers"), list):
                self._complain(f"{place}.brokers", "must be a list of broker ids")
                continue
            changes = self._read_amounts(entry, place)
            for number, broker in enumerate(entry["brokers"][:_LARGEST_OVERRIDES]):
                if isinstance(broker, int) and not isinstance(broker, bool) and 0 <= broker <= LARGEST_INT:
                    yield broker, changes
                else:
                    self._complain(f"{place}.brokers[{number}]", "is not a broker id")

    def _read_amounts(self, written: dict[str, Any], path: str) -> dict[str, float]:
        found = {
            "num_cores": self._try(_read_cores, written.get("cpu"), f"{path}.cpu"),
            "nw_in_kb_s": self._try(_read_network, written.get("inboundNetwork"), f"{path}.inboundNetwork"),
            "nw_out_kb_s": self._try(_read_network, written.get("outboundNetwork"), f"{path}.outboundNetwork"),
        }
        return {name: amount for name, amount in found.items() if amount is not None}

    def _try(self, read: Callable[[Any, str], float | None], written: Any, path: str) -> float | None:
        """What is written at a path; None: nothing, or something wrong."""
        if written is None:
            return None
        try:
            return read(written, path)
        except InvalidInput as error:
            self._complain(error.path, error.problem)
            return None

    def _complain(self, path: str, problem: str) -> None:
        self._problems.append(Reason(code=INVALID, message=f"{path}: {problem}", facts={"field": path}))


def _read_cores(written: Any, path: str) -> float:
    text = str(written) if isinstance(written, str | int | float) and not isinstance(written, bool) else ""
    if not _CPU.fullmatch(text):
        raise InvalidInput("must be a number of cores such as 2, 1.5 or 1500m", path=path)
    return _bound(float(text[:-1]) / 1000 if text.endswith("m") else float(text), _LARGEST_CORES, path)


def _read_network(written: Any, path: str) -> float:
    match = _NETWORK.fullmatch(written) if isinstance(written, str) else None
    if match is None:
        raise InvalidInput("must be a rate such as 10000KB/s or 10MiB/s", path=path)
    base = 1024 if match[3] else 1000
    return _bound(int(match[1]) * base ** _SCALES[match[2] or ""] / 1024, LARGEST_RATE, path)


def _read_disk(storage: Any, path: str) -> float | None:
    """The size of all volumes in MiB; None: not set, and the brokers report it."""
    if not isinstance(storage, dict):
        raise InvalidInput("must be an object", path=path)
    if storage.get("type") != "jbod":
        return _read_size(storage, path)
    volumes = storage.get("volumes")
    if not isinstance(volumes, list) or not all(isinstance(volume, dict) for volume in volumes):
        raise InvalidInput("must be a list of volumes", path=f"{path}.volumes")
    sizes = [_read_size(volume, f"{path}.volumes[{index}]") for index, volume in enumerate(volumes)]
    known = [size for size in sizes if size is not None]
    return sum(known) if known and len(known) == len(sizes) else None


def _read_size(volume: dict[str, Any], path: str) -> float | None:
    key = "sizeLimit" if volume.get("type") == "ephemeral" else "size"
    written = volume.get(key)
    return None if written is None else _read_quantity(written, LARGEST_BYTES, f"{path}.{key}") / _MIB


def _read_requested_cores(resources: Any, path: str) -> float | None:
    for kind in ("requests", "limits"):
        amounts = resources.get(kind) if isinstance(resources, dict) else None
        if isinstance(amounts, dict) and amounts.get("cpu") is not None:
            return _read_quantity(amounts["cpu"], _LARGEST_CORES, f"{path}.{kind}.cpu")
    return None


def _read_quantity(written: Any, most: float, path: str) -> float:
    try:
        return _bound(float(Quantity.parse(written).as_fraction()), most, path)
    except (InvalidQuantity, OverflowError) as error:
        raise InvalidInput(str(error), path=path) from None


def _bound(amount: float, most: float, path: str) -> float:
    if not 0 < amount <= most:
        raise InvalidInput(f"is not above 0 and at most {most:g}", path=path)
    return amount
