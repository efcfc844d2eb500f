"""The services of the volume controllers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from plimsoll.local.volumes import binder, ephemeral_claims, protection, provisioner
from plimsoll.local.volumes.binder import VolumeBinder
from plimsoll.local.volumes.ephemeral_claims import EphemeralVolumeController
from plimsoll.local.volumes.protection import ClaimProtectionController, VolumeProtectionController
from plimsoll.local.volumes.provisioner import Provisioner
from plimsoll.runtime.supervisor import Service

if TYPE_CHECKING:
    from plimsoll.local.components import Components


def build_volume_services(components: Components) -> list[Service]:
    parts = (
        VolumeBinder(components.build_component(binder.NAME)),
        ClaimProtectionController(components.build_component(protection.CLAIMS_NAME)),
        VolumeProtectionController(components.build_component(protection.VOLUMES_NAME)),
        EphemeralVolumeController(components.build_component(ephemeral_claims.NAME)),
        Provisioner(components.build_component(provisioner.NAME, manager=provisioner.MANAGER)),
    )
    return [Service(name=part.controller.name, run=part.controller.run) for part in parts]
