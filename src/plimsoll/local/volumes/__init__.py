"""Persistent volumes: binding of claims, provisioning, and protection while in use.

Entry point: `plimsoll.local.volumes.services.volume_services`.
"""
