"""A headless Chromium, as a person's browser: every request that it makes is recorded."""

from __future__ import annotations

import os
import re
import shutil
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser, BrowserContext, Page

_CHROMIUM = ("chromium", "chromium-browser", "google-chrome")


class OpenPage(NamedTuple):
    """A page with what its browser did. `errors`: exceptions and refusals of its scripts."""

    page: Page
    hosts: set[str]
    errors: list[str]

    def show(self, where: str) -> None:
        """Go to a page of the console by its address, as a link does."""
        base = self.page.url.split("#")[0]
        self.page.goto(f"{base}#/{where}")
        self.page.wait_for_selector("h1")

    def read(self, selector: str = "main") -> str:
        return self.page.inner_text(selector)


def need_browser() -> str:
    """The path of Chromium; skips where it, or Playwright, is missing."""
    found = next((path for name in _CHROMIUM if (path := shutil.which(name))), None)
    if find_spec("playwright") is None or found is None:
        pytest.skip("NOT TESTED: needs the extra `browser` (pip install -e '.[browser]') and Chromium (apt: chromium)")
    return found


@contextmanager
def launch_browser() -> Iterator[Browser]:
    path = need_browser()
    from playwright.sync_api import sync_playwright  # noqa: PLC0415 - it may be missing

    # Chromium has no sandbox for root.
    options = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=options)
        try:
            yield browser
        finally:
            browser.close()


def open_page(context: BrowserContext, address: str) -> OpenPage:
    """Opens the address that `up` printed, with its code."""
    hosts: set[str] = set()
    errors: list[str] = []
    page = context.new_page()
    page.on("request", lambda request: hosts.add(urlsplit(request.url).hostname or ""))
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
    page.goto(address)
    page.wait_for_selector("h1")
    return OpenPage(page, hosts, errors)


def find_console(screen: str) -> str:
    """The address in the first screen of `plimsoll up`."""
    found = re.search(r"http://127\.0\.0\.1:\d+/#code=\S+", screen)
    assert found, screen
    return found[0]
