"""Throttles of movements under way: recorded before they are set, and removed when they are no longer needed.

Sources are in the leader list of their topic, destinations in the follower list, and only brokers of movements under
way have a rate. Entries change by APPEND and SUBTRACT, never by read and write. What another client has set (an entry,
a rate, `*`) is neither changed nor removed.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final, NamedTuple

import structlog

from plimsoll.kafka.brokers.ports import ConfigChange, ConfigOperation, ConfigResource, KafkaError, KafkaRefused
from plimsoll.kafka.executor.record import ThrottledReplica, ThrottleRate

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping

    from plimsoll.kafka.brokers.ports import ConfigEntry, KafkaAdmin
    from plimsoll.kafka.model.proposals import Proposal

    Settings = Mapping[ConfigResource, Mapping[str, ConfigEntry] | KafkaError]

log: structlog.typing.FilteringBoundLogger = structlog.get_logger(__name__)

LEADER_REPLICAS: Final = "leader.replication.throttled.replicas"
FOLLOWER_REPLICAS: Final = "follower.replication.throttled.replicas"
LEADER_RATE: Final = "leader.replication.throttled.rate"
FOLLOWER_RATE: Final = "follower.replication.throttled.rate"
LISTS: Final = (LEADER_REPLICAS, FOLLOWER_REPLICAS)
RATES: Final = (LEADER_RATE, FOLLOWER_RATE)
ALL_REPLICAS: Final = "*"
_TOPIC_GONE: Final = ("UNKNOWN_TOPIC_OR_PARTITION", "INVALID_TOPIC_EXCEPTION")
_REFUSED: Final = ("AUTHORIZATION_FAILED", "POLICY_VIOLATION", "UNSUPPORTED_VERSION")


class WantedThrottles(NamedTuple):
    """The throttles that movements need: entries of lists, and (broker, key) → rate."""

    replicas: frozenset[ThrottledReplica]
    rates: Mapping[tuple[int, str], str]


NO_THROTTLES: Final = WantedThrottles(frozenset(), {})


def compute_throttles(proposals: Iterable[Proposal], rate: int | None) -> WantedThrottles:
    """The throttles of movements under way; none without a rate."""
    if rate is None:
        return NO_THROTTLES
    replicas: set[ThrottledReplica] = set()
    rates: dict[tuple[int, str], str] = {}
    for proposal in proposals:
        added = proposal.added
        # Any of the old replicas may lead while the others catch up.
        sides = ((LEADER_REPLICAS, LEADER_RATE, proposal.old_replicas), (FOLLOWER_REPLICAS, FOLLOWER_RATE, added))
        for list_key, rate_key, brokers in sides:
            for broker in brokers if added else ():
                replica = f"{proposal.partition}:{broker}"
                replicas.add(ThrottledReplica(topic=proposal.topic, key=list_key, replica=replica))
                rates[broker, rate_key] = str(rate)
    return WantedThrottles(frozenset(replicas), rates)


class Throttles:
    """The throttles of ours on the brokers. `save` stores the record, with `replicas` and `rates` as they are."""

    def __init__(self, admin: KafkaAdmin, save: Callable[[], Awaitable[None]]) -> None:
        self._admin = admin
        self._save = save
        self.replicas: set[ThrottledReplica] = set()
        self.rates: set[ThrottleRate] = set()
        self._confirmed_replicas: set[ThrottledReplica] = set()
        self._confirmed_rates: set[ThrottleRate] = set()
        self._foreign_replicas: set[ThrottledReplica] = set()
        self._foreign_rates: set[tuple[int, str]] = set()

    @property
    def is_clear(self) -> bool:
        return not (self.replicas or self.rates)

    @property
    def foreign_rate_brokers(self) -> set[int]:
        return {broker for broker, _ in self._foreign_rates}

    def list_left_brokers(self, alive: Collection[int]) -> set[int]:
        """Brokers that do not answer and have a rate of ours."""
        return {rate.broker for rate in self.rates if rate.broker not in alive}

    # ---- setting

    def covers(self, wanted: WantedThrottles, alive: Collection[int]) -> bool:
        """Whether everything wanted is set. A rate of another client may end before ours would."""
        known = {(rate.broker, rate.key, rate.value) for rate in self._confirmed_rates}
        return wanted.replicas <= self._confirmed_replicas | self._foreign_replicas and all(
            broker not in alive or (broker, key, value) in known for (broker, key), value in wanted.rates.items()
        )

    async def set_up(self, wanted: WantedThrottles, alive: Collection[int], *, saves_always: bool = False) -> bool:
        """Record, then set what is missing. False: something could not be set, and must be tried again.

        `saves_always`: the record names the movements that are about to be sent, also without a throttle.
        """
        replicas = {entry for entry in wanted.replicas if entry not in self._confirmed_replicas}
        rates = {
            ThrottleRate(broker=broker, key=key, value=value)
            for (broker, key), value in wanted.rates.items()
            if broker in alive
        } - self._confirmed_rates
        settings = await self._read(
            {entry.topic for entry in replicas - self.replicas}, {rate.broker for rate in rates}
        )
        replicas = self._drop_foreign_replicas(replicas, settings)
        rates = self._drop_foreign_rates(rates, settings)
        self.replicas |= replicas
        self.rates |= rates
        if replicas or rates or saves_always:
            await self._save()
        changes = [*_build_entry_changes(replicas, ConfigOperation.APPEND), *map(_build_rate_change, sorted(rates))]
        answer = await self._admin.alter_configs(changes) if changes else {}
        errors = {resource: error for resource, error in answer.items() if error is not None}
        self._confirm(replicas, rates, errors)
        return not any(self._must_retry(resource, error) for resource, error in errors.items())

    def _drop_foreign_replicas(self, replicas: set[ThrottledReplica], settings: Settings) -> set[ThrottledReplica]:
        """Without entries that another client has set. One that the record names is ours."""
        self._foreign_replicas |= {
            entry for entry in replicas - self.replicas if _is_listed(entry, settings) or _is_gone(entry, settings)
        }
        return replicas - self._foreign_replicas

    def _drop_foreign_rates(self, rates: set[ThrottleRate], settings: Settings) -> set[ThrottleRate]:
        kept = set()
        for rate in rates:
            current = _find_dynamic(settings, _name_broker(rate.broker), rate.key)
            own = {known.value for known in self.rates if (known.broker, known.key) == (rate.broker, rate.key)}
            if current and current not in own:
                self._foreign_rates.add((rate.broker, rate.key))
                self.rates = {known for known in self.rates if (known.broker, known.key) != (rate.broker, rate.key)}
            else:
                self._foreign_rates.discard((rate.broker, rate.key))
                kept.add(rate)
        return kept

    def _confirm(
        self,
        replicas: set[ThrottledReplica],
        rates: set[ThrottleRate],
        errors: Mapping[ConfigResource, KafkaError],
    ) -> None:
        for entry in replicas:
            error = errors.get(_name_topic(entry.topic))
            if error is None:
                self._confirmed_replicas.add(entry)
            elif error.code in _TOPIC_GONE or error.code == "INVALID_CONFIG":  # the list became `*` in between
                self.replicas.discard(entry)
        for rate in rates:
            if _name_broker(rate.broker) not in errors:
                self._confirmed_rates.add(rate)
                same = {known for known in self.rates if (known.broker, known.key) == (rate.broker, rate.key)}
                self.rates -= same - {rate}
                self._confirmed_rates -= same - {rate}

    def _must_retry(self, resource: ConfigResource, error: KafkaError) -> bool:
        if any(word in error.code for word in _REFUSED):
            raise KafkaRefused(f"the throttle of {resource.type} {resource.name}: {error}", code=error.code)
        return error.code not in _TOPIC_GONE

    # ---- removing

    async def release(self, wanted: WantedThrottles, alive: Collection[int]) -> None:
        """Remove what is ours and no longer wanted, and read it back. What cannot be removed now stays recorded."""
        await self._release_replicas(self.replicas - wanted.replicas)
        await self._release_rates(
            {rate for rate in self.rates if (rate.broker, rate.key) not in wanted.rates and rate.broker in alive}
        )
        self._foreign_replicas &= wanted.replicas
        self._foreign_rates &= set(wanted.rates)

    async def _release_replicas(self, entries: set[ThrottledReplica]) -> None:
        if not entries:
            return
        topics = {entry.topic for entry in entries}
        settings = await self._read(topics, ())
        listed = {entry for entry in entries if _is_listed(entry, settings, is_exact=True)}
        if listed:
            await self._admin.alter_configs([*_build_entry_changes(listed, ConfigOperation.SUBTRACT)])
            settings = await self._read(topics, ())
        await self._delete_empty_lists({(entry.topic, entry.key) for entry in entries}, settings)
        removed = {
            entry
            for entry in entries
            if _is_gone(entry, settings)
            or (_is_read(entry, settings) and not _is_listed(entry, settings, is_exact=True))
        }
        self.replicas -= removed
        self._confirmed_replicas -= entries

    async def _delete_empty_lists(self, lists: set[tuple[str, str]], settings: Settings) -> None:
        """A list without entries is not the same as no list."""
        empty = [
            ConfigChange(resource=_name_topic(topic), key=key, operation=ConfigOperation.DELETE)
            for topic, key in sorted(lists)
            if _find_dynamic(settings, _name_topic(topic), key) == ""
        ]
        if empty:
            await self._admin.alter_configs(empty)

    async def _release_rates(self, rates: set[ThrottleRate]) -> None:
        if not rates:
            return
        brokers = {rate.broker for rate in rates}
        settings = await self._read((), brokers)
        ours = {rate for rate in rates if _find_dynamic(settings, _name_broker(rate.broker), rate.key) == rate.value}
        if ours:
            changes = [
                ConfigChange(resource=_name_broker(broker), key=key, operation=ConfigOperation.DELETE)
                for broker, key in sorted({(rate.broker, rate.key) for rate in ours})
            ]
            await self._admin.alter_configs(changes)
            settings = await self._read((), brokers)
        self._confirmed_rates -= rates
        for rate in rates:
            found = settings.get(_name_broker(rate.broker))
            if found is None or isinstance(found, KafkaError):
                log.info("throttle.kept", broker=rate.broker, problem="" if found is None else str(found))
            elif _find_dynamic(settings, _name_broker(rate.broker), rate.key) != rate.value:
                self.rates.discard(rate)

    async def _read(self, topics: Collection[str], brokers: Collection[int]) -> Settings:
        settings: dict[ConfigResource, Mapping[str, ConfigEntry] | KafkaError] = {}
        if topics:
            settings |= await self._admin.describe_configs([_name_topic(topic) for topic in sorted(topics)], LISTS)
        if brokers:
            settings |= await self._admin.describe_configs([_name_broker(broker) for broker in sorted(brokers)], RATES)
        return settings


def _name_topic(topic: str) -> ConfigResource:
    return ConfigResource("topic", topic)


def _name_broker(broker: int) -> ConfigResource:
    return ConfigResource("broker", str(broker))


def _find_dynamic(settings: Settings, resource: ConfigResource, key: str) -> str | None:
    """The value that is set on the resource itself; None: there is none, or it could not be read."""
    found = settings.get(resource)
    if found is None or isinstance(found, KafkaError):
        return None
    entry = found.get(key)
    return entry.value if entry is not None and entry.is_dynamic else None


def _is_listed(entry: ThrottledReplica, settings: Settings, *, is_exact: bool = False) -> bool:
    """Whether the list names the replica, or all replicas unless `is_exact`."""
    value = _find_dynamic(settings, _name_topic(entry.topic), entry.key) or ""
    listed = [replica.strip() for replica in value.split(",")]
    return entry.replica in listed or (not is_exact and ALL_REPLICAS in listed)


def _is_gone(entry: ThrottledReplica, settings: Settings) -> bool:
    found = settings.get(_name_topic(entry.topic))
    return isinstance(found, KafkaError) and found.code in _TOPIC_GONE


def _is_read(entry: ThrottledReplica, settings: Settings) -> bool:
    found = settings.get(_name_topic(entry.topic))
    return found is not None and not isinstance(found, KafkaError)


def _build_entry_changes(entries: Iterable[ThrottledReplica], operation: ConfigOperation) -> Iterable[ConfigChange]:
    lists: dict[tuple[str, str], list[str]] = defaultdict(list)
    for entry in sorted(entries):
        lists[entry.topic, entry.key].append(entry.replica)
    for (topic, key), replicas in lists.items():
        yield ConfigChange(resource=_name_topic(topic), key=key, operation=operation, value=",".join(replicas))


def _build_rate_change(rate: ThrottleRate) -> ConfigChange:
    return ConfigChange(
        resource=_name_broker(rate.broker), key=rate.key, operation=ConfigOperation.SET, value=rate.value
    )
