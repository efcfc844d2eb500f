"""Builds the client of the external expander that `--expander=grpc` names.

gRPC is loaded only when such an expander is used.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from plimsoll.core.errors import InvalidInput

if TYPE_CHECKING:
    from plimsoll.nodes.config.policy import PlanningOptions
    from plimsoll.nodes.scaleup.grpc_expander import GrpcExpander


_EXPANDER_TIMEOUT_S: Final = 5.0


def make_expander(options: PlanningOptions) -> GrpcExpander | None:
    """The external expander, or None without `--expander=grpc`. Raises `InvalidInput`."""
    if "grpc" not in options.expander:
        return None
    from plimsoll.nodes.providers.externalgrpc.channels import open_channel  # noqa: PLC0415 - likewise
    from plimsoll.nodes.providers.externalgrpc.configuration import (  # noqa: PLC0415 - likewise
        check_address,
        is_this_machine,
        read_content,
    )
    from plimsoll.nodes.scaleup.grpc_expander import GrpcExpander  # noqa: PLC0415 - loads gRPC, which few need

    check_address(options.grpc_url, path="grpc-expander-url")
    authorities = None
    if options.grpc_cert:
        authorities = read_content(Path(options.grpc_cert), "grpc-expander-cert")
    elif not is_this_machine(options.grpc_url):
        raise InvalidInput(f"must be given: {options.grpc_url} is not on this machine", path="grpc-expander-cert")
    calls = open_channel(options.grpc_url, authorities, timeout_s=_EXPANDER_TIMEOUT_S)
    return GrpcExpander(calls, max_pods=options.grpc_max_pods)
