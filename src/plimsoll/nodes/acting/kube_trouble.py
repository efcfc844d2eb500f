"""What a call to the API server may end with that one removal fails of, and the autoscaler goes on."""

from __future__ import annotations

from typing import Final

from plimsoll.core.errors import Unreachable
from plimsoll.kube.errors import ApiError, CredentialsFailed, NotAllowed, UnreadableAnswer

CALL_FAILED: Final = (ApiError, Unreachable, UnreadableAnswer, CredentialsFailed, NotAllowed)
"""`NotAllowed` is our own guard's no: the lease is lost, or somebody pulled the brake."""
