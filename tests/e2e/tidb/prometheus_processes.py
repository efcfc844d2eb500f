"""A real Prometheus: Debian's package unpacked into a scratch folder, filled with recorded blocks or scraping live."""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.error import URLError
from urllib.parse import urlencode
from urllib.request import urlopen

import pytest

from tests.e2e.ports import lasting_port
from tests.e2e.timeouts import PATIENCE_S

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_PACKAGE = "prometheus"
_QUIET = "global: {scrape_interval: 15s}\n"


class Binaries(NamedTuple):
    """Where the two programs are."""

    prometheus: str
    promtool: str


def needs_prometheus(scratch: Path) -> Binaries:
    """From PATH, or unpacked into `scratch`; where neither can be had, the tests are skipped and say so."""
    if (server := shutil.which("prometheus")) and (tool := shutil.which("promtool")):
        return Binaries(server, tool)
    unpacked = scratch / "unpacked"
    found = Binaries(str(unpacked / "usr/bin/prometheus"), str(unpacked / "usr/bin/promtool"))
    if not Path(found.promtool).exists():
        problem = _fetch(scratch, unpacked)
        if problem:
            pytest.skip(f"NOT TESTED: there is no Prometheus: {problem}")
    return found


def _fetch(scratch: Path, unpacked: Path) -> str:
    """What went wrong, if anything did."""
    for program in ("apt-get", "dpkg"):
        if shutil.which(program) is None:
            return f"it is not on PATH, and neither is {program}"
    fetched = subprocess.run(
        ["apt-get", "download", _PACKAGE], cwd=scratch, capture_output=True, text=True, check=False
    )
    packages = sorted(scratch.glob(f"{_PACKAGE}_*.deb"))
    if fetched.returncode != 0 or not packages:
        return f"apt-get download (it may want apt-get update first): {fetched.stderr.strip()[-300:]}"
    subprocess.run(["dpkg", "-x", packages[-1], unpacked], check=True)
    return ""


class PrometheusProcess(NamedTuple):
    """One that is ready."""

    process: subprocess.Popen[bytes]
    url: str

    def query(self, text: str, at_s: float | None = None) -> dict[str, float]:
        """Values by the label `instance`."""
        fields = {"query": text} if at_s is None else {"query": text, "time": f"{at_s}"}
        with urlopen(f"{self.url}/api/v1/query?{urlencode(fields)}", timeout=PATIENCE_S) as answer:
            result = json.load(answer)["data"]["result"]
        return {sample["metric"]["instance"]: float(sample["value"][1]) for sample in result}

    def stop(self) -> None:
        self.process.kill()
        self.process.wait(timeout=PATIENCE_S)


def fill(binaries: Binaries, series: Sequence[str], directory: Path) -> None:
    """Make blocks of OpenMetrics text, given without its end."""
    text = directory.with_suffix(".txt")
    text.write_text("\n".join([*series, "# EOF", ""]))
    subprocess.run(
        [binaries.promtool, "tsdb", "create-blocks-from", "openmetrics", "--quiet", str(text), str(directory)],
        check=True,
        capture_output=True,
        timeout=PATIENCE_S,
    )


@contextmanager
def prometheus(binaries: Binaries, directory: Path, *, config: str = _QUIET) -> Iterator[PrometheusProcess]:
    """Over the blocks of a directory, if it has any; on a port of its own."""
    directory.mkdir(exist_ok=True)
    settings = directory.with_suffix(".yml")
    settings.write_text(config)
    address = f"127.0.0.1:{lasting_port()}"
    with directory.with_suffix(".log").open("wb") as log:
        process = subprocess.Popen(
            [
                binaries.prometheus,
                f"--config.file={settings}",
                f"--storage.tsdb.path={directory}",
                "--storage.tsdb.retention.time=100y",
                f"--web.listen-address={address}",
                "--log.level=warn",
            ],
            stdout=log,
            stderr=log,
        )
    found = PrometheusProcess(process, f"http://{address}")
    try:
        wait_for(f"{found.url}/-/ready", process)
        yield found
    finally:
        found.stop()


def wait_for(url: str, process: subprocess.Popen[Any]) -> None:
    """Until it answers with 200."""
    until_s = time.monotonic() + PATIENCE_S
    while True:
        assert process.poll() is None, f"{url}: its process has ended"
        try:
            with urlopen(url, timeout=PATIENCE_S):
                return
        except (URLError, ConnectionError):
            assert time.monotonic() < until_s, f"not within {PATIENCE_S} s: {url}"
            time.sleep(0.1)
