"""The manifests of add-ons: files of the operator, one folder per add-on, read and checked at start.

A folder holds YAML or JSON, as `kubectl kustomize` writes it. The Secret with the parameters of the agent is made here,
because it holds a password; the manifests of `deploy/agent` refer to it. Of their text only `${cluster-name}` and the
like are replaced.
"""

from __future__ import annotations

import base64
import re
from typing import TYPE_CHECKING, Any, Final

from plimsoll.core.errors import InvalidInput
from plimsoll.core.values import Value
from plimsoll.fleet.model.provided import AddonKind
from plimsoll.objects.codec.manifests import read_manifests

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from plimsoll.fleet.model.provided import AddonOrder

FOLDERS: Final[Mapping[AddonKind, tuple[str, ...]]] = {
    AddonKind.KAFKA_OPERATOR: ("kafka_operator",),
    AddonKind.LOGGING: ("logging",),
    AddonKind.AGENT: ("node_autoscaler", "agent"),
}
"""The node autoscaler belongs to the agent, which reports the sizes that it may grow to."""
AGENT_NAMESPACE: Final = "kube-system"
AGENT_SECRET: Final = "plimsoll-agent-parameters"  # noqa: S105 - a name
_PLACE: Final = re.compile(r"\$\{([a-z-]+)\}")
_FIRST: Final = ("Namespace", "CustomResourceDefinition")
_LARGEST_BYTES: Final = 4 * 1024 * 1024


class AddonManifests(Value):
    """Manifests by kind of add-on. An add-on without manifests cannot be installed."""

    by_kind: dict[AddonKind, tuple[dict[str, Any], ...]] = {}

    def build(self, order: AddonOrder, places: Mapping[str, str]) -> tuple[dict[str, Any], ...]:
        """The objects of an order. Raises `InvalidInput` for an add-on without manifests."""
        if order.kind not in self.by_kind:
            folders = " and ".join(FOLDERS[order.kind])
            raise InvalidInput(f"there are no manifests of {order.kind}: name a folder with {folders} in it")
        objects = tuple(_fill(manifest, places) for manifest in self.by_kind[order.kind])
        return (_build_parameters(order), *objects) if order.kind is AddonKind.AGENT else objects

    def list_deployments(self, kind: AddonKind) -> tuple[tuple[str, str], ...]:
        """(namespace, name) of each Deployment of an add-on: the add-on is ready when they are available."""
        return tuple(
            (manifest["metadata"].get("namespace") or "default", manifest["metadata"]["name"])
            for manifest in self.by_kind.get(kind, ())
            if manifest["kind"] == "Deployment"
        )


def read_addon_manifests(folder: Path) -> AddonManifests:
    """Raises `InvalidInput`, naming the file. A folder that is missing means that the add-on has no manifests."""
    if not folder.is_dir():
        raise InvalidInput("no such folder", path=str(folder))
    by_kind: dict[AddonKind, tuple[dict[str, Any], ...]] = {}
    for kind, names in FOLDERS.items():
        there = [folder / name for name in names if (folder / name).is_dir()]
        if there:
            manifests = [manifest for place in there for manifest in _read_folder(place)]
            by_kind[kind] = tuple(sorted(manifests, key=lambda manifest: manifest["kind"] not in _FIRST))
    return AddonManifests(by_kind=by_kind)


def _read_folder(folder: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for file in sorted(folder.iterdir()):
        if file.suffix not in {".yaml", ".yml", ".json"}:
            continue
        data = file.read_bytes()
        if len(data) > _LARGEST_BYTES:
            raise InvalidInput("is larger than 4 MiB", path=str(file))
        for manifest in read_manifests(data, source=str(file)):
            if not (manifest.api_version and manifest.kind and manifest.ref.name):
                raise InvalidInput("apiVersion, kind and metadata.name must be given", path=f"{file}:{manifest.line}")
            found.append(manifest.body)
    return found


def _fill(value: Any, places: Mapping[str, str]) -> Any:
    if isinstance(value, str):
        return _PLACE.sub(lambda found: places.get(found[1], found[0]), value)
    if isinstance(value, dict):
        return {key: _fill(item, places) for key, item in value.items()}
    return [_fill(item, places) for item in value] if isinstance(value, list) else value


def _build_parameters(order: AddonOrder) -> dict[str, Any]:
    data = {name: base64.b64encode(text.encode()).decode("ascii") for name, text in sorted(order.parameters.items())}
    metadata = {"name": AGENT_SECRET, "namespace": AGENT_NAMESPACE}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": data}
