"""Pause, dry run and other controllers: what keeps a controller from acting. Plans are made and reported as always.

A pause is the annotation `plimsoll.io/paused`. Its value names the user and the reason; "true" gives no reason, and an
empty value or "false" does not pause. On the ConfigMap of Plimsoll's controllers (`plimsoll pause` sets it there) it
holds for every controller; a subsystem may read it from its own objects too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import structlog

from plimsoll.core.plans import Reason
from plimsoll.kube.errors import ApiError
from plimsoll.operator.program_config import patch_config_map, read_config_map, retry_update

if TYPE_CHECKING:
    from collections.abc import Mapping

    from plimsoll.kube.client import Client

log: structlog.typing.FilteringBoundLogger = structlog.get_logger(__name__)

PAUSED_ANNOTATION: Final = "plimsoll.io/paused"
DRY_RUN: Final = "DryRun"
PAUSED: Final = "Paused"
OTHER_AUTOSCALER: Final = "OtherAutoscaler"


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionGuard:
    """What forbids actions now. `paused`: the value of a pause annotation; empty when not paused.

    `other_autoscaler`: which other program does the same work; empty: none.
    """

    dry_run: bool = False
    paused: str = ""
    other_autoscaler: str = ""

    @property
    def reason(self) -> Reason | None:
        """Why nothing may be done; None: actions are allowed."""
        if self.dry_run:
            return Reason(code=DRY_RUN, message="dry run: the action is reported, not carried out")
        if self.paused:
            why = "" if self.paused == "true" else f": {self.paused}"
            return Reason(code=PAUSED, message=f"paused{why}")
        if self.other_autoscaler:
            message = f"another autoscaler is at work: {self.other_autoscaler}"
            return Reason(code=OTHER_AUTOSCALER, message=message, facts={"autoscalers": self.other_autoscaler})
        return None


def read_pause_annotation(annotations: Mapping[str, str]) -> str:
    """The pause that annotations ask for; empty: none."""
    value = annotations.get(PAUSED_ANNOTATION, "").strip()
    return "" if value == "false" else value


async def read_pause(client: Client, namespace: str) -> str:
    """The pause of all controllers; empty: none, or the API server does not answer the question."""
    try:
        config_map = await read_config_map(client, namespace)
    except ApiError as error:
        log.warning("pause.unknown", namespace=namespace, problem=str(error))
        return ""
    return "" if config_map is None else read_pause_annotation(config_map.metadata.annotations)


async def set_pause(client: Client, namespace: str, why: str | None) -> str:
    """Pauses all controllers, or resumes them with None. Returns the pause that was in force before."""
    annotation = None if why is None else why.strip() or "true"

    async def attempt() -> str:
        config_map = await read_config_map(client, namespace)
        before = "" if config_map is None else read_pause_annotation(config_map.metadata.annotations)
        if annotation is not None or before:
            patch = {"metadata": {"annotations": {PAUSED_ANNOTATION: annotation}}}
            version = "" if config_map is None else config_map.metadata.resource_version
            await patch_config_map(client, namespace, patch, version=version)
        return before

    return await retry_update(namespace, attempt)
