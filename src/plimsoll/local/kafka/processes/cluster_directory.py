"""The files of the nodes of one Kafka cluster on this machine.

`cluster.json` holds the first controllers with their ports and directory ids, and the ports of all nodes. Each pod has
a folder: `server.properties`, written at every start; `log`, what the process printed; `lock`, held while a process
runs there; `var/lib/kafka`, its volumes.
"""

from __future__ import annotations

import shutil
import socket
from typing import TYPE_CHECKING, Final

import msgspec

from plimsoll.core.errors import InvalidInput
from plimsoll.core.values import Value
from plimsoll.local.kafka.kafka_ids import generate_kafka_id
from plimsoll.local.kafka.processes.configuration import HOST

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable
    from pathlib import Path

    from plimsoll.core.entropy import Entropy

_CLUSTER: Final = "cluster.json"
_META: Final = "meta.properties"
_POD: Final = "pod-uid"
_FIRST_PORT, _LAST_PORT = 20_000, 32_000
"""Below the ports that the system gives to clients: they stay free while a node is down."""


class FirstController(Value):
    """A voter of the first quorum."""

    node_id: int
    port: int
    directory_id: str

    def format_voter(self) -> str:
        """As `--initial-controllers` takes it."""
        return f"{self.node_id}@{HOST}:{self.port}:{self.directory_id}"


class ClusterFile(Value):
    """What is known of a cluster before its nodes run."""

    cluster_id: str
    controllers: tuple[FirstController, ...] = ()
    """Empty: no node was started yet."""
    ports: dict[str, dict[str, int]] = {}
    """By pod and listener."""


class ClusterDirectory:
    """The files of a cluster. What is chosen once is kept: ids, and ports while they are free.

    Raises `InvalidInput` if what was kept cannot be read.
    """

    def __init__(self, root: Path, cluster_id: str, *, entropy: Entropy) -> None:
        # Nodes have a working directory of their own.
        self.root = root = root.absolute()
        self._entropy = entropy
        root.mkdir(parents=True, exist_ok=True)
        path = root / _CLUSTER
        try:
            self._file = msgspec.json.decode(path.read_bytes(), type=ClusterFile)
        except FileNotFoundError:
            self._file = ClusterFile(cluster_id=cluster_id)
        except msgspec.DecodeError as error:
            raise InvalidInput(f"is damaged: {error}", path=str(path)) from None

    @property
    def cluster_id(self) -> str:
        return self._file.cluster_id

    @property
    def controllers(self) -> tuple[FirstController, ...]:
        return self._file.controllers

    def get_node(self, pod: str) -> Path:
        """The directory of a pod. It exists."""
        directory = self.root / pod
        directory.mkdir(exist_ok=True)
        return directory

    def choose_controllers(self, node_ids: Iterable[int]) -> None:
        """The first quorum. It is chosen once."""
        if self._file.controllers:
            return
        taken = self._list_taken()
        chosen = []
        for node_id in sorted(node_ids):
            port = find_free_port(taken, self._entropy)
            taken.add(port)
            chosen.append(FirstController(node_id=node_id, port=port, directory_id=generate_kafka_id(self._entropy)))
        self._write(msgspec.structs.replace(self._file, controllers=tuple(chosen)))

    def choose_ports(self, pod: str, listeners: Iterable[str]) -> dict[str, int]:
        """A port per listener of a node that does not run: the one that it had, unless another program has it now."""
        known, taken = self._file.ports.get(pod, {}), self._list_taken()
        chosen: dict[str, int] = {}
        for listener in listeners:
            port = known.get(listener)
            if port is None or not is_port_free(port):
                port = find_free_port(taken, self._entropy)
            taken.add(port)
            chosen[listener] = port
        if chosen != known:
            self._write(msgspec.structs.replace(self._file, ports={**self._file.ports, pod: chosen}))
        return chosen

    def get_port(self, pod: str, listener: str) -> int | None:
        return self._file.ports.get(pod, {}).get(listener)

    def write_file(self, pod: str, name: str, content: bytes) -> Path:
        """Write a file of a node that only its user may read: it may hold keys."""
        path = self.get_node(pod) / name
        path.touch(mode=0o600)
        path.write_bytes(content)
        return path

    def prepare_log_dirs(self, pod: str, log_dirs: Iterable[str], *, uid: str, keeps_data: bool) -> tuple[str, ...]:
        """The paths of a node's log directories. `keeps_data`: what an earlier pod of this name wrote stays."""
        directory = self.get_node(pod)
        mark = directory / _POD
        if not keeps_data and mark.exists():
            self.remove_data(pod, other_than=uid)
        mark.write_text(uid)
        paths = [directory / path.lstrip("/") for path in log_dirs]
        for path in paths:
            path.mkdir(parents=True, exist_ok=True)
        return tuple(str(path) for path in paths)

    def write_meta(self, log_dirs: Iterable[str], node_id: int) -> None:
        """Make the log directories of a node that is not of the first quorum usable: they need no more than this."""
        for log_dir in log_dirs:
            path = self.root / log_dir / _META
            if not path.exists():
                directory_id = generate_kafka_id(self._entropy)
                path.write_text(
                    f"version=1\ncluster.id={self.cluster_id}\nnode.id={node_id}\ndirectory.id={directory_id}\n"
                )

    def is_formatted(self, log_dirs: Iterable[str]) -> bool:
        return all((self.root / log_dir / _META).exists() for log_dir in log_dirs)

    def remove_data(self, pod: str, *, uid: str = "", other_than: str = "") -> None:
        """Delete the volumes of the pod with this uid, or with any other than this one."""
        mark = self.root / pod / _POD
        held = mark.read_text() if mark.exists() else ""
        if held == uid if uid else held != other_than:
            shutil.rmtree(self.root / pod / "var", ignore_errors=True)

    def _list_taken(self) -> set[int]:
        nodes = {port for ports in self._file.ports.values() for port in ports.values()}
        return nodes | {controller.port for controller in self._file.controllers}

    def _write(self, file: ClusterFile) -> None:
        path = self.root / _CLUSTER
        scratch = path.with_suffix(".new")
        scratch.write_bytes(msgspec.json.encode(file))
        scratch.rename(path)
        self._file = file


def find_free_port(taken: Collection[int], entropy: Entropy) -> int:
    """A port that is free now and not among those taken."""
    while True:
        port = int(entropy.draw_uniform(_FIRST_PORT, _LAST_PORT))
        if port not in taken and is_port_free(port):
            return port


def is_port_free(port: int) -> bool:
    """Whether a server could listen on it now."""
    with socket.socket() as trying:
        trying.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            trying.bind((HOST, port))
        except OSError:
            return False
    return True
