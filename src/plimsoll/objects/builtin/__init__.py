"""Kubernetes' built-in kinds as a 1.34 API server checks them: decoding, defaulting, validation.

Pure functions on JSON objects. `checking` is the door; everything else is a rule behind it.
"""

from __future__ import annotations

from plimsoll.objects.builtin.api import ObjectProblems, check_create, check_update, default, is_builtin
from plimsoll.objects.builtin.decoding.decode import DecodeProblem

__all__ = ["DecodeProblem", "ObjectProblems", "check_create", "check_update", "default", "is_builtin"]
