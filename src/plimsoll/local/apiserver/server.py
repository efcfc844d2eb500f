"""The dependencies of one API server, which handlers, admission, subresources and reviews share.

It has no behaviour of its own; `application` serves requests with it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from plimsoll.local.apiserver.crd_tasks import CrdTasks
from plimsoll.local.apiserver.long_work import LongWork
from plimsoll.local.apiserver.storage.key_lock import ObjectLocks
from plimsoll.local.apiserver.strategies.presented_objects import PresentedObjects

if TYPE_CHECKING:
    from plimsoll.core.clock import Clock
    from plimsoll.core.entropy import Entropy
    from plimsoll.local.apiserver.admission import Admission
    from plimsoll.local.apiserver.auth_types import Authenticator, Authorizer
    from plimsoll.local.apiserver.authentication.tokens import ServiceAccountTokens
    from plimsoll.local.apiserver.resources.registry import ResourceRegistry
    from plimsoll.local.apiserver.storage import Store


class Server:
    """The dependencies of one API server."""

    def __init__(  # noqa: PLR0913 - every part by its name
        self,
        *,
        store: Store,
        registry: ResourceRegistry,
        clock: Clock,
        entropy: Entropy,
        authenticator: Authenticator,
        authorizer: Authorizer,
        admission: Admission,
        tokens: ServiceAccountTokens,
        long_work: LongWork | None = None,
    ) -> None:
        self.store = store
        self.registry = registry
        self.clock = clock
        self.entropy = entropy
        self.authenticator = authenticator
        self.authorizer = authorizer
        self.admission = admission
        self.tokens = tokens
        self.locks = ObjectLocks()
        self.long_work = long_work or LongWork()
        self.crd_tasks = CrdTasks()
        self.presented = PresentedObjects()
