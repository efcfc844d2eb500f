"""Makes the pictures of docs/console.md: `python -m tests.e2e.console.pictures`."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tests.e2e.console.browsers import find_console, launch_browser, open_page
from tests.e2e.up.up_processes import REPOSITORY, running

if TYPE_CHECKING:
    from tests.e2e.console.browsers import OpenPage
    from tests.e2e.up.up_processes import UpProcess

IMAGES: Final = REPOSITORY / "docs" / "images"
WORKLOADS: Final = {
    "web": (60, "500m"),
    "api": (30, "1500m"),
    "batch": (12, "3"),
    "cache": (40, "250m"),
    "huge": (2, "500"),
}
PODS: Final = sum(replicas for name, (replicas, _) in WORKLOADS.items() if name != "huge")


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, running(Path(folder) / "cluster", "--nodes", "24") as up:
        _fill(up)
        with launch_browser() as browser:
            context = browser.new_context(viewport={"width": 1280, "height": 720})
            _take(open_page(context, find_console(up.screen)))


def _fill(up: UpProcess) -> None:
    for name, (replicas, cpu) in WORKLOADS.items():
        up.kubectl("create", "deployment", name, "--image=nginx", f"--replicas={replicas}")
        up.kubectl("set", "resources", f"deployment/{name}", f"--requests=cpu={cpu}")
    up.until(lambda: _count_running(up) >= PODS, "all pods run")


def _count_running(up: UpProcess) -> int:
    return len(up.objects("pods", "--field-selector=status.phase=Running"))


def _take(opened: OpenPage) -> None:
    for name, where in (("overview", ""), ("nodes", "nodes"), ("cost", "cost")):
        opened.show(where)
        opened.page.wait_for_timeout(3_000)
        opened.page.screenshot(path=IMAGES / f"console-{name}.png")


if __name__ == "__main__":
    main()
