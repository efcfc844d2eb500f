"""The class-data archive: the classes that a node loads, as Java maps them at the next start. It halves a start."""

from __future__ import annotations

import socket
import subprocess
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

import structlog

from plimsoll.local.kafka.kafka_ids import generate_kafka_id
from plimsoll.local.kafka.processes.cluster_directory import ClusterDirectory
from plimsoll.local.kafka.processes.configuration import (
    BROKER,
    CONTROL_PLANE,
    CONTROLLER,
    HOST,
    REPLICATION,
    KafkaListener,
    NodeConfiguration,
    build_properties,
    format_properties,
)
from plimsoll.local.kafka.processes.node_process import PROPERTIES, NodeProcess, build_format_command

if TYPE_CHECKING:
    from plimsoll.core.entropy import Entropy
    from plimsoll.local.kafka.processes.distribution import KafkaDistribution

log: structlog.typing.FilteringBoundLogger = structlog.get_logger(__name__)

_NODE: Final = "node"
_START_S: Final = 90.0
_SETTLE_S: Final = 1.0
_LOOK_S: Final = 0.1
_DUMP_S: Final = 90.0


def ensure_archive(distribution: KafkaDistribution, *, entropy: Entropy) -> None:
    """Make the archive if it is missing, by a node that starts and ends. Without it, nodes only start more slowly."""
    if distribution.archive.exists():
        return
    scratch = distribution.archive.with_suffix(f".{entropy.generate_suffix()}")
    try:
        with tempfile.TemporaryDirectory() as directory:
            _run_node(distribution, Path(directory), scratch, entropy)
        if scratch.exists():
            scratch.rename(distribution.archive)
    finally:
        scratch.unlink(missing_ok=True)


def _run_node(distribution: KafkaDistribution, root: Path, scratch: Path, entropy: Entropy) -> None:
    cluster = ClusterDirectory(root, generate_kafka_id(entropy), entropy=entropy)
    cluster.choose_controllers([0])
    (controller,) = cluster.controllers
    port = cluster.choose_ports(_NODE, [REPLICATION])[REPLICATION]
    configuration = NodeConfiguration(
        node_id=controller.node_id,
        roles=(BROKER, CONTROLLER),
        controllers=(f"{HOST}:{controller.port}",),
        log_dirs=cluster.prepare_log_dirs(_NODE, ["data"], uid="", keeps_data=True),
        control_plane=KafkaListener(name=CONTROL_PLANE, port=controller.port),
        listeners=(KafkaListener(name=REPLICATION, port=port),),
    )
    cluster.write_file(_NODE, PROPERTIES, format_properties(build_properties(configuration)).encode())
    formatted = subprocess.run(  # noqa: S603 - the java on PATH, with words from here
        build_format_command(distribution, cluster.get_node(_NODE), cluster.cluster_id, controller.format_voter()),
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    if formatted.returncode != 0:
        log.warning("kafka.no_archive", problem=(formatted.stdout + formatted.stderr)[-500:])
        return
    process = NodeProcess(distribution, cluster.get_node(_NODE))
    process.dump_archive = scratch
    process.start()
    try:
        _wait_for(process, port)
    finally:
        process.stop(within_s=_DUMP_S)


def _wait_for(process: NodeProcess, port: int) -> None:
    until_s = time.monotonic() + _START_S
    while process.is_running and time.monotonic() < until_s:
        with socket.socket() as trying:
            if trying.connect_ex((HOST, port)) == 0:
                time.sleep(_SETTLE_S)
                return
        time.sleep(_LOOK_S)
    log.warning("kafka.no_archive", problem=process.read_log()[-500:])
