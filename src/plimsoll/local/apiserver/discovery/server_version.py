"""`/version`: which Kubernetes this server speaks.

kubectl compares `gitVersion` with its own and warns beyond one minor version; what follows the plus sign is a build
mark it skips.
"""

from __future__ import annotations

import sys
from typing import Any, Final

GIT_VERSION: Final = "v1.34.0+plimsoll"


def build_version_info() -> dict[str, Any]:
    return {
        "major": "1",
        "minor": "34",
        "emulationMajor": "1",
        "emulationMinor": "34",
        "minCompatibilityMajor": "1",
        "minCompatibilityMinor": "33",
        "gitVersion": GIT_VERSION,
        "gitCommit": "",
        "gitTreeState": "archive",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": f"python{sys.version_info.major}.{sys.version_info.minor}",
        "compiler": sys.implementation.name,
        "platform": "linux/amd64",
    }
