"""Scenarios of a fleet: several clusters, made and deleted by the fleet manager."""
