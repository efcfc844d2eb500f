"""The state of automatic rebalancing in a ConfigMap, `CLUSTER-auto-rebalancing`.

The companion never writes a Kafka, so it keeps its state here. The operator does so where Strimzi's definitions are
installed: they prune `status.cruiseControl`, and with it when a failed rebalance is tried again and who stopped it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from plimsoll.core.plans import Reason
from plimsoll.core.values import Value
from plimsoll.kafka.controllers.errors import ReconcileFailed
from plimsoll.kafka.model.auto_rebalance import AutoRebalance
from plimsoll.kafka.wire.broker_pods import build_owner_reference
from plimsoll.kafka.wire.names import CLUSTER_LABEL, build_auto_rebalance_config_map_name
from plimsoll.kafka.wire.status_views import build_strimzi_view, build_view, is_view_missing, read_status_views
from plimsoll.kube.errors import AlreadyExists, NotFound
from plimsoll.objects.api.core import ConfigMap

if TYPE_CHECKING:
    from plimsoll.kube.client import Client
    from plimsoll.objects.api.kafka import Kafka, KafkaStatus

_STATE: Final = "state.json"
_VIEW: Final = "autoRebalance.json"
_STRIMZI_VIEW: Final = "strimziAutoRebalance.json"


class StoredState(Value):
    """What is stored between two reconciles."""

    auto_rebalance: AutoRebalance = AutoRebalance()
    known: tuple[int, ...] | None = None
    """Brokers that the pools had in the last reconcile of the companion; None: there was none."""


_DECODER: Final = msgspec.json.Decoder(StoredState)


class AutoRebalanceStates:
    """The ConfigMaps of all Kafkas."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def read(self, kafka: Kafka, *, is_needed: bool = True) -> StoredState | None:
        """None: there is none. A state that cannot be read ends the reconcile: it may name brokers that wait.

        `is_needed` False: an object of a user with the name is no mistake.
        """
        name = build_auto_rebalance_config_map_name(kafka.metadata.name)
        try:
            found = await self._client.get(ConfigMap, name, namespace=kafka.metadata.namespace)
        except NotFound:
            return None
        if found.metadata.labels.get(CLUSTER_LABEL) != kafka.metadata.name:
            if not is_needed:
                return None
            where = f"configmap/{kafka.metadata.namespace}/{name}"
            message = f"{where} is not ours, and the state of automatic rebalancing needs its name: rename it"
            raise ReconcileFailed(Reason(code="ConfigMapNameConflict", message=message))
        try:
            return decode_state(found)
        except msgspec.DecodeError as error:
            message = f"configmap/{kafka.metadata.namespace}/{name}: {_STATE} cannot be read: {error}; delete it"
            raise ReconcileFailed(Reason(code="StateUnreadable", message=message)) from error

    async def write(self, kafka: Kafka, state: StoredState) -> None:
        """Write it. `read` has found that no object of a user has the name."""
        name, namespace = build_auto_rebalance_config_map_name(kafka.metadata.name), kafka.metadata.namespace
        data = {
            _STATE: msgspec.json.encode(state).decode(),
            _VIEW: msgspec.json.encode(build_view(state.auto_rebalance) or {}).decode(),
            _STRIMZI_VIEW: msgspec.json.encode(build_strimzi_view(state.auto_rebalance) or {}).decode(),
        }
        try:
            await self._client.merge_patch(ConfigMap, name, {"data": data}, namespace=namespace)
        except NotFound:
            metadata = {
                "name": name,
                "namespace": namespace,
                "labels": {CLUSTER_LABEL: kafka.metadata.name},
                "ownerReferences": [build_owner_reference(kafka, is_controller=False)],
            }
            try:
                await self._client.create(ConfigMap, {"metadata": metadata, "data": data}, namespace=namespace)
            except AlreadyExists:
                await self._client.merge_patch(ConfigMap, name, {"data": data}, namespace=namespace)


class KeptState:
    """The state of one Kafka for one reconcile of the operator: in its status, or beside it where that is pruned."""

    def __init__(self, states: AutoRebalanceStates, kafka: Kafka) -> None:
        self._states = states
        self._kafka = kafka
        self._kept: AutoRebalance | None = None
        """What the ConfigMap has; None: it is not used."""

    async def read(self) -> AutoRebalance:
        """What was stored. The ConfigMap counts if it says what Strimzi's view says."""
        stored = read_status_views(self._kafka.status)
        if not is_view_missing(self._kafka.status):
            return stored
        found = await self._states.read(self._kafka)
        self._kept = None if found is None else found.auto_rebalance
        is_current = self._kept is not None and _list_shown(self._kept) == _list_shown(stored)
        return self._kept if self._kept is not None and is_current else stored

    async def prepare_write(self, stored: AutoRebalance) -> None:
        """Keep the state before the status has it, if it is kept in the ConfigMap."""
        if self._kept is not None and self._kept != stored:
            await self._write(stored)

    async def conclude_write(self, stored: AutoRebalance, written: KafkaStatus | None) -> None:
        """`written`: the status as the server keeps it. What it has pruned is kept in the ConfigMap from now on."""
        if self._kept is None and written is not None and is_view_missing(written):
            await self._states.read(self._kafka)
            await self._write(stored)

    async def _write(self, stored: AutoRebalance) -> None:
        await self._states.write(self._kafka, StoredState(auto_rebalance=stored))
        self._kept = stored


def _list_shown(stored: AutoRebalance) -> tuple[object, ...]:
    """What Strimzi's view shows."""
    return stored.strimzi_state, sorted(stored.add_brokers), sorted(stored.remove_brokers)


def decode_state(found: ConfigMap) -> StoredState:
    """The state in a ConfigMap. Raises `msgspec.DecodeError`."""
    return _DECODER.decode(found.data.get(_STATE, ""))
