"""The kinds of Kubernetes and the custom ones that Plimsoll brings: the table of whoever works with both."""

from __future__ import annotations

from typing import Final

from plimsoll.objects.cloud import CLOUD_RESOURCES
from plimsoll.objects.registry import KINDS
from plimsoll.objects.requests import REQUEST_RESOURCES
from plimsoll.objects.tidb import TIDB_RESOURCES

OUR_KINDS: Final = KINDS.extended((*CLOUD_RESOURCES, *REQUEST_RESOURCES, *TIDB_RESOURCES))
