"""What a change function may decide about one object. `Keep` writes nothing and leaves the revision as it is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from plimsoll.local.apiserver.storage.objects import Stored


class Put(NamedTuple):
    """Store this object; its metadata.resourceVersion is set by the store, in a copy."""

    body: Mapping[str, Any]


class Delete(NamedTuple):
    """Remove the object; of one that is not there, the same as `Keep`."""


class Keep(NamedTuple):
    """Leave everything as it is."""


Decision = Put | Delete | Keep
ChangeOne = Callable[[Stored | None], Decision]
