"""How the simulated cloud says no to a call. `local.cloud` raises these; the node autoscaler's provider reads them.

CloudError
├── CloudRefused     against the rules: over the maximum, below the minimum; nothing was done
│   └── CloudOutOfResources   no stock or quota for all of it
├── NoSuchGroup
├── NotSupported     this group cannot do it at all; the caller does without
├── CloudFailed      an injected failure; nothing was done
└── CloudTimedOut    an injected time-out; it was done
"""

from __future__ import annotations

from plimsoll.core.errors import PlimsollError


class CloudError(PlimsollError):
    """A call to the cloud that did not go well."""


class CloudRefused(CloudError):
    """The call asks for something the cloud does not do."""


class CloudOutOfResources(CloudRefused):
    """Stock or quotas have no room for all that was asked for."""


class NoSuchGroup(CloudError):
    """There is no node group of this name."""


class NotSupported(CloudError):
    """The group has no such operation."""


class CloudFailed(CloudError):
    """A fault said that this call fails."""


class CloudTimedOut(CloudError):
    """The answer did not come. What was asked for has been done, but the caller cannot know it."""
