"""The options of an autoscaler that runs in the cluster, for commands that plan as it does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from plimsoll.cli.shared.connection import run_with_client
from plimsoll.cli.shared.output import Output

if TYPE_CHECKING:
    from collections.abc import Mapping

    from plimsoll.cli.shared.connection import Connection
    from plimsoll.kube.client import Client

_OF_THE_PROCESS: Final = frozenset({"address", "dry-run", "kubeconfig", "kubernetes", "leader-elect", "profiling"})
"""Options of the process that runs, not of its plans."""


def read_active_options(connection: Connection, namespace: str, output: Output) -> dict[str, Any]:
    """The options that a running autoscaler reports in its status; empty if there is none."""
    from plimsoll.cli.nodes.nodes import STATUS_MAP
    from plimsoll.kube.errors import NotFound
    from plimsoll.nodes.reporting.status.configmap import read_options_annotation
    from plimsoll.objects.api.core import ConfigMap

    async def read_options(client: Client) -> dict[str, Any]:
        try:
            found = await client.get(ConfigMap, STATUS_MAP, namespace=namespace)
        except NotFound:
            return {}
        return read_options_annotation(found.metadata.annotations) or {}

    return run_with_client(connection, read_options, is_silent=output in {Output.JSON, Output.YAML})


def select_planning_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options that another process needs to make the same plans."""
    return {name: value for name, value in options.items() if name not in _OF_THE_PROCESS}
