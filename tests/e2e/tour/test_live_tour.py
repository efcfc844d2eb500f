"""The tour in real time with its console: faster than a clock on the wall, and every step happens."""

from __future__ import annotations

import re
import subprocess
import sys
import urllib.request

PATIENCE_S = 900


def test_the_live_tour_ends_with_0_and_its_console_answers() -> None:
    command = [sys.executable, "-m", "plimsoll", "tour", "--speed", "20"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as tour:
        assert tour.stdout is not None
        console = re.search(r"http://127\.0\.0\.1:\d+/", tour.stdout.readline())
        assert console
        first_step = next(line for line in tour.stdout if line.startswith("1/12 "))
        assert "fleet manager" in first_step
        with urllib.request.urlopen(console[0], timeout=60) as page:
            assert b"<title>Plimsoll</title>" in page.read()
        shown = tour.stdout.read()
        assert tour.wait(timeout=PATIENCE_S) == 0, shown
    assert "Every step happened" in shown
