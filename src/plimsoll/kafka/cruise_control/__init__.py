"""Cruise Control's REST API."""
