"""Exec plugins as shell scripts, and a kubeconfig that names them."""

from __future__ import annotations

import asyncio
import json
import os
import shlex
from typing import TYPE_CHECKING, Any

from plimsoll.kube.configuration import AccessOptions, LoaderContext, choose_access
from plimsoll.runtime.clocks import RealClock

if TYPE_CHECKING:
    from pathlib import Path

    from plimsoll.kube.access import Credential, Credentials

V1 = "client.authentication.k8s.io/v1"


def prints(**status: Any) -> str:
    """A line of shell that prints an answer."""
    text = json.dumps({"apiVersion": V1, "kind": "ExecCredential", "status": status})
    return f"printf %s {shlex.quote(text)}"


class PluginFolder:
    """A folder with a plugin and the kubeconfig beside it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def credentials(self, *lines: str, mode: int = 0o755, timeout_s: float = 30, **fields: Any) -> Credentials:
        """Those of a plugin with these lines of shell, each run of which leaves a mark."""
        script = self.folder / "plugin.sh"
        script.write_text("\n".join(["#!/bin/sh", f"echo run >> {self.folder}/runs", *lines]) + "\n")
        script.chmod(mode)
        section = {"apiVersion": V1, "command": "./plugin.sh", "interactiveMode": "Never", **fields}
        named = {
            "clusters": [{"name": "c", "cluster": {"server": "https://10.0.0.1:6443"}}],
            "users": [{"name": "u", "user": {"exec": section}}],
            "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
            "current-context": "x",
        }
        file = self.folder / "config"
        file.write_text(json.dumps(named))
        context = LoaderContext(environment=os.environ, clock=RealClock(), plugin_timeout_s=timeout_s)
        return choose_access(AccessOptions(kubeconfig=str(file)), context).credentials

    def ask(self, *lines: str, **fields: Any) -> Credential:
        return asyncio.run(self.credentials(*lines, **fields).get_current())

    def has(self, name: str) -> bool:
        """Whether the plugin has written this file, and something into it."""
        file = self.folder / name
        return file.exists() and bool(file.read_text())

    @property
    def runs(self) -> int:
        marks = self.folder / "runs"
        return len(marks.read_text().splitlines()) if marks.exists() else 0
