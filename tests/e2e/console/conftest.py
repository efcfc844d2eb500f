"""One cluster and one browser for all tests of a module.

Playwright runs an event loop in the main thread while a browser is open: no other loop can run in the worker meanwhile.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.e2e.console.browsers import OpenPage, find_console, launch_browser, need_browser, open_page
from tests.e2e.up.up_processes import UpProcess, needs_kubectl, running

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser, BrowserContext


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[UpProcess]:
    need_browser()
    needs_kubectl()
    with running(tmp_path_factory.mktemp("console") / "cluster") as up:
        yield up


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with launch_browser() as launched:
        yield launched


@pytest.fixture(scope="module")
def context(browser: Browser, cluster: UpProcess) -> Iterator[BrowserContext]:
    """A browser whose session is open: the code works once."""
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    open_page(context, find_console(cluster.screen)).page.close()
    yield context
    context.close()


@pytest.fixture
def opened(context: BrowserContext, cluster: UpProcess) -> Iterator[OpenPage]:
    """A new page of the console in which no script has failed at its end."""
    opened = open_page(context, find_console(cluster.screen).split("#")[0])
    yield opened
    assert not opened.errors
    assert opened.hosts == {"127.0.0.1"}
    opened.page.close()
