"""Validation of CustomResourceDefinitions and their schemas."""
