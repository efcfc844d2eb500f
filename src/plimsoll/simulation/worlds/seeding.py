"""Creates the objects of a scenario, with times and status that an API server would not accept.

Everything is first applied through the server, like `kubectl apply --server-side`: defaults, admission and validation
are the server's. What it overwrites or refuses (creationTimestamp, uid, status, the taint of new nodes, the priority of
a pod that was admitted elsewhere) is then corrected in its store, in one write.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from plimsoll.core.errors import InvalidInput
from plimsoll.kube.errors import ApiError
from plimsoll.kube.requests.builder import encode_json
from plimsoll.kube.transport import APPLY_PATCH, MERGE_PATCH
from plimsoll.local.apiserver.bootstrap.install import create_missing
from plimsoll.local.apiserver.bootstrap.objects import build_namespace_contents
from plimsoll.local.apiserver.storage import Decision, Keep, Key, Put, Stored
from plimsoll.objects.api.meta import WireObject, format_time
from plimsoll.objects.api.resource import Resource
from plimsoll.objects.builtin import is_builtin
from plimsoll.simulation.worlds.completion import (
    complete_status,
    is_not_ready_taint,
    prepare_for_server,
    read_admitted_priority,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from plimsoll.core.entropy import Entropy
    from plimsoll.kube.client import Client
    from plimsoll.kube.transport import Request
    from plimsoll.local.apiserver.resources.registry import ServedResource
    from plimsoll.local.apiserver.server import Server
    from plimsoll.simulation.document import Problems
    from plimsoll.simulation.scenario import Json, PodEntry

SCENARIO: Final = "scenario"
"""The field manager of manifests in the file."""
WORLD: Final = "simulation"
"""The field manager of objects that the file describes in its own format: groups and their nodes."""

_CHUNK: Final = 500
# Objects that others need come first. Pods come last: their accounts, priorities and volumes are looked up.
_EARLY: Final = ("CustomResourceDefinition", "Namespace", "PriorityClass", "StorageClass", "ServiceAccount")


class Seeder:
    """Writes into one server. `client` has administrator permissions."""

    def __init__(self, server: Server, client: Client, *, entropy: Entropy) -> None:
        self._server = server
        self._client = client
        self._entropy = entropy
        self._reserved_uids: dict[tuple[str, str, str], str] = {}
        """Uids of objects that are referred to and do not exist yet, by kind, namespace and name."""
        self.absent_owners: set[str] = set()
        """Uids of owners that the file names and does not contain: their dependents are not deleted."""

    async def put_all(self, manifests: Sequence[Json], *, path: str, problems: Problems) -> None:
        """Create objects of a file, in an order in which they are accepted. Errors are added to `problems`."""
        in_order = sorted(enumerate(manifests), key=lambda pair: _rank(pair[1]))
        # Definitions go first: only then is it known of which scope their objects are.
        for is_early in (True, False):
            now = [(index, manifest) for index, manifest in in_order if (manifest["kind"] in _EARLY) is is_early]
            self._reserve_uids([manifest for _, manifest in now])
            for index, manifest in now:
                with problems.collect_errors():
                    await self.put(manifest, path=f"{path}[{index}]")

    async def put_spec(self, manifest: Json, *, path: str, manager: str) -> None:
        """Like `put`, for an object in the format of the file: `path` is where the file has its spec."""
        try:
            await self.put(manifest, path=path, manager=manager)
        except InvalidInput as error:
            if isinstance(error.__cause__, ApiError):
                raise _build_field_error(error.__cause__, path) from error
            raise

    async def put(self, manifest: Json, *, path: str, manager: str = SCENARIO) -> None:
        """Create one object, or change it to the manifest.

        Fields that `manager` applied before and that are missing now are removed; fields of other managers stay.
        """
        resource = self._find_resource(manifest, path=path)
        metadata = manifest["metadata"]
        namespace = (metadata.get("namespace") or "default") if resource.namespaced else ""
        if namespace:
            await self.ensure_namespace(namespace)
        key = Key(resource.stored_as, namespace, metadata["name"])
        is_new = self._server.store.get(key) is None
        body = prepare_for_server(manifest, namespace=namespace, uid_of=self._get_uid)
        if "status" in manifest and resource.find_subresource("status") is None:
            body["status"] = manifest["status"]
        try:
            await self._client.call(self._build_apply(resource, key, body, manager=manager))
            await self._judge_status(resource, key, manifest)
        except ApiError as error:
            raise InvalidInput(str(error), path=path) from error
        except InvalidInput as error:  # a name that cannot stand in a path
            raise error.with_parent(f"{path}.metadata") from error
        await self._put_right(key, manifest, is_new=is_new)
        self._note_owners(body, namespace)

    async def put_pods(self, entry: PodEntry, *, path: str) -> None:
        """Create equal pods: the server validates the first, the others are copies."""
        if not entry.count:
            return
        owner = {
            "apiVersion": "apps/v1",
            "kind": "ReplicaSet",
            "name": entry.name,
            "uid": self._get_uid("ReplicaSet", entry.namespace, entry.name),
            "controller": True,
            "blockOwnerDeletion": True,
        }
        metadata = {
            "ownerReferences": [owner],
            **(entry.template.get("metadata") or {}),
            "name": f"{entry.name}-0",
            "namespace": entry.namespace,
        }
        spec = entry.template.get("spec") or {}
        await self.put({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}, path=path)
        first = self._server.store.get(Key("pods", entry.namespace, f"{entry.name}-0"))
        assert first is not None, "it was just put"
        for begin in range(1, entry.count, _CHUNK):
            names = [f"{entry.name}-{number}" for number in range(begin, min(begin + _CHUNK, entry.count))]
            await self._copy(first, names)

    async def ensure_namespace(self, name: str) -> None:
        """Create a namespace with the objects that pods need in it."""
        if self._server.store.get(Key("namespaces", "", name)) is not None:
            return
        body = {
            "kind": "Namespace",
            "apiVersion": "v1",
            "metadata": {"name": name, "labels": {"kubernetes.io/metadata.name": name}},
            "spec": {"finalizers": ["kubernetes"]},
            "status": {"phase": "Active"},
        }
        await create_missing(self._server, [body, *build_namespace_contents(name)])

    # ---- inside

    def _build_apply(self, resource: ServedResource, key: Key, body: Json, *, manager: str) -> Request:
        """Built by hand: a file may contain kinds without a struct."""
        calls = self._client.calls
        path = calls.build_path(build_plain_resource(resource), key.name, namespace=key.namespace)
        return calls.patch(
            path,
            encode_json(body),
            APPLY_PATCH,
            {"force": True, "field_manager": manager, "field_validation": "Strict"},
        )

    async def _judge_status(self, resource: ServedResource, key: Key, manifest: Json) -> None:
        """The server validates kinds with a definition; `read_checked_manifest` has validated the others."""
        status = manifest.get("status")
        if (
            status is None
            or resource.find_subresource("status") is None
            or is_builtin(resource.api_version, resource.kind)
        ):
            return
        calls = self._client.calls
        path = calls.build_path(build_plain_resource(resource), key.name, namespace=key.namespace, subresource="status")
        await self._client.call(
            calls.patch(
                path, encode_json({"status": status}), MERGE_PATCH, {"dry_run": True, "field_validation": "Strict"}
            )
        )

    def _find_resource(self, manifest: Json, *, path: str) -> ServedResource:
        resource = self._server.registry.find_kind(manifest["apiVersion"], manifest["kind"])
        if resource is None:
            raise InvalidInput(f"{manifest['apiVersion']} {manifest['kind']} is not served here", path=path)
        return resource

    def _reserve_uids(self, manifests: Sequence[Json]) -> None:
        """So that owner references may leave the uid out, whichever of the two objects comes first."""
        for manifest in manifests:
            metadata = manifest["metadata"]
            known_as = self._build_reference(manifest["kind"], metadata.get("namespace") or "default", metadata["name"])
            self._reserved_uids[known_as] = (
                metadata.get("uid") or self._reserved_uids.get(known_as) or self._entropy.generate_uid()
            )

    def _build_reference(self, kind: str, namespace: str, name: str) -> tuple[str, str, str]:
        """An object as those in a namespace refer to it."""
        resource = self._find_by_kind(kind)
        return (kind, namespace if resource is None or resource.namespaced else "", name)

    def _find_by_kind(self, kind: str) -> ServedResource | None:
        return next((resource for resource in self._server.registry if resource.kind == kind), None)

    def _get_uid(self, kind: str, namespace: str, name: str) -> str:
        if present := self._find_uid(kind, namespace, name):
            return present
        known_as = self._build_reference(kind, namespace, name)
        if known_as not in self._reserved_uids:
            self._reserved_uids[known_as] = self._entropy.generate_uid()
        return self._reserved_uids[known_as]

    def _find_uid(self, kind: str, namespace: str, name: str) -> str:
        resource = self._find_by_kind(kind)
        if resource is None:
            return ""
        found = self._server.store.get(Key(resource.stored_as, namespace if resource.namespaced else "", name))
        return "" if found is None else str(found.decode_body()["metadata"]["uid"])

    def _note_owners(self, body: Json, namespace: str) -> None:
        for owner in body["metadata"].get("ownerReferences") or ():
            if self._find_uid(owner["kind"], namespace, owner["name"]) != owner["uid"]:
                self.absent_owners.add(owner["uid"])

    async def _put_right(self, key: Key, manifest: Json, *, is_new: bool) -> None:
        metadata = manifest["metadata"]
        reserved = self._reserved_uids.pop(self._build_reference(manifest["kind"], key.namespace, key.name), "")
        uid = reserved or metadata.get("uid")
        now = format_time(self._server.clock.now())

        def decide(found: Stored | None) -> Decision:
            if found is None:
                return Keep()
            body = found.decode_body()
            before = found.decode_body()
            if is_new and uid:
                body["metadata"]["uid"] = uid
            if metadata.get("creationTimestamp"):
                body["metadata"]["creationTimestamp"] = metadata["creationTimestamp"]
            complete_status(body, manifest, is_new=is_new, now=now)
            if is_new and (admitted := read_admitted_priority(manifest)):
                body["spec"] |= admitted
            if is_new and body.get("kind") == "Node":
                _keep_given_taints(body, manifest)
            return Keep() if body == before else Put(body)

        await self._server.store.update(key, decide)
        self.absent_owners.discard(reserved)

    async def _copy(self, first: Stored, names: Sequence[str]) -> None:
        bodies: list[Json] = []
        for name in names:
            body = first.decode_body()
            body["metadata"] |= {"name": name, "uid": self._entropy.generate_uid()}
            bodies.append(body)

        def decide(found: Sequence[Stored | None]) -> Sequence[Decision]:
            return [Put(body) if stored is None else Keep() for stored, body in zip(found, bodies, strict=True)]

        await self._server.store.update_all([Key("pods", first.namespace, name) for name in names], decide)


def _keep_given_taints(body: Json, manifest: Json) -> None:
    """Keep the taints of the file: the server's taint for new nodes is for kubelets that have not reported yet."""
    given = (manifest.get("spec") or {}).get("taints") or ()
    taints = [
        taint for taint in body.get("spec", {}).get("taints", ()) if taint in given or not is_not_ready_taint(taint)
    ]
    if taints:
        body["spec"]["taints"] = taints
    else:
        body.get("spec", {}).pop("taints", None)


def _build_field_error(error: ApiError, path: str) -> InvalidInput:
    """The field of the file that the server means."""
    fields = (cause.field.removeprefix("spec.") for cause in error.causes if cause.field.startswith("spec."))
    field = next(fields, "")
    return InvalidInput(str(error), path=".".join(part for part in (path, field) if part))


def _rank(manifest: Json) -> int:
    kind = manifest["kind"]
    return _EARLY.index(kind) if kind in _EARLY else len(_EARLY) + (kind == "Pod")


def build_plain_resource(resource: ServedResource) -> Resource:
    """A kind for calls whose answer is not decoded."""
    return Resource(
        group=resource.group,
        version=resource.version,
        kind=resource.kind,
        plural=resource.plural,
        singular=resource.singular,
        namespaced=resource.namespaced,
        struct=WireObject,
    )
