"""Defaulting of built-in kinds."""
