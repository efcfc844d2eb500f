"""The commands of docs/fleet-on-a-laptop.md, as a newcomer types them, and what the page shows below each."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING

from tests.e2e.timeouts import PATIENCE_S
from tests.e2e.up.documented_commands import DocumentedCommand, read_commands
from tests.e2e.up.newcomers import Newcomer, is_typed, read_page
from tests.e2e.up.up_processes import named, needs_kubectl, running
from tests.effort import IS_LONG

if TYPE_CHECKING:
    from pathlib import Path

needs_kubectl()
PAGE = read_page("docs/fleet-on-a-laptop.md")
EVERY = slice(None)
ROW, CLUSTER = "4ghff99x6hllv6w4njrb", "4p5p2r9dnwbcrj2wmv7xbxx9qcxjxtp8"
"""The ids on the page. Those of a run are drawn."""
IDS = re.compile(r"^([a-z0-9]{20}) +([a-z0-9]{32}) +aws us-east-1 +(\w+)", re.MULTILINE)


class LaptopUser:
    """Types the commands of the page with the ids and the address of this run."""

    def __init__(self, newcomer: Newcomer, address: str) -> None:
        self._newcomer = newcomer
        self._address = address
        self._ids: dict[str, str] = {}

    def follow(self, heading: str, *, chosen: slice = EVERY) -> int:
        """The commands of a section, or some of them; how many the section has."""
        commands = [documented for documented in read_commands(PAGE, heading=heading) if is_typed(documented.command)]
        for documented in commands[chosen]:
            self._type(documented)
        return len(commands)

    def wait_for_clusters(self, count: int) -> None:
        """Until so many are ready, and no other is there; the ids of the page then stand for the first one's."""
        until_s = time.monotonic() + PATIENCE_S
        while True:
            printed = self._newcomer.run("plimsoll fleet clusters")
            assert printed.code == 0, printed
            found = IDS.findall(printed.out)
            if [status for _, _, status in found] == ["ready"] * count:
                break
            assert time.monotonic() < until_s, printed
            time.sleep(1)
        row, cluster, _ = found[0]
        self._ids = self._ids or {ROW: row, CLUSTER: cluster, CLUSTER[:4]: cluster[:4]}

    def _type(self, documented: DocumentedCommand) -> None:
        """Again and again until it prints what the page shows: the fleet is at work."""
        typed = documented.command.replace("http://127.0.0.1:8000", self._address)
        if typed.startswith("plimsoll fleet token"):
            typed = typed.replace(" >", f" --url {self._address} >")
        shown = [self._name(line) for line in documented.shown]
        expected = DocumentedCommand(self._name(typed), shown)
        until_s = time.monotonic() + PATIENCE_S
        while True:
            answer = self._newcomer.run(expected.command)
            missing = expected.find_missing(answer.out, counts="get nodegroups" not in typed)
            if answer.code == 0 and not missing:
                return
            assert time.monotonic() < until_s, (expected, missing, answer)
            time.sleep(0.5)

    def _name(self, text: str) -> str:
        for shown, drawn in self._ids.items():
            text = re.sub(rf"\b{shown}\b", drawn, text)
        return text

    def wait_for_brokers(self) -> None:
        until_s = time.monotonic() + PATIENCE_S
        while "orders-brokers-2" not in (printed := self._newcomer.run("kubectl get pods -A --no-headers")).out:
            assert time.monotonic() < until_s, printed
            time.sleep(1)


def test_the_page_begins_with_nothing_and_ends_with_a_region_that_scales(tmp_path: Path):
    with running(tmp_path / "data", "--only", "fleet") as up:
        address = named(up.screen, r"Fleet API at (http://127\.0\.0\.1:\d+)")
        user = LaptopUser(Newcomer(tmp_path / "folder", up.data), address)
        user.wait_for_clusters(1)
        assert user.follow("## Start") == 1
        assert user.follow("## Look into it") == 3
        heading = "## Make the region grow"
        assert user.follow(heading, chosen=slice(4)) == 6
        user.wait_for_brokers()
        if IS_LONG:
            user.wait_for_clusters(2)
            user.follow(heading, chosen=slice(4, None))
            user.wait_for_clusters(1)
