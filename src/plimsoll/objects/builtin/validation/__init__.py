"""Validation of built-in kinds, one module per kind or shared part."""
