"""Filling of existing bins."""
