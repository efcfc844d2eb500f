"""The files of `plimsoll plan`, combined: parts of a scenario, dumps of `kubectl get`, and a catalogue.

A dump is a `List` as kubectl prints it, a typed list (`PodList`) as the API serves it, or single objects, in JSON or
YAML.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

import msgspec

from plimsoll.core.errors import InvalidInput, UnreadableDocument
from plimsoll.local.cloud.catalogue import Catalogue, list_shipped_names, load_shipped_catalogue, read_catalogue
from plimsoll.objects.api.simulated_cloud import GROUP_LABEL
from plimsoll.objects.codec.manifests import read_documents
from plimsoll.simulation.document import describe_value, join_path
from plimsoll.simulation.files.scenario_reader import read_scenario_dump
from plimsoll.simulation.plan.group_templates import add_node_shape

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from plimsoll.objects.api.simulated_cloud import MachineType
    from plimsoll.simulation.scenario import GroupEntry, Json, Scenario

_LISTS: Final = ("machineTypes", "nodeGroups", "pods", "objects")
_MANY_DIGITS: Final = re.compile(rb"[0-9]{19}|[0-9]_|0[xX]")
"""Only where there are so many in a row, or other spellings of YAML, can a number be too wide."""
_WIDEST: Final = (1 << 63) - 1
_POOL_LABELS: Final = (
    "eks.amazonaws.com/nodegroup",
    "alpha.eksctl.io/nodegroup-name",
    "cloud.google.com/gke-nodepool",
    "kubernetes.azure.com/agentpool",
    "agentpool",
    "kops.k8s.io/instancegroup",
    "node.kubernetes.io/nodegroup",
)
"""How managed clusters write on a node which group it belongs to."""


def read_plan_files(files: Sequence[tuple[str, bytes]], *, catalogues: Sequence[str] = ()) -> Scenario:
    """One scenario of all of them; raises `InvalidInput` with the place of what is wrong. Steps are left out."""
    merged: Json = {}
    for source, data in files:
        read = read_documents(data, source=source, letters_are_text=True)
        documents = [document for _, document in read if document is not None]
        if not documents:
            raise UnreadableDocument("is empty; give a scenario or the output of kubectl get -o json", path=source)
        if _MANY_DIGITS.search(data):
            _check_integers(documents, source)
        for document in documents:
            _merge(merged, document, source=source)
    for catalogue in catalogues:
        merged.setdefault("machineTypes", []).extend(_read_types(catalogue, merged))
    merged.pop("steps", None)
    if isinstance(merged.get("objects"), list):
        merged["objects"] = _remove_duplicates(merged["objects"])
    if isinstance(merged.get("nodeGroups"), list):
        merged["nodeGroups"] = _with_shapes(merged)
    return _with_their_nodes(read_scenario_dump(merged))


def _check_integers(documents: Sequence[Any], source: str) -> None:
    """No field of Kubernetes is wider than 64 bits, and no arithmetic of plans."""
    waiting: list[tuple[str, Any]] = [("", document) for document in documents]
    while waiting:
        path, value = waiting.pop()
        if isinstance(value, dict):
            waiting += [(join_path(path, key), child) for key, child in value.items()]
        elif isinstance(value, list):
            waiting += [(f"{path}[{index}]", child) for index, child in enumerate(value)]
        elif isinstance(value, int) and abs(value) > _WIDEST:
            raise InvalidInput(f"{describe_value(value)} is wider than 64 bits", path=path or source)


# ---- documents


def _merge(merged: Json, document: Any, *, source: str) -> None:
    if not isinstance(document, dict):
        message = f"is {describe_value(document)}: neither a scenario nor a Kubernetes object"
        raise UnreadableDocument(message, path=source)
    if "kind" in document:
        merged.setdefault("objects", []).extend(_iterate_objects(document, source))
        return
    for name, value in document.items():
        if name in _LISTS and isinstance(value, list):
            before = merged.setdefault(name, [])
            if not isinstance(before, list):
                raise InvalidInput(f"must be a list, is {describe_value(before)}", path=name)
            before.extend(value)
        elif name == "options" and isinstance(value, dict) and isinstance(merged.get(name, {}), dict):
            merged.setdefault(name, {}).update(value)
        elif name in merged and value is not None and merged[name] != value:
            message = f"{name} is {describe_value(merged[name])} in another file and {describe_value(value)} here"
            raise InvalidInput(message, path=source)
        elif value is not None:
            merged[name] = value


def _iterate_objects(document: Json, source: str) -> Iterator[Json]:
    """The object, or those of a list, each knowing its kind."""
    kind = document["kind"]
    if not (isinstance(kind, str) and kind.endswith("List") and "items" in document):
        yield _read_object(document, source)
        return
    items = document["items"] or []
    if not isinstance(items, list):
        raise UnreadableDocument(f"items must be a list, is {describe_value(items)}", path=source)
    typed = {"kind": kind.removesuffix("List"), "apiVersion": document.get("apiVersion", "v1")}
    for index, item in enumerate(items):
        where = f"{source}: items[{index}]"
        if not isinstance(item, dict):
            raise UnreadableDocument(f"is {describe_value(item)}, not an object", path=where)
        yield _read_object(item if "kind" in item or kind == "List" else {**typed, **item}, where)


def _read_object(body: Json, where: str) -> Json:
    metadata = body.get("metadata")
    if not isinstance(body.get("kind"), str) or not isinstance(metadata, dict):
        raise UnreadableDocument("is not a Kubernetes object: kind or metadata is missing", path=where)
    if not isinstance(metadata.get("name"), str) or not metadata["name"]:
        raise UnreadableDocument(f"metadata.name of this {body['kind'][:64]} is missing", path=where)
    return {"apiVersion": "v1", **body}


def _remove_duplicates(objects: list[Any]) -> list[Any]:
    """Two dumps may contain the same object; if they differ, it is unknown which is right."""
    found: dict[Any, Any] = {}
    for index, body in enumerate(objects):
        identity = _get_identity(body)
        if identity is None:
            found[index] = body
        elif found.setdefault(identity, body) != body:
            raise InvalidInput(
                f"{identity[0]} {identity[2]} occurs twice with different content", path=f"objects[{index}]"
            )
    return list(found.values())


def _get_identity(body: Any) -> tuple[str, ...] | None:
    metadata = body.get("metadata") if isinstance(body, dict) else None
    if not isinstance(metadata, dict):
        return None
    return (str(body.get("kind")), str(metadata.get("namespace") or "default"), str(metadata.get("name")))


# ---- catalogues


def _read_types(name: str, merged: Json) -> list[Json]:
    """Read the types of a catalogue, without those that a file or an earlier catalogue describes."""
    given = merged.get("machineTypes")
    listed = given if isinstance(given, list) else []
    own = {entry["name"] for entry in listed if isinstance(entry, dict) and isinstance(entry.get("name"), str)}
    return [
        _write(machine_type) for machine_type in _load_catalogue(name).machine_types if machine_type.name not in own
    ]


def _load_catalogue(name: str) -> Catalogue:
    if name in list_shipped_names():
        return load_shipped_catalogue(name)
    from pathlib import Path  # noqa: PLC0415 -- only here is a file opened

    try:
        data = Path(name).read_bytes()
    except OSError as error:
        shipped = ", ".join(list_shipped_names())
        message = f"{name} is neither a file ({error.strerror}) nor a shipped catalogue; those are {shipped}"
        raise InvalidInput(message, path="--catalogue") from error
    return read_catalogue(data, source=name)


def _write(machine_type: MachineType) -> Json:
    body: Json = msgspec.to_builtins(machine_type)
    return body


# ---- nodes of a dump


def _with_shapes(merged: Json) -> list[Any]:
    """Groups of which a file says nothing but their names and sizes are what their nodes in the dump are."""
    groups = merged["nodeGroups"]
    described = {"machineType", "template"}
    bare = {name for group in groups if (name := _get_id(group)) is not None and not described & group.keys()}
    if not bare:
        return list(groups)
    nodes: dict[str, list[Json]] = {}
    for manifest in merged.get("objects") or ():
        if _get_identity(manifest) is not None and manifest.get("kind") == "Node":
            nodes.setdefault(_find_pool(manifest, bare), []).append(manifest)
    listed = merged.get("machineTypes")
    types = [str(entry.get("name")) for entry in listed if isinstance(entry, dict)] if isinstance(listed, list) else []
    return [
        add_node_shape(group, nodes.get(group["id"], ()), types) if _get_id(group) in bare else group
        for group in groups
    ]


def _get_id(group: Any) -> str | None:
    return group.get("id") if isinstance(group, dict) and isinstance(group.get("id"), str) else None


def _find_pool(node: Json, ids: set[str]) -> str:
    """By its labels, or by its name: `workers-3` is one of `workers`."""
    labels, name = _get_labels(node), str(node["metadata"].get("name"))
    found = next((labels[key] for key in (GROUP_LABEL, *_POOL_LABELS) if labels.get(key) in ids), "")
    stem, dash, number = name.rpartition("-")
    return found or (stem if dash and number.isdigit() and stem in ids else "")


def _with_their_nodes(scenario: Scenario) -> Scenario:
    """Nodes of managed clusters get the label of their group; a group without a target is as large as they are many."""
    ids = {group_entry.id for group_entry in scenario.node_groups if group_entry.exists}
    objects = tuple(
        _set_pool(manifest, ids) if manifest["kind"] == "Node" else manifest for manifest in scenario.objects
    )
    there: dict[str, int] = {}
    for manifest in objects:
        if manifest["kind"] == "Node" and (group := _get_labels(manifest).get(GROUP_LABEL)):
            there[group] = there.get(group, 0) + 1
    groups = tuple(_resize(group_entry, there.get(group_entry.id, 0)) for group_entry in scenario.node_groups)
    return msgspec.structs.replace(scenario, objects=objects, node_groups=groups)


def _set_pool(node: Json, ids: set[str]) -> Json:
    labels = _get_labels(node)
    pool = next((labels[key] for key in _POOL_LABELS if labels.get(key) in ids), "")
    if not pool or GROUP_LABEL in labels:
        return node
    return {**node, "metadata": {**node["metadata"], "labels": {**labels, GROUP_LABEL: pool}}}


def _resize(entry: GroupEntry, nodes: int) -> GroupEntry:
    if not nodes or entry.spec["target"]:
        return entry
    spec = {**entry.spec, "target": nodes, "max": max(entry.spec["max"], nodes)}
    return msgspec.structs.replace(entry, spec=spec)


def _get_labels(node: Json) -> dict[str, str]:
    labels = node["metadata"].get("labels")
    return {key: value for key, value in labels.items() if isinstance(value, str)} if isinstance(labels, dict) else {}
