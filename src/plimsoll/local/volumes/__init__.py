"""Persistent volumes: claims are bound to volumes, volumes are made for claims, and neither goes while it is used.

Entry point: `plimsoll.local.volumes.services.volume_services`.
"""
