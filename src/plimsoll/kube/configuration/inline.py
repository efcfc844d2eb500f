"""A kubeconfig from another system, such as the content of a Secret: only what is written in it counts.

Whoever can write such a Secret must not be able to make this process read files of its machine or run programs there:
entries that name files, exec plugins or auth providers are refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from plimsoll.kube.configuration.kubeconfig import parse_kubeconfig
from plimsoll.kube.configuration.loader import AccessOptions, LoaderContext, build_context_access

if TYPE_CHECKING:
    from plimsoll.core.clock import Clock
    from plimsoll.kube.access import Access
    from plimsoll.kube.configuration.sections import Section

_OF_CLUSTERS: Final = ("certificate-authority",)
_OF_USERS: Final = ("exec", "auth-provider", "tokenFile", "client-certificate", "client-key")


def read_inline_access(data: bytes, *, source: str, clock: Clock) -> Access:
    """The server and identity of its current context. Raises `InvalidInput`, naming `source` and the field."""
    config = parse_kubeconfig(data, source=source)
    for entry in config.clusters.values():
        _refuse(entry, _OF_CLUSTERS)
    for entry in config.users.values():
        _refuse(entry, _OF_USERS)
    options = AccessOptions(context=config.current_context or next(iter(config.contexts), ""))
    return build_context_access(
        config, options.context, options=options, loader_context=LoaderContext(environment={}, clock=clock)
    )


def _refuse(entry: Section, names: tuple[str, ...]) -> None:
    for name in names:
        if name in entry:
            raise entry.build_error(name, "may not be given here: credentials have to be in the document itself")
