"""`plimsoll validate`: validates manifests as a Kubernetes API server does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from plimsoll.cli.shared.output import FilesOption, Output, OutputOption, echo_value, read_file
from plimsoll.cli.shared.slow_notice import SlowNotice

if TYPE_CHECKING:
    from plimsoll.objects.codec.manifests import Manifest
    from plimsoll.objects.validation import ValidationResult


def validate(
    filename: FilesOption,
    old: Annotated[
        str | None,
        typer.Option(
            "--old", help="The stored version: validate an update of it instead of a creation.", metavar="FILE"
        ),
    ] = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """
    Validate manifests, with the messages and field paths of a Kubernetes API server.

    Prints one error per line. Exit code 0: all are valid. 1: one is not. 2: a file cannot be read. Built-in kinds and
    Plimsoll's own resources are known; for other kinds also pass the CustomResourceDefinition.

    \b
    Examples:
      plimsoll validate -f request.yaml
      plimsoll validate -f new.yaml --old stored.yaml
      plimsoll validate -f crd.yaml -f object.yaml -o json
      kubectl get deploy web -o yaml | plimsoll validate -f -
    """
    from plimsoll.core.errors import InvalidInput
    from plimsoll.objects.validation import DEFINITION, ManifestValidator

    manifests = [manifest for name in filename for manifest in _read_manifests(name)]
    stored = _read_manifests(old) if old else []
    judge = ManifestValidator()
    for manifest in manifests:
        if (manifest.api_version, manifest.kind) == DEFINITION:
            judge.add_definition(manifest.body)
    pairs = [(manifest, _find_stored_version(manifest, stored)) for manifest in manifests]
    if old and not any(before for _, before in pairs):
        raise InvalidInput("has none of the objects to validate (kind, group and name must be the same)", path=old)
    with SlowNotice(f"validating {len(pairs)} objects", is_silent=output in {Output.JSON, Output.YAML}):
        judged = [
            (manifest, _apply_kind_rules(manifest, judge.validate(manifest, before), manifests))
            for manifest, before in pairs
        ]
    _print(judged, output)
    _warn(judged, created=[manifest for manifest, before in pairs if old and before is None])
    if not all(judgement.valid for _, judgement in judged):
        raise typer.Exit(1)


def _read_manifests(name: str) -> list[Manifest]:
    from msgspec.structs import replace

    from plimsoll.core.errors import UnreadableDocument
    from plimsoll.objects.api.provisioning_requests import use_shipped_names
    from plimsoll.objects.codec.manifests import read_manifests

    found = read_manifests(read_file(name), source=name)
    if not found:
        raise UnreadableDocument("contains no object", path=name)
    return [replace(manifest, body=use_shipped_names(manifest.body)) for manifest in found]


def _apply_kind_rules(manifest: Manifest, judgement: ValidationResult, manifests: list[Manifest]) -> ValidationResult:
    """Some of our kinds have rules that a schema cannot express."""
    if not judgement.valid or (manifest.group, manifest.kind) != ("pingcap.com", "TidbClusterAutoScaler"):
        return judgement
    from msgspec.structs import replace

    from plimsoll.cli.tidb.files import AutoscalerFiles, find_rule_complaints

    return replace(judgement, complaints=find_rule_complaints(manifest, AutoscalerFiles.from_manifests(manifests)))


def _find_stored_version(manifest: Manifest, stored: list[Manifest]) -> Manifest | None:
    """The same object in the old file. The API version may differ, and either may omit the namespace."""
    same = [
        candidate
        for candidate in stored
        if (candidate.group, candidate.kind, candidate.ref.name) == _get_manifest_key(manifest)
    ]
    exact = [candidate for candidate in same if candidate.ref.namespace == manifest.ref.namespace]
    without_namespace = [candidate for candidate in same if not candidate.ref.namespace or not manifest.ref.namespace]
    found = exact or without_namespace
    return found[0] if len(found) == 1 else None


def _get_manifest_key(manifest: Manifest) -> tuple[str, str, str]:
    return manifest.group, manifest.kind, manifest.ref.name


def _print(judged: list[tuple[Manifest, ValidationResult]], output: Output) -> None:
    match output:
        case Output.TABLE:
            for manifest, judgement in judged:
                for line in _format_judgement(manifest, judgement, alone=len(judged) == 1):
                    typer.echo(line)
        case Output.NAME:
            for manifest, judgement in judged:
                if not judgement.valid:
                    typer.echo(manifest.ref)
        case _:
            echo_value(_as_data(judged), output)


def _format_judgement(manifest: Manifest, judgement: ValidationResult, *, alone: bool) -> list[str]:
    if judgement.valid:
        return [f"{_format_display_name(manifest)} valid"]
    whose = "" if alone else f"{_format_display_name(manifest)}: "
    # One error per line: some messages of the server contain line breaks (a CEL error shows the source).
    return [whose + str(complaint).replace("\n", " ") for complaint in judgement.complaints]


def _format_display_name(manifest: Manifest) -> str:
    """The reference. An object with a generated name, or without any, has none yet."""
    return str(manifest.ref) if manifest.ref.name else f"{manifest.ref}(no name)"


def _as_data(judged: list[tuple[Manifest, ValidationResult]]) -> dict[str, Any]:
    return {
        "valid": all(judgement.valid for _, judgement in judged),
        "objects": [
            {
                "source": manifest.source,
                "line": manifest.line,
                "apiVersion": manifest.api_version,
                "kind": manifest.kind,
                "namespace": manifest.ref.namespace,
                "name": manifest.ref.name,
                "valid": judgement.valid,
                "errors": [
                    {"field": complaint.field, "reason": complaint.reason, "message": complaint.message}
                    for complaint in judgement.complaints
                ],
                "warnings": list(judgement.warnings),
            }
            for manifest, judgement in judged
        ],
    }


def _warn(judged: list[tuple[Manifest, ValidationResult]], *, created: list[Manifest]) -> None:
    """Print warnings to stderr, so that stdout has one error per line."""
    for manifest, judgement in judged:
        for warning in judgement.warnings:
            typer.echo(f"warning: {_format_display_name(manifest)}: {warning}", err=True)
    for manifest in created:
        typer.echo(
            f"warning: {_format_display_name(manifest)} is not in the --old file; validated as a creation", err=True
        )
