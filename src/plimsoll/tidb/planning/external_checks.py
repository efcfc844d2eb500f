"""What is wrong with the external endpoint of a component. Whether its address may be called is asked when it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from plimsoll.tidb.planning.field_problems import FieldProblem

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from plimsoll.objects.tidb import ExternalConfig, ExternalEndpoint
    from plimsoll.tidb.planning.components import Component


def external_problems(
    component: Component, external: ExternalConfig | None, *, home: str, open_namespaces: Collection[str]
) -> Iterator[FieldProblem]:
    """`home` is the autoscaler's namespace; `open_namespaces` let it use their Secrets."""
    if external is None:
        return
    found = [(f"endpoint.{field}", reason, "V12") for field, reason in _endpoint_problems(external.endpoint)]
    if external.max_replicas is None:
        found.append(("maxReplicas", "Required value", "V12"))
    elif external.max_replicas < 0:
        found.append(("maxReplicas", f"{external.max_replicas} is less than 0", "V12"))
    secret = external.endpoint.tls_secret
    if secret and home and secret.namespace not in {"", home, *open_namespaces}:
        reason = f"namespace {secret.namespace} does not allow autoscalers of {home}"
        found.append(("endpoint.tlsSecret.namespace", reason, "V16"))
    for field, reason, code in found:
        path = f"spec.{component}.external.{field}"
        yield FieldProblem(code=code, field=path, reason=reason, component=component)


def _endpoint_problems(endpoint: ExternalEndpoint) -> Iterator[tuple[str, str]]:
    if not endpoint.host:
        yield "host", "must not be empty"
    if not 1 <= endpoint.port <= 65535:
        yield "port", f"{endpoint.port} is not between 1 and 65535"
    if not endpoint.path.startswith("/"):
        yield "path", "must start with /"
    if endpoint.tls_secret and not endpoint.tls_secret.name:
        yield "tlsSecret.name", "must not be empty"
