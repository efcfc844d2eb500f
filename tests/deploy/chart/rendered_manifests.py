"""The manifests in `deploy/` that are rendered from the chart: `make render` writes them, tests compare.

The chart is the one truth. Each folder has the objects of one component, for `kubectl apply -k`; definitions are in
`deploy/crds`. Rendering needs helm. A file with digests says which chart was rendered last, so that a test without helm
notices a chart that was changed and not rendered, or a rendered file that was edited.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from tests.deploy.watching.dashboards import write_dashboards

DEPLOY: Final = Path(__file__).parents[3] / "deploy"
CHART: Final = DEPLOY / "helm" / "plimsoll"
DIGESTS: Final = DEPLOY / "helm" / "rendered.json"
NAMESPACE: Final = "kube-system"

OVERLAYS: Final[dict[str, tuple[str, ...]]] = {
    "nodes": ("nodes.enabled=true", "requests.enabled=true", "nodes.provider.name="),
    "nodes-simulated": ("nodes.enabled=true", "requests.enabled=true", "nodes.provider.name=simulated"),
    "nodes-clusterapi": ("nodes.enabled=true", "requests.enabled=true", "nodes.provider.name=clusterapi"),
    "tidb": ("tidb.enabled=true",),
    "kafka": ("kafka.enabled=true",),
    "agent": ("agent.enabled=true",),
    "fleet": ("fleet.enabled=true",),
    "console": ("console.enabled=true",),
}
"""Folders in `deploy/` with the values that their files are rendered with."""
_HEAD: Final = "# Rendered from deploy/helm/plimsoll/templates/{source} by `make render`.\n"


def find_helm() -> str | None:
    """The helm on this machine."""
    return shutil.which("helm")


def render_chart(*values: str, release: str = "plimsoll", namespace: str = NAMESPACE) -> dict[str, str]:
    """The rendered text of each template, by its path within `templates/`."""
    helm = find_helm()
    assert helm is not None
    with tempfile.TemporaryDirectory() as folder:
        words = [word for value in values for word in ("--set", value)]
        command = [helm, "template", release, str(CHART), "-n", namespace, "--kube-version", "1.34.0", *words]
        command += ["--output-dir", folder]
        subprocess.run(command, check=True, capture_output=True, text=True)
        root = Path(folder) / "plimsoll" / "templates"
        return {str(path.relative_to(root)): path.read_text() for path in sorted(root.rglob("*.yaml"))}


def render_all() -> dict[str, str]:
    """The text of every rendered file, by its path within `deploy/`."""
    found: dict[str, str] = {}
    for overlay, values in OVERLAYS.items():
        for source, text in render_chart(*values).items():
            if source.startswith(f"{overlay}/"):
                found[source] = _HEAD.format(source=source) + _clean(text)
    return found


def compute_digests() -> dict[str, str]:
    """Of the chart, and of each rendered file as it is on disk."""
    chart = hashlib.sha256()
    for path in sorted(CHART.rglob("*")):
        if path.is_file():
            chart.update(str(path.relative_to(CHART)).encode() + b"\0" + path.read_bytes() + b"\0")
    rendered = json.loads(DIGESTS.read_text()) if DIGESTS.exists() else {}
    names = sorted(name for name in rendered if name != "chart")
    return {"chart": chart.hexdigest()} | {name: _compute_digest(DEPLOY / name) for name in names}


def _compute_digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "missing"


def _clean(text: str) -> str:
    """Without helm's own separators and comments at the beginning, and with one separator between objects."""
    objects = [part.partition("\n")[2].strip("\n") for part in text.split("---\n# Source: ") if part.strip()]
    lines = "\n---\n".join(objects).splitlines()
    return "\n".join(line.rstrip() for line in lines) + "\n"


def write_all() -> int:
    """Write every rendered file and the digests; returns how many changed."""
    changed = 0
    write_dashboards(CHART / "files" / "dashboards")
    rendered = render_all()
    for name, text in rendered.items():
        path = DEPLOY / name
        if not path.is_file() or path.read_text() != text:
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
            changed += 1
    DIGESTS.write_text(json.dumps(dict.fromkeys(sorted(rendered), ""), indent=2))
    DIGESTS.write_text(json.dumps(compute_digests(), indent=2) + "\n")
    return changed


if __name__ == "__main__":
    if find_helm() is None:
        sys.exit("make render needs helm: go install helm.sh/helm/v3/cmd/helm@v3.19.2")
    sys.stdout.write(f"{write_all()} files changed\n")
