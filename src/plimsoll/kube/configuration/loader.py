"""Finds the API server, in the order of kubectl and of pods.

    --server alone  →  --kubeconfig  →  $KUBECONFIG  →  ~/.kube/config  →  the pod's service account

Commands call `find_access`. Its dependencies (terminal, processes, the pod's files) are in `LoaderContext`, so that
tests can replace them.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import structlog

from plimsoll.core.errors import InvalidInput
from plimsoll.core.names import find_dns1123_label_problems
from plimsoll.kube.access import Access
from plimsoll.kube.configuration.clusters import normalize_server_address, read_cluster
from plimsoll.kube.configuration.credentials import ANONYMOUS
from plimsoll.kube.configuration.exec_plugin import PluginHost
from plimsoll.kube.configuration.in_cluster import SERVICE_ACCOUNT, Pod
from plimsoll.kube.configuration.kubeconfig import Kubeconfig, read_kubeconfig
from plimsoll.kube.configuration.processes import RealProcesses, has_terminal
from plimsoll.kube.configuration.sections import Section
from plimsoll.kube.configuration.users import UserReader

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from plimsoll.core.clock import Clock
    from plimsoll.kube.configuration.processes import ProcessRunner

log: structlog.typing.FilteringBoundLogger = structlog.get_logger(__name__)


class NoClusterConfigured(InvalidInput):
    """The user chose no cluster, and nothing on the machine names one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessOptions:
    """The choices of the user; empty: whatever is configured."""

    kubeconfig: str = ""
    context: str = ""
    server: str = ""
    namespace: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoaderContext:
    """The machine, as far as configuration depends on it."""

    environment: Mapping[str, str] = field(repr=False)
    clock: Clock
    runner: ProcessRunner = field(default_factory=RealProcesses)
    has_terminal: Callable[[], bool] = has_terminal
    service_account: Path = SERVICE_ACCOUNT
    plugin_timeout_s: float = 60.0

    @property
    def plugin_host(self) -> PluginHost:
        return PluginHost(
            runner=self.runner,
            clock=self.clock,
            environment=self.environment,
            has_terminal=self.has_terminal,
            timeout_s=self.plugin_timeout_s,
        )

    @property
    def pod(self) -> Pod | None:
        return Pod.detect(self.environment, folder=self.service_account)


def find_access(
    *,
    kubeconfig: str = "",
    context: str = "",
    server: str = "",
    namespace: str = "",
    environment: Mapping[str, str],
    clock: Clock,
) -> Access:
    """The server and identity that the options and the environment name. Raises InvalidInput."""
    options = AccessOptions(kubeconfig=kubeconfig, context=context, server=server, namespace=namespace)
    return choose_access(options, LoaderContext(environment=environment, clock=clock))


def choose_access(options: AccessOptions, loader_context: LoaderContext) -> Access:
    _check_namespace(options.namespace, path="--namespace")
    if options.server and not options.kubeconfig and not options.context:
        return _build_server_only_access(options)
    files = _list_files(options, loader_context.environment)
    config = read_kubeconfig(files, may_be_missing=not options.kubeconfig)
    context = options.context or config.current_context
    if context:
        return build_context_access(config, context, options=options, loader_context=loader_context)
    pod = None if options.kubeconfig or options.server else loader_context.pod
    if pod is not None:
        pod_namespace = loader_context.environment.get("POD_NAMESPACE", "")
        return pod.build_access(clock=loader_context.clock, namespace=options.namespace, pod_namespace=pod_namespace)
    raise _build_nothing_chosen_error(config, files, options=options, loader_context=loader_context)


def _build_server_only_access(options: AccessOptions) -> Access:
    """Access without credentials: those of a configured cluster must not be sent to another address."""
    try:
        address = normalize_server_address(options.server)
    except InvalidInput as error:
        raise InvalidInput(error.problem, path="--server") from None
    return Access(
        server=address, credentials=ANONYMOUS, namespace=options.namespace or "default", origin=f"--server {address}"
    )


def _list_files(options: AccessOptions, environment: Mapping[str, str]) -> list[str]:
    if options.kubeconfig:
        return [options.kubeconfig]
    if listed := environment.get("KUBECONFIG", ""):
        return list(dict.fromkeys(file for file in listed.split(os.pathsep) if file))
    user_directory = environment.get("HOME", "")
    return [str(Path(user_directory) / ".kube" / "config")] if user_directory else []


def build_context_access(
    config: Kubeconfig, name: str, *, options: AccessOptions, loader_context: LoaderContext
) -> Access:
    """The access of one context. Raises `InvalidInput`, naming the file and the field."""
    context = config.contexts.get(name)
    if context is None:
        where = "--context" if options.context else f"{config.current_context_file}: current-context"
        raise InvalidInput(
            f'there is no context "{name}"; {_list_known_names("contexts", config.contexts)}', path=where
        )
    cluster = read_cluster(_find_entry(context, "cluster", config.clusters), server=options.server)
    user = _find_entry(context, "user", config.users) if context.get_text("user") else Section({}, file=context.file)
    namespace = context.get_text("namespace")
    _check_namespace(namespace, path=context.get_path("namespace"))
    if not cluster.is_https and context.get_text("user"):
        log.warning("kubeconfig.credentials_not_sent", context=name, reason="the server speaks http, not https")
    return Access(
        server=cluster.server,
        credentials=UserReader(user, cluster, loader_context.plugin_host).read_credentials(),
        tls=cluster.tls,
        proxy_url=cluster.proxy_url,
        namespace=options.namespace or namespace or "default",
        origin=f"{'--server, beside ' if options.server else ''}context {name} of {context.file}",
    )


def _find_entry(context: Section, kind: str, entries: Mapping[str, Section]) -> Section:
    name = context.get_text(kind)
    if not name:
        raise context.build_error(kind, f"must be given: the name of one of the {kind}s")
    found = entries.get(name)
    if found is None:
        raise context.build_error(kind, f'there is no {kind} "{name}"; {_list_known_names(f"{kind}s", entries)}')
    return found


def _list_known_names(plural: str, entries: Mapping[str, Section]) -> str:
    return f"known {plural}: {', '.join(sorted(entries))}" if entries else f"there are no {plural} at all"


def _check_namespace(namespace: str, *, path: str) -> None:
    if namespace and (problems := find_dns1123_label_problems(namespace)):
        raise InvalidInput(f'"{namespace}" is not a valid name of a namespace: {problems[0]}', path=path)


def _build_nothing_chosen_error(
    config: Kubeconfig, files: list[str], *, options: AccessOptions, loader_context: LoaderContext
) -> InvalidInput:
    if config.contexts:
        return InvalidInput(
            f"no current-context is set; choose one with --context ({_list_known_names('contexts', config.contexts)})",
            path=", ".join(config.files),
        )
    if options.kubeconfig:
        problem = "is empty" if config.is_empty else "has no contexts"
        return InvalidInput(f"{problem}: it names no cluster to use", path=options.kubeconfig)
    found = [f"{file} ({'has no contexts' if file in config.files else 'no such file'})" for file in files]
    is_set = bool(loader_context.environment.get("KUBECONFIG"))
    source = "KUBECONFIG" if is_set else "KUBECONFIG is not set; the default file"
    looked = f"{source}: {', '.join(found)}" if found else "neither KUBECONFIG nor HOME is set"
    no_pod = Pod.explain_missing(loader_context.environment, folder=loader_context.service_account)
    return NoClusterConfigured(
        f"no cluster is configured ({looked}; and {no_pod}); "
        "give --kubeconfig FILE, set KUBECONFIG, or give --server URL"
    )
