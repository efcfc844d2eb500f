"""Errors of the simulated cloud. `local.cloud` raises them; the provider of the node autoscaler handles them.

CloudError
├── CloudRefused     against the rules: over the maximum, below the minimum; nothing was done
│   └── CloudOutOfResources   no stock or quota for all of it
├── NoSuchGroup
├── NotSupported     this group does not have the operation
├── CloudFailed      an injected failure; nothing was done
└── CloudTimedOut    an injected time-out; it was done
"""

from __future__ import annotations

from plimsoll.core.errors import PlimsollError


class CloudError(PlimsollError):
    """A call to the cloud that did not go well."""


class CloudRefused(CloudError):
    """The call violates a rule of the cloud."""


class CloudOutOfResources(CloudRefused):
    """Stock or quotas are not sufficient for the request."""


class NoSuchGroup(CloudError):
    """There is no node group of this name."""


class NotSupported(CloudError):
    """The group does not have the operation."""


class CloudFailed(CloudError):
    """An injected fault made the call fail."""


class CloudTimedOut(CloudError):
    """The answer did not arrive. The call took effect, but the caller cannot know it."""
