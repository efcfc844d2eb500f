"""What the status of a TidbCluster shows of its stores: which are Up, which are silent, which are leaving."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from plimsoll.objects.api.tidb import TidbCluster, TidbClusterAutoScaler
from plimsoll.objects.codec.decoding import RawObject, convert_object
from plimsoll.tidb.model.components import Component
from plimsoll.tidb.observing.component_state import observe_component
from plimsoll.tidb.observing.observer import Observed
from plimsoll.tidb.wire.annotations import build_cluster_labels
from tests.cli.tidb.tidb_commands import autoscaler, cluster

if TYPE_CHECKING:
    from plimsoll.tidb.model.reconcile_types import ObservedComponent


def raw(of: Any, body: dict[str, Any]) -> RawObject[Any]:
    view = convert_object(of, body)
    assert isinstance(view, of)
    return RawObject(view=view, raw=json.dumps(body).encode())


def sight(*states: str, is_reported: bool = True, component: Component = Component.TIKV) -> ObservedComponent:
    """A base and a group, both with stores in these states."""
    stores = {str(i): {"id": str(i), "state": state} for i, state in enumerate(states)}
    status = {"tikv": {"stores": stores} if is_reported else {}}
    base, made = {**cluster(), "status": status}, {**cluster(), "status": status}
    labels = build_cluster_labels(base="db", autoscaler="as1", component=component, group="g")
    made["metadata"] = {"name": "auto-x", "namespace": "prod", "labels": labels}
    scaler = raw(TidbClusterAutoScaler, autoscaler(tikv={}))
    observed = Observed(scaler=scaler, base=raw(TidbCluster, base), clusters=(raw(TidbCluster, made),))
    return observe_component(observed, component, effective=scaler.view, registered={"db": 7})


def test_silent_stores_are_present_and_leaving_ones_are_distinguished():
    seen = sight("Up", "Disconnected", "Down", "Offline")
    (group,) = seen.groups
    assert (group.registered, group.present, group.offline) == (1, 3, 1)
    assert (seen.base.registered, seen.base.present) == (1, 3)


def test_where_the_status_is_silent_nothing_is_made_up():
    seen = sight("Up", is_reported=False)
    assert (seen.base.registered, seen.base.present) == (7, None)
    assert [(group.present, group.offline) for group in seen.groups] == [(None, 0)]


def test_servers_are_no_stores():
    (group,) = sight("Up", "Offline", component=Component.TIDB).groups
    assert (group.present, group.offline) == (None, 0)
