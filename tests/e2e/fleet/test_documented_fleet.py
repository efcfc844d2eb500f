"""The commands of docs/fleet.md, as a newcomer types them, and what the page shows below each."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from tests.e2e.ports import lasting_port
from tests.e2e.timeouts import PATIENCE_S
from tests.e2e.up.documented_commands import DocumentedCommand, read_commands

REPOSITORY = Path(__file__).parents[3]
PAGE = (REPOSITORY / "docs/fleet.md").read_text()
ADDRESS = "127.0.0.1:8000"


class Newcomer:
    """Types commands in an empty folder that has the examples."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        (folder / "examples").symlink_to(REPOSITORY / "examples")
        command = folder / "bin" / "plimsoll"
        command.parent.mkdir()
        command.write_text(f'#!/bin/sh\nexec {sys.executable} -m plimsoll "$@"\n')
        command.chmod(0o755)
        self._environment = {**os.environ, "PATH": f"{command.parent}:{os.environ['PATH']}", "COLUMNS": "120"}

    def run(self, command: str) -> str:
        ended = subprocess.run(
            ["bash", "-c", command],
            cwd=self._folder,
            env=self._environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE_S,
        )
        assert ended.returncode == 0, (command, ended.stdout, ended.stderr)
        return ended.stdout

    def start(self, command: str) -> subprocess.Popen[bytes]:
        """What it prints is in the file `screen`."""
        with (self._folder / "screen").open("wb") as screen:
            line = ["bash", "-c", f"exec {command}"]
            return subprocess.Popen(line, cwd=self._folder, env=self._environment, stdout=screen, stderr=screen)


def test_the_page_ends_with_a_placed_request_and_its_why(tmp_path: Path):
    address, pages = f"127.0.0.1:{lasting_port()}", f"127.0.0.1:{lasting_port()}"
    sections = ("Try it", "What if", "Another database")
    texts = [PAGE.split(f"\n## {name}\n")[1].split("\n## ")[0].replace(ADDRESS, address) for name in sections]
    commands = [command for text in texts for command in read_commands(text)]
    assert len(commands) == 14, commands
    newcomer, serving = Newcomer(tmp_path), None
    try:
        for documented in commands:
            command = documented.command
            if command.startswith("plimsoll run fleet"):
                listening = f"--listen={address} --health-listen={pages} --metrics-listen={pages}"
                serving = newcomer.start(f"{command} {listening}")
                _run_until_shown(newcomer, "cat screen", documented.shown)
                _run_until_shown(newcomer, f"curl -s http://{pages}/readyz || true", ["ok"])
                continue
            if command.startswith("plimsoll fleet token"):
                command = command.replace(" >", f" --url http://{address} >")
            _run_until_shown(newcomer, command, documented.shown)
    finally:
        if serving is not None:
            serving.send_signal(signal.SIGTERM)
            assert serving.wait(PATIENCE_S) == 0


def _run_until_shown(newcomer: Newcomer, command: str, shown: list[str]) -> None:
    """Workers take a moment: the command is repeated until it prints what the page shows."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        printed = newcomer.run(command)
        missing = DocumentedCommand(command, shown).find_missing(printed)
        if not missing:
            return
        assert time.monotonic() < deadline, (command, missing, printed)
        time.sleep(0.5)
