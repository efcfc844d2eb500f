"""Measurements: one module a subject, one runner. Ratios in one run on one machine; no test asserts seconds."""
