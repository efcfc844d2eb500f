"""The clusters of `plimsoll up` that a command may name: each has a folder in the data directory, with its journal."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from plimsoll.cli.journal.files import DEFAULT_DATA
from plimsoll.core.errors import InvalidInput

ClusterOption = Annotated[
    str,
    typer.Option(
        "--cluster",
        help="A cluster of the fleet of plimsoll up: its id, or the beginning of it.",
        metavar="ID",
        show_default=False,
    ),
]
_FOLDER = "clusters"


def find_cluster_folder(data: str, cluster: str) -> str:
    """The directory of the cluster's journal, below that of `data`. Raises `InvalidInput` unless one is meant."""
    folder = Path(data or _find_data()) / _FOLDER
    ids = sorted(entry.name for entry in folder.iterdir() if entry.is_dir()) if folder.is_dir() else []
    found = [name for name in ids if name == cluster] or [name for name in ids if cluster and name.startswith(cluster)]
    if len(found) == 1:
        return str(folder / found[0])
    if not ids:
        raise InvalidInput(f"{folder} has no clusters; --data names the directory of plimsoll up", path="--cluster")
    problem = f"{len(found)} clusters begin with" if found else "no cluster has the id"
    raise InvalidInput(f"{problem} {cluster!r}; there are {', '.join(ids)}", path="--cluster")


def _find_data() -> Path:
    """./.plimsoll, or the directory of $KUBECONFIG if that has clusters."""
    import os

    beside = [Path(file).parent for file in os.environ.get("KUBECONFIG", "").split(os.pathsep) if file]
    own = Path(DEFAULT_DATA)
    return next((place for place in beside if (place / _FOLDER).is_dir()), own) if beside else own
