"""TidbClusterAutoScalers and their TidbClusters in files, and their validation beyond the schema."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from plimsoll.cli.shared.output import read_file
from plimsoll.core.errors import InvalidInput
from plimsoll.core.values import Value
from plimsoll.objects.api.tidb import TIDB_GROUP, TidbCluster, TidbClusterAutoScaler
from plimsoll.objects.codec.decode_problems import BadObject
from plimsoll.objects.codec.decoding import convert_object, encode_object
from plimsoll.objects.codec.manifests import Manifest, read_manifests
from plimsoll.objects.validation import Complaint, ManifestValidator, ValidationResult
from plimsoll.tidb.planning.api.defaults import apply_defaults
from plimsoll.tidb.planning.api.validation import allows_namespace, find_problems

if TYPE_CHECKING:
    from collections.abc import Sequence


class AutoscalerFiles(Value):
    """Objects that the validation of an autoscaler needs: clusters, and annotations of namespaces."""

    clusters: tuple[TidbCluster, ...]
    annotations: dict[str, dict[str, str]]

    @classmethod
    def from_manifests(cls, manifests: Sequence[Manifest]) -> AutoscalerFiles:
        """Read the objects; unreadable ones are left out."""
        found = [
            convert_object(TidbCluster, manifest.body) for manifest in manifests if is_tidb_kind(manifest, TidbCluster)
        ]
        return cls(
            clusters=tuple(cluster for cluster in found if not isinstance(cluster, BadObject)),
            annotations={
                manifest.ref.name: _get_annotations(manifest.body)
                for manifest in manifests
                if (manifest.api_version, manifest.kind) == ("v1", "Namespace")
            },
        )

    def find_base(self, autoscaler: TidbClusterAutoScaler) -> TidbCluster | None:
        """The cluster of an autoscaler; files may omit the namespace."""
        cluster = autoscaler.spec.cluster
        spaces = {"", cluster.namespace or autoscaler.metadata.namespace}
        named = [tidb_cluster for tidb_cluster in self.clusters if tidb_cluster.metadata.name == cluster.name]
        return next(
            (tidb_cluster for tidb_cluster in named if tidb_cluster.metadata.namespace in spaces or spaces == {""}),
            None,
        )

    def find_namespaces_open_to(self, namespace: str) -> frozenset[str]:
        return frozenset(
            name
            for name, allowed_namespaces in self.annotations.items()
            if allows_namespace(allowed_namespaces, namespace)
        )


class GivenAutoScaler(Value):
    """An autoscaler in a file, with the result of schema validation; `autoscaler` is None if it cannot be decoded."""

    manifest: Manifest
    autoscaler: TidbClusterAutoScaler | None
    judgement: ValidationResult

    def find_problems(self, world: AutoscalerFiles) -> list[str]:
        """All problems, one per line. A missing cluster is reported only if there is no other problem."""
        if self.autoscaler is None:
            return [str(complaint).replace("\n", " ") for complaint in self.judgement.complaints]
        # The rules repeat what the schema requires inside the spec, with their own messages. A status is ignored,
        # because kubectl prints it along.
        outside = [
            str(complaint)
            for complaint in self.judgement.complaints
            if (complaint.reason == "FieldUnknown" or not complaint.field.startswith("spec."))
            and not complaint.field.startswith("status")
        ]
        namespaces = world.find_namespaces_open_to(self.autoscaler.metadata.namespace)
        base = self._find_base(world)
        found = [*outside, *map(str, find_problems(self.autoscaler, base, open_namespaces=namespaces))]
        if base is None and not found:
            raise self._build_no_base_error(world)
        return found

    def build_effective(self, world: AutoscalerFiles) -> dict[str, Any]:
        """The object with its defaults, without its status."""
        assert self.autoscaler is not None, "asked only of a valid one"
        spec = json.loads(encode_object(apply_defaults(self.autoscaler, self._find_base(world)).spec))
        return {**{name: part for name, part in self.manifest.body.items() if name != "status"}, "spec": spec}

    def _find_base(self, world: AutoscalerFiles) -> TidbCluster | None:
        assert self.autoscaler is not None
        base = world.find_base(self.autoscaler)
        if base is None and not self.autoscaler.spec.cluster.name and world.clusters:
            base = world.clusters[0]
        return base

    def _build_no_base_error(self, world: AutoscalerFiles) -> InvalidInput:
        assert self.autoscaler is not None
        names = ", ".join(
            f"{tidb_cluster.metadata.namespace}/{tidb_cluster.metadata.name}" for tidb_cluster in world.clusters
        )
        cluster = self.autoscaler.spec.cluster
        wanted = f"{cluster.namespace}/{cluster.name}" if cluster.namespace else cluster.name
        return InvalidInput(f"has no TidbCluster {wanted}; found {names or 'none'}", path="--tc")


def read_autoscaler(name: str) -> GivenAutoScaler:
    """Read the autoscaler. Raises `InvalidInput` if the file contains none or several."""
    manifests = read_manifests(read_file(name), source=name, odd_numbers=True)
    found = [manifest for manifest in manifests if is_tidb_kind(manifest, TidbClusterAutoScaler)]
    if len(found) != 1:
        raise InvalidInput(f"has {len(found)} TidbClusterAutoScalers, expected one", path=name)
    return read_given(found[0])


def read_given(manifest: Manifest) -> GivenAutoScaler:
    decoded = convert_object(TidbClusterAutoScaler, manifest.body)
    judgement = ManifestValidator().validate(manifest)
    if not isinstance(decoded, BadObject):
        return GivenAutoScaler(manifest=manifest, autoscaler=decoded, judgement=judgement)
    if judgement.valid:
        field, _, message = decoded.problem.partition(": ")
        judgement = ValidationResult(
            complaints=(Complaint(field=field, reason="FieldValueTypeInvalid", message=message),)
        )
    return GivenAutoScaler(manifest=manifest, autoscaler=None, judgement=judgement)


def read_cluster_file(name: str) -> AutoscalerFiles:
    """Read clusters and namespaces. Raises `InvalidInput` if a TidbCluster cannot be decoded."""
    manifests = read_manifests(read_file(name), source=name)
    for manifest in manifests:
        if is_tidb_kind(manifest, TidbCluster):
            cluster = convert_object(TidbCluster, manifest.body)
            if isinstance(cluster, BadObject):
                raise InvalidInput(cluster.problem, path=name)
    return AutoscalerFiles.from_manifests(manifests)


def find_rule_complaints(manifest: Manifest, world: AutoscalerFiles) -> tuple[Complaint, ...]:
    """Problems beyond the schema. The cluster is considered if it is among the files."""
    autoscaler = convert_object(TidbClusterAutoScaler, manifest.body)
    if isinstance(autoscaler, BadObject):
        return (Complaint(field="", reason="FieldValueTypeInvalid", message=autoscaler.problem),)
    namespaces = world.find_namespaces_open_to(autoscaler.metadata.namespace)
    found = find_problems(autoscaler, world.find_base(autoscaler), open_namespaces=namespaces)
    return tuple(
        Complaint(field=field_problem.field, reason="FieldValueInvalid", message=field_problem.reason)
        for field_problem in found
    )


def is_tidb_kind(manifest: Manifest, struct: type[TidbCluster | TidbClusterAutoScaler]) -> bool:
    return (manifest.group, manifest.kind) == (TIDB_GROUP, struct.get_kind_name())


def _get_annotations(body: dict[str, Any]) -> dict[str, str]:
    metadata = body.get("metadata")
    annotations = metadata.get("annotations") if isinstance(metadata, dict) else None
    return annotations if isinstance(annotations, dict) else {}
