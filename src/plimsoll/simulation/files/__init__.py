"""Readers of scenario files. Every error has its path."""
