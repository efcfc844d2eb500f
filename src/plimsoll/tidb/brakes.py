"""What keeps the TiDB autoscaler from acting though it would: a dry run, a pause. Plans are made and told as ever.

A pause is the annotation `plimsoll.io/paused`, whose value says who or why: on the ConfigMap of Plimsoll's controllers
(`plimsoll pause` sets it, and every controller heeds it), on one autoscaler, or on the cluster it scales.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import structlog

from plimsoll.core.plans import Reason
from plimsoll.kube.errors import ApiError, NotFound
from plimsoll.objects.api.core import ConfigMap

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from plimsoll.kube.client import Client
    from plimsoll.tidb.observation.observer import Observed

log: structlog.typing.FilteringBoundLogger = structlog.get_logger(__name__)

PAUSED_ANNOTATION: Final = "plimsoll.io/paused"
CONFIG_MAP: Final = "plimsoll"
DRY_RUN: Final = Reason(code="DryRun", message="dry run: it is only told, not done")


async def brake_on(client: Client, observed: Observed, *, home: str, dry_run: bool) -> Reason | None:
    """None: acts are free."""
    if dry_run:
        return DRY_RUN
    annotated = [observed.scaler.metadata.annotations]
    if observed.base is not None:
        annotated.append(observed.base.metadata.annotations)
    return _paused_by(annotated) or _paused_by([await _of_all(client, home)])


async def _of_all(client: Client, home: str) -> Mapping[str, str]:
    try:
        return (await client.get(ConfigMap, CONFIG_MAP, namespace=home)).metadata.annotations
    except NotFound:
        return {}
    except ApiError as error:
        log.warning("pause.unknown", namespace=home, problem=str(error))
        return {}


def _paused_by(annotated: Iterable[Mapping[str, str]]) -> Reason | None:
    for one in annotated:
        why = one.get(PAUSED_ANNOTATION, "").strip()
        if why and why != "false":
            return Reason(code="Paused", message="paused" if why == "true" else f"paused: {why}")
    return None
