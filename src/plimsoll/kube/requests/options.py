"""Options of calls: which part of a list, how to delete or write, how a client behaves.

Plain values without a client, so that informers, controllers and the command line can hold, compare and print them.
"""

from __future__ import annotations

import platform
from typing import Final, TypedDict

import msgspec

import plimsoll
from plimsoll.core.errors import InvalidInput
from plimsoll.core.field_selectors import FieldSelector  # noqa: TC001 - msgspec reads the annotation
from plimsoll.core.selectors import LabelSelector
from plimsoll.core.values import Value
from plimsoll.runtime.backoff import Backoff

USER_AGENT: Final = f"plimsoll/{plimsoll.__version__} (python/{platform.python_version()})"
DRY_RUN: Final = ("dryRun", "All")


class Selection(Value, frozen=True):
    """Which objects of a kind. Without a namespace: those of all.

    Selectors may be text or the parsed types. `resource_version` and `resource_version_match` are the API's own: empty
    means the newest state. `page_size` is the client's own unless given; 0 asks for everything in one answer.
    """

    namespace: str = ""
    labels: str | LabelSelector = ""
    fields: str | FieldSelector = ""
    resource_version: str = ""
    resource_version_match: str = ""
    page_size: int | None = None

    def __post_init__(self) -> None:
        if isinstance(self.labels, LabelSelector) and self.labels.selects_nothing:
            # It has no text form: sent as empty text it would select everything.
            raise InvalidInput("selects nothing; there is nothing to ask a server for", path="labels")
        if self.page_size is not None and self.page_size < 0:
            raise InvalidInput(f"must be 0 or more, is {self.page_size}", path="page_size")
        if self.resource_version_match and not self.resource_version:
            raise InvalidInput("means nothing without resource_version", path="resource_version_match")

    def without_paging(self) -> Selection:
        return msgspec.structs.replace(self, page_size=0)

    @property
    def query(self) -> list[tuple[str, str]]:
        """The selectors as query parameters."""
        pairs = (("labelSelector", str(self.labels)), ("fieldSelector", str(self.fields)))
        return [(name, value) for name, value in pairs if value]

    @property
    def version_query(self) -> list[tuple[str, str]]:
        """The requested version, for the first page only: later pages have it in their `continue`."""
        pairs = (("resourceVersion", self.resource_version), ("resourceVersionMatch", self.resource_version_match))
        return [(name, value) for name, value in pairs if value]


class DeleteOptions(Value, frozen=True):
    """How to delete, and on which conditions. `propagation` is Background, Foreground or Orphan; empty: the kind's."""

    uid: str = ""
    """Delete only if it is this very object, not one of the same name."""
    resource_version: str = ""
    grace_s: int | None = None
    propagation: str = ""
    is_dry_run: bool = False

    def __post_init__(self) -> None:
        if self.propagation not in {"", "Background", "Foreground", "Orphan"}:
            raise InvalidInput(f"must be Background, Foreground or Orphan, is {self.propagation}", path="propagation")
        if self.grace_s is not None and self.grace_s < 0:
            raise InvalidInput(f"must be 0 or more, is {self.grace_s}", path="grace_s")

    @property
    def body(self) -> dict[str, object]:
        """The fields of a `DeleteOptions` object; empty by default."""
        conditions = {"uid": self.uid, "resourceVersion": self.resource_version}
        preconditions = {name: value for name, value in conditions.items() if value}
        fields: dict[str, object] = {"preconditions": preconditions, "propagationPolicy": self.propagation}
        body = {name: value for name, value in fields.items() if value}
        if self.grace_s is not None:
            body["gracePeriodSeconds"] = self.grace_s
        if self.is_dry_run:
            body["dryRun"] = ["All"]
        return body


class WriteOptions(TypedDict, total=False):
    """Options of every write."""

    dry_run: bool
    """Do everything but store it."""
    field_manager: str
    """In whose name; empty: the client's."""
    field_validation: str
    """Ignore, Warn or Strict; empty: the server's default, Warn."""


class ApplyOptions(WriteOptions, total=False):
    """Further options of a server-side apply."""

    force: bool
    """Take fields over from other managers instead of failing with `Conflict`."""


class WatchOptions(TypedDict, total=False):
    """The parameters of a watch request: how long it lasts, and what it sends besides changes."""

    timeout_seconds: int
    """When the server ends it; 0: when it likes."""
    bookmarks: bool
    """Request events that only report the position of the watch. On by default."""
    send_initial_events: bool
    """Start with the present objects (WatchList), ended by a bookmark that says so."""


class ClientSettings(Value, frozen=True):
    """How a client behaves.

    `timeout_s` bounds one attempt. `deadline_s` bounds a call with all its attempts, counted from when the first one
    may go; before that a call may wait in the rate limit of `qps` calls per second on average and
    `burst` at once (`qps` 0: no limit).
    """

    user_agent: str = USER_AGENT
    field_manager: str = "plimsoll"
    timeout_s: float = 30.0
    deadline_s: float = 60.0
    qps: float = 50.0
    burst: int = 100
    retry: Backoff = Backoff(initial_s=0.25, cap_s=8.0, jitter=0.5, max_attempts=10, retry_after_cap_s=60.0)
    page_size: int = 500

    def __post_init__(self) -> None:
        for field in ("timeout_s", "deadline_s"):
            if not getattr(self, field) > 0:
                raise InvalidInput(f"must be more than 0, is {getattr(self, field)}", path=field)
        for field in ("qps", "burst", "page_size"):
            if not getattr(self, field) >= 0:
                raise InvalidInput(f"must be 0 or more, is {getattr(self, field)}", path=field)
        if self.qps and not self.burst:
            raise InvalidInput("must be at least 1 where qps is limited", path="burst")
        if not self.field_manager:
            raise InvalidInput("must not be empty", path="field_manager")


EVERYTHING: Final = Selection()
PLAINLY: Final = DeleteOptions()
DEFAULT_SETTINGS: Final = ClientSettings()
