"""Everything about volumes at once: what whoever puts a cluster together asks for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from plimsoll.local.volumes import binder, ephemeral_claims, protection, provisioner
from plimsoll.local.volumes.binder import Binder
from plimsoll.local.volumes.ephemeral_claims import EphemeralClaims
from plimsoll.local.volumes.protection import ClaimProtection, VolumeProtection
from plimsoll.local.volumes.provisioner import Provisioner
from plimsoll.runtime.services import Service

if TYPE_CHECKING:
    from plimsoll.local.components import Components


def volume_services(components: Components) -> list[Service]:
    parts = (
        Binder(components.component(binder.NAME)),
        ClaimProtection(components.component(protection.CLAIMS_NAME)),
        VolumeProtection(components.component(protection.VOLUMES_NAME)),
        EphemeralClaims(components.component(ephemeral_claims.NAME)),
        Provisioner(components.component(provisioner.NAME, manager=provisioner.MANAGER)),
    )
    return [Service(name=part.controller.name, run=part.controller.run) for part in parts]
