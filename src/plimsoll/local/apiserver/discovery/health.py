"""`/healthz`, `/livez`, `/readyz`: in one word, or check by check with `?verbose`.

The checks have the names of a 1.34 server, because probes and scripts use them (`/readyz/etcd`, `?exclude=etcd`). Most
of what they name is this one process, so any response proves that they pass; only the store can fail separately, and
the etcd checks report it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from plimsoll.local.apiserver.http_types import Response

if TYPE_CHECKING:
    from plimsoll.local.apiserver.http_types import Request
    from plimsoll.local.apiserver.storage import Store

_READY_ONLY: Final = ("etcd-readiness", "informer-sync", "shutdown")
_CHECKS: Final = (
    "ping",
    "log",
    "etcd",
    "etcd-readiness",
    "informer-sync",
    "poststarthook/start-apiserver-admission-initializer",
    "poststarthook/generic-apiserver-start-informers",
    "poststarthook/priority-and-fairness-config-consumer",
    "poststarthook/priority-and-fairness-filter",
    "poststarthook/storage-object-count-tracker-hook",
    "poststarthook/start-apiextensions-informers",
    "poststarthook/start-apiextensions-controllers",
    "poststarthook/crd-informer-synced",
    "poststarthook/start-system-namespaces-controller",
    "poststarthook/start-cluster-authentication-info-controller",
    "poststarthook/start-kube-apiserver-identity-lease-controller",
    "poststarthook/start-kube-apiserver-identity-lease-garbage-collector",
    "poststarthook/start-legacy-token-tracking-controller",
    "poststarthook/start-service-ip-repair-controllers",
    "poststarthook/rbac/bootstrap-roles",
    "poststarthook/scheduling/bootstrap-system-priority-classes",
    "poststarthook/priority-and-fairness-config-producer",
    "poststarthook/bootstrap-controller",
    "poststarthook/start-kubernetes-service-cidr-controller",
    "poststarthook/start-kube-aggregator-informers",
    "poststarthook/apiservice-status-local-available-controller",
    "poststarthook/apiservice-status-remote-available-controller",
    "poststarthook/apiservice-registration-controller",
    "poststarthook/apiservice-discovery-controller",
    "poststarthook/kube-apiserver-autoregistration",
    "autoregister-completion",
    "poststarthook/apiservice-openapi-controller",
    "poststarthook/apiservice-openapiv3-controller",
    "shutdown",
)
_STORE_CHECKS: Final = frozenset({"etcd", "etcd-readiness"})
_PROBES: Final = ("healthz", "livez", "readyz")


def list_checks(probe: str) -> tuple[str, ...]:
    return _CHECKS if probe == "readyz" else tuple(check for check in _CHECKS if check not in _READY_ONLY)


def list_health_paths() -> list[str]:
    """Every path that is answered here, as `/` lists them."""
    return [path for probe in _PROBES for path in (f"/{probe}", *(f"/{probe}/{item}" for item in list_checks(probe)))]


def check_health(request: Request, store: Store) -> Response | None:
    """The answer to a probe or to one of its checks; None for other paths."""
    probe, _, check = request.path.strip("/").partition("/")
    if probe not in _PROBES:
        return None
    failed = _STORE_CHECKS.intersection(list_checks(probe)) if store.problem else frozenset()
    if check:
        return _answer_check(check, failed=check in failed) if check in list_checks(probe) else None
    excluded = frozenset(value for name, value in request.query if name == "exclude")
    if failed - excluded:
        return Response.from_text(_format_verbose(probe, excluded, failed), status=500)
    return Response.from_text(
        _format_verbose(probe, excluded, failed) if request.get_parameter("verbose") is not None else "ok"
    )


def _answer_check(check: str, *, failed: bool) -> Response:
    # What exactly is wrong is not for everybody who may ask: a real server withholds it, too.
    return (
        Response.from_text(f"internal server error: {check} failed: reason withheld\n", status=500)
        if failed
        else Response.from_text("ok")
    )


def _format_verbose(probe: str, excluded: frozenset[str], failed: frozenset[str]) -> str:
    checks = list_checks(probe)
    lines = [_format_line(check, excluded=check in excluded, failed=check in failed) for check in checks]
    unknown = sorted(excluded.difference(checks))
    if unknown:
        named = ",".join(f'"{item}"' for item in unknown)
        lines.append(f"warn: some health checks cannot be excluded: no matches for {named}")
    outcome = "failed" if failed - excluded else "passed"
    return "\n".join([*lines, f"{probe} check {outcome}", ""])


def _format_line(check: str, *, excluded: bool, failed: bool) -> str:
    if excluded:
        return f"[+]{check} excluded: ok"
    return f"[-]{check} failed: reason withheld" if failed else f"[+]{check} ok"
