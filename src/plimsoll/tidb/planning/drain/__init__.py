"""Decisions on draining TiKV stores before scale-in."""
