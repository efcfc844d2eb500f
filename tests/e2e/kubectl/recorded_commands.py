"""The recorded kubectl commands: which of them run against the API server alone, and how their output is compared.

Nothing here talks to a server. Every command that is left out, and every text in which another kubectl than the
recorded 1.34 differs, is listed with its reason.
"""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple

_FOLDER = Path(__file__).parents[2] / "fixtures" / "kubernetes" / "kubectl"

# The proxy of the recording refused protobuf or OpenAPI on purpose; a server does not.
_NOT_A_SERVER: Final = ("-json-only-", "-no-openapi-")

# Their output is the work of controllers, of the scheduler or of a kubelet: tests/e2e/up runs them with those.
NEEDS_CONTROLLERS: Final = {
    "006-rollout-status": "waits for the deployment controller",
    "007-get-pods": "lists the pods of a deployment",
    "008-get-pods-wide": "lists the pods of a deployment",
    "009-get-pods-json": "lists the pods of a deployment",
    "010-get-pods-selector-all-namespaces": "lists the pods of a deployment",
    "011-get-deploy-yaml": "shows the status a deployment controller wrote",
    "012-get-pods-sort-custom-columns": "lists the pods of a deployment",
    "016-get-all": "lists the pods and replica sets of a deployment",
    "018-get-several": "shows the readiness of a deployment",
    "019-describe-pod": "describes a pod of a deployment",
    "020-describe-deployment": "describes what controllers did",
    "021-describe-node": "lists the pods on a node",
    "047-wait-condition": "waits for the deployment controller",
    "052-get-watch-output-events": "shows the readiness of deployments",
    "054-get-events": "lists events of controllers and scheduler",
    "055-events": "lists events of the deployment controller",
    "061-rollout-history": "reads the revisions a deployment controller keeps",
    "064-rollout-undo": "reads the revisions a deployment controller keeps",
    "070-drain-blocked-by-pdb": "evicts pods of deployments",
    "071-drain": "evicts pods of deployments",
    "087-delete-cascade-orphan": "waits for the garbage collector",
    "089-delete-selector": "deletes pods of a deployment",
    "090-delete-deployment-foreground": "waits for the garbage collector",
    "096-delete-namespace": "waits for the namespace controller",
}

# What differs on purpose, whichever kubectl asks.
KNOWN_DIFFERENCES: Final = {
    "053-explain": "the published schemas carry no descriptions",
    "058-auth-whoami": "a token has no X.509 credential id",
    "142-protobuf-auth-whoami": "a token has no X.509 credential id",
}

# Compared on what is served: the recorded server has groups and kinds that Plimsoll does without.
SERVED_LINES_ONLY: Final = ("002-api-versions", "003-api-resources")

# An object as the server wrote it: the order of its keys has no meaning.
JSON_OUTPUT: Final = ("060-get-raw-api",)

# The texts of an older kubectl: since which version they read as recorded, and how they read before.
_CLIENT_TEXTS: Final = (
    ((1, 34), re.compile(r"( deleted) from \S+ namespace$", re.MULTILINE), r"\1"),
    (
        (1, 34),
        re.compile(r"^(metadata:\n)(  name: x\n  namespace: kc\n)\Z", re.MULTILINE),
        r"\1  creationTimestamp: null\n\2",
    ),
    ((1, 34), re.compile(r"( force deleted) from \S+ namespace$", re.MULTILINE), r"\1"),
)

_MASKS: Final = (
    (re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"), "<uid>"),
    (re.compile(r"20\d\d-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z| [+-]\d{4})"), "<time>"),
    (re.compile(r'(resourceVersion"?: ?)"\d+"'), r'\1"<resourceVersion>"'),
    (re.compile(r"\S*(LIVE|MERGED)-\d+"), r"\1"),
    (re.compile(r"eyJ[\w-]+\.[\w-]+\.[\w-]+"), "<jwt>"),
    (re.compile(r"(?m)^(Client|Kustomize) Version: .*$"), r"\1 Version: <client>"),
    (re.compile(r"WARNING: version difference between client .*\n"), ""),
    (re.compile(r"(Server Version: v\d+\.\d+)\S*"), r"\1"),
    (re.compile(r"(?<=\s)(\d+[dhms])+(?=\s)"), "<age>"),
    # Widths of columns follow the longest cell, and so the ages.
    (re.compile(r" {2,}"), "  "),
)


class RecordedCommand(NamedTuple):
    id: str
    command: str
    files: dict[str, str]
    stdin: str
    exit_code: int | str
    requests: list[dict[str, Any]]
    stdout: str
    stderr: str


@cache
def recorded_commands() -> tuple[RecordedCommand, ...]:
    """All commands that a server can be asked to answer, in their order."""
    paths = sorted(path for path in _FOLDER.glob("*.json") if not any(part in path.name for part in _NOT_A_SERVER))
    return tuple(_command(json.loads(path.read_text())) for path in paths)


def _command(recorded: dict[str, Any]) -> RecordedCommand:
    return RecordedCommand(
        id=recorded["id"],
        command=recorded["command"],
        files=recorded["files"],
        stdin=recorded.get("stdin", ""),
        exit_code=recorded["exit_code"],
        requests=recorded["requests"],
        stdout=recorded["stdout"],
        stderr=recorded["stderr"],
    )


def as_printed_by(text: str, client: tuple[int, int]) -> str:
    """A recorded text as a kubectl of another version writes it."""
    for since, pattern, replacement in _CLIENT_TEXTS:
        if client < since:
            text = pattern.sub(replacement, text)
    return text


def masked(text: str) -> str:
    for pattern, replacement in _MASKS:
        text = pattern.sub(replacement, text)
    return "\n".join(line.rstrip() for line in text.splitlines())
