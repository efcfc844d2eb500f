"""The files of Kafka nodes: properties, ports and ids, and what a pod leaves behind."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import pytest

from plimsoll.core.errors import InvalidInput
from plimsoll.local.kafka.broker_pods import keeps_data, read_topology_key
from plimsoll.local.kafka.kafka_ids import build_cluster_id, generate_kafka_id
from plimsoll.local.kafka.processes.cluster_directory import ClusterDirectory
from plimsoll.local.kafka.processes.configuration import (
    CONTROL_PLANE,
    REPLICATION,
    KafkaListener,
    NodeConfiguration,
    build_internal_listener,
    build_listener,
    build_properties,
    format_properties,
    read_listeners,
    read_settings,
)
from plimsoll.objects.kafka_security import InternalSecurity
from plimsoll.runtime.entropy import SeededEntropy


def build_node(*roles: str, **changes: Any) -> dict[str, str]:
    fields: dict[str, Any] = {
        "node_id": 3,
        "roles": roles,
        "controllers": ("127.0.0.1:20000",),
        "log_dirs": ("/a", "/b"),
        "control_plane": KafkaListener(name=CONTROL_PLANE, port=20001),
        "listeners": (KafkaListener(name=REPLICATION, port=20002),) if "broker" in roles else (),
    }
    return build_properties(NodeConfiguration(**{**fields, **changes}))


def test_a_broker_listens_for_brokers_and_a_controller_for_nodes():
    broker = build_node("broker", rack="zone-a")
    assert broker["listeners"] == broker["advertised.listeners"] == "REPLICATION-9091://127.0.0.1:20002"
    assert (broker["broker.rack"], broker["log.dirs"]) == ("zone-a", "/a,/b")
    controller = build_node("controller")
    assert controller["listeners"] == "CONTROLPLANE-9090://127.0.0.1:20001"
    assert "advertised.listeners" not in controller
    both = build_node("broker", "controller")
    assert both["process.roles"] == "broker,controller"
    assert both["listeners"] == f"{controller['listeners']},{broker['listeners']}"


def test_settings_of_the_user_change_defaults_but_not_what_the_node_is():
    config = {"num.io.threads": 8, "auto.create.topics.enable": True, "node.id": 7, "log.dirs": "/etc", "bad": []}
    node = build_node("broker", settings=read_settings(config))
    assert (node["num.io.threads"], node["auto.create.topics.enable"]) == ("8", "true")
    assert (node["node.id"], node["log.dirs"]) == ("3", "/a,/b")
    assert "bad" not in node


def test_a_value_cannot_add_a_property():
    assert format_properties({"a": "1\nlog.dirs=/etc", "b": "c\\d"}) == "a=1\\nlog.dirs=/etc\nb=c\\\\d\n"


@pytest.mark.parametrize(
    ("listeners", "path"),
    [
        ({}, "spec.kafka.listeners"),
        ([{"name": "a,b", "port": 9092}], "spec.kafka.listeners[0].name"),
        ([{"name": "plain", "port": True}], "spec.kafka.listeners[0].port"),
        ([{"name": "plain", "port": 9092, "tls": "yes"}], "spec.kafka.listeners[0].tls"),
        ([{"name": "plain", "port": 9092, "authentication": "tls"}], "spec.kafka.listeners[0].authentication"),
        ([{"name": "plain", "port": 9092}] * 2, "spec.kafka.listeners"),
    ],
)
def test_a_wrong_listener_is_named(listeners: Any, path: str):
    with pytest.raises(InvalidInput) as refused:
        read_listeners(listeners)
    assert refused.value.path == path


def test_listeners_have_the_security_that_the_kafka_asks_for():
    stores = {"ssl.keystore.location": "/key"}
    (spec,) = read_listeners([{"name": "tls", "port": 9093, "tls": True, "authentication": {"type": "scram-sha-512"}}])
    listener = build_listener(spec, 20003, stores)
    internal = build_internal_listener(REPLICATION, 20002, InternalSecurity(), stores)
    node = build_node("broker", listeners=(internal, listener))
    protocols = dict(pair.split(":") for pair in node["listener.security.protocol.map"].split(","))
    assert (protocols[REPLICATION], protocols["TLS-9093"]) == ("SSL", "SASL_SSL")
    assert node["listener.name.replication-9091.ssl.client.auth"] == "required"
    assert node["listener.name.tls-9093.ssl.client.auth"] == "none"
    assert node["listener.name.tls-9093.sasl.enabled.mechanisms"] == "SCRAM-SHA-512"
    open_internal = build_internal_listener(REPLICATION, 20002, InternalSecurity(is_encrypted=False), {})
    assert (open_internal.protocol, open_internal.settings) == ("PLAINTEXT", {})
    (other,) = read_listeners([{"name": "tls", "port": 9093, "tls": True, "authentication": {"type": "oauth"}}])
    with pytest.raises(InvalidInput, match="oauth"):
        build_listener(other, 20003, stores)


def test_ids_and_ports_are_chosen_once_and_a_port_in_use_is_replaced(tmp_path: Path):
    cluster = ClusterDirectory(tmp_path, "first", entropy=SeededEntropy("ids"))
    cluster.choose_controllers([101, 100])
    ports = cluster.choose_ports("pod", ["A", "B"])
    again = ClusterDirectory(tmp_path, "second", entropy=SeededEntropy("other"))
    again.choose_controllers([7])
    assert again.cluster_id == "first"
    assert [controller.node_id for controller in again.controllers] == [100, 101]
    assert again.controllers == cluster.controllers
    taken = {*ports.values(), *(controller.port for controller in cluster.controllers)}
    assert len(taken) == 4
    with socket.socket() as other:
        other.bind(("127.0.0.1", ports["A"]))
        other.listen()
        moved = again.choose_ports("pod", ["A", "B"])
    assert moved["A"] not in taken
    assert moved["B"] == ports["B"]


def test_volumes_end_with_their_pod_unless_they_are_claims(tmp_path: Path):
    cluster = ClusterDirectory(tmp_path, "id", entropy=SeededEntropy("ids"))

    def prepare(uid: str, *, keeps: bool) -> bool:
        """Whether the volume has what an earlier pod wrote."""
        (path,) = cluster.prepare_log_dirs("pod", ["/var/lib/kafka/data"], uid=uid, keeps_data=keeps)
        had = (tmp_path / path / "file").exists()
        (tmp_path / path / "file").touch()
        return had

    assert [prepare("a", keeps=False), prepare("a", keeps=False), prepare("b", keeps=True)] == [False, True, True]
    cluster.remove_data("pod", uid="a")
    assert prepare("b", keeps=False)
    cluster.remove_data("pod", uid="b")
    assert not prepare("b", keeps=False)
    assert not prepare("c", keeps=False)


@pytest.mark.parametrize(
    ("storage", "expected"),
    [
        ({"type": "ephemeral"}, False),
        ({"type": "persistent-claim", "size": "1Gi"}, True),
        ({"type": "jbod", "volumes": [{"type": "ephemeral"}, {"type": "persistent-claim"}]}, True),
        ({"type": "jbod", "volumes": "none"}, False),
        (None, False),
    ],
)
def test_only_claims_outlive_a_pod(storage: Any, *, expected: bool):
    assert keeps_data(storage) is expected


@pytest.mark.parametrize(
    ("rack", "label"),
    [
        ({"topologyKey": "example.com/row"}, "example.com/row"),
        (None, "topology.kubernetes.io/zone"),
        ({"topologyKey": 7}, "topology.kubernetes.io/zone"),
    ],
)
def test_the_kafka_names_the_label_of_racks(rack: Any, label: str):
    assert read_topology_key(rack) == label


def test_a_damaged_file_is_named_and_a_relative_path_becomes_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    cluster = ClusterDirectory(Path("data"), "id", entropy=SeededEntropy("ids"))
    (log_dir,) = cluster.prepare_log_dirs("pod", ["/var/lib/kafka/data"], uid="a", keeps_data=True)
    cluster.write_meta([log_dir], 3)
    assert "cluster.id=id\nnode.id=3\n" in (tmp_path / "data/pod/var/lib/kafka/data/meta.properties").read_text()
    (tmp_path / "data" / "cluster.json").write_text("{")
    with pytest.raises(InvalidInput, match=r"cluster\.json: is damaged"):
        ClusterDirectory(Path("data"), "id", entropy=SeededEntropy("ids"))


def test_ids_have_kafkas_form():
    entropy = SeededEntropy("ids")
    ids = [generate_kafka_id(entropy) for _ in range(300)]
    assert all(len(text) == 22 and not text.startswith("-") for text in ids)
    assert build_cluster_id("00000000-0000-0000-0000-000000000001") == "AAAAAAAAAAAAAAAAAAAAAQ"
