"""`plimsoll` for tests that run the Kafka operator and the brokers in separate processes.

`kafka try` runs without its operator. `run kafka` finds the Service of a cluster as a process in a pod does: the name
resolves to the brokers of the `kafka try` whose kubeconfig it has.
"""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import Any

import msgspec

from plimsoll.app.kafka.embedded_kafka import EmbeddedKafka
from plimsoll.cli.main import main
from plimsoll.kafka.brokers.access import PORT
from plimsoll.local.kafka.processes.cluster_directory import ClusterFile
from plimsoll.local.kafka.processes.configuration import REPLICATION

resolve_elsewhere = socket.getaddrinfo


def resolve(host: Any, port: Any, *options: Any, **named: Any) -> list[Any]:
    """The addresses of a name, as `socket.getaddrinfo` gives them."""
    if port != PORT or not str(host).endswith("-kafka-bootstrap.kafka.svc"):
        return resolve_elsewhere(host, port, *options, **named)
    ports = list_ports(Path(os.environ["KUBECONFIG"]).parent)
    if not ports:
        raise socket.gaierror(socket.EAI_NONAME, f"no broker is behind {host}")
    return [(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", ("127.0.0.1", number)) for number in ports]


def list_ports(data: Path) -> list[int]:
    """Where brokers listen for each other and for the operator."""
    files = [msgspec.json.decode(path.read_bytes(), type=ClusterFile) for path in data.rglob("cluster.json")]
    return [ports[REPLICATION] for file in files for ports in file.ports.values() if REPLICATION in ports]


if __name__ == "__main__":
    EmbeddedKafka.list_services = lambda self: []  # type: ignore[method-assign]  # noqa: ARG005 - it is a method
    socket.getaddrinfo = resolve
    main()
