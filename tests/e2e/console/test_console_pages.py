"""The pages in a browser, beside kubectl: what stands there is what the cluster has."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.e2e.console.browsers import find_console, open_page
from tests.e2e.up.up_processes import running

if TYPE_CHECKING:
    from playwright.sync_api import Browser

    from tests.e2e.console.browsers import OpenPage
    from tests.e2e.up.up_processes import UpProcess

PAGES = ("", "nodes", "waiting", "decisions", "cost", "kafka", "tidb", "fleet")
WITHIN_MS = 60_000
MARKUP = "<img src=x onerror=window.hacked=1>\u202e\u0007"
HOSTILE = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "hostile", "annotations": {"note": MARKUP + "x" * 200_000}},
    "spec": {"schedulerName": "none", "containers": [{"name": "c", "image": "i"}]},
}


def count_nodes(cluster: UpProcess) -> int:
    return len(cluster.objects("nodes"))


def test_the_map_has_the_nodes_that_kubectl_lists(cluster: UpProcess, opened: OpenPage) -> None:
    opened.show("nodes")
    opened.page.wait_for_function(
        "count => document.querySelector('#summary').textContent.startsWith(count)",
        arg=f"{count_nodes(cluster)} node",
        timeout=WITHIN_MS,
    )
    opened.page.click("text=As a list")
    listed = opened.read("table")
    assert all(node["metadata"]["name"] in listed for node in cluster.objects("nodes"))


def test_a_pod_made_by_kubectl_is_in_the_map_and_has_a_page(cluster: UpProcess, opened: OpenPage) -> None:
    opened.show("nodes")
    opened.page.wait_for_selector("#summary:has-text('node')")
    cluster.kubectl("create", "deployment", "web", "--image=nginx", "--replicas=2")
    cluster.kubectl("rollout", "status", "deployment/web")
    pod, *_ = cluster.objects("pods", "-l", "app=web")
    name, node = pod["metadata"]["name"], pod["spec"]["nodeName"]
    opened.page.wait_for_function(
        "() => / [1-9]\\d* pods?/.test(document.querySelector('#summary').textContent)", timeout=WITHIN_MS
    )
    opened.show(f"things/node/{node}")
    opened.page.wait_for_selector(f"text=pod/default/{name}", timeout=WITHIN_MS)
    opened.page.click(f"text=pod/default/{name}")
    opened.page.wait_for_selector("h1:has-text('pod/default')")
    opened.page.wait_for_selector(f"dd:has-text('{node}')", timeout=WITHIN_MS)


def test_a_pod_that_fits_nowhere_waits_with_its_reason(cluster: UpProcess, opened: OpenPage) -> None:
    cluster.kubectl("run", "huge", "--image=i", "--overrides", _request_cpu("huge", "9000"))
    opened.show("waiting")
    summary = opened.page.locator("details:has-text('Insufficient cpu') summary, details:has-text('cpu') summary").first
    summary.wait_for(timeout=WITHIN_MS)
    summary.click()
    opened.page.wait_for_selector("text=pod/default/huge")
    opened.show("decisions?text=huge")
    line = opened.page.locator("details.decision summary").first
    line.wait_for(timeout=WITHIN_MS)
    line.click()
    opened.page.wait_for_selector("details.decision[open] .parts")
    cluster.kubectl("delete", "pod", "huge", "--wait=false")


def _request_cpu(name: str, cpu: str) -> str:
    return (
        f'{{"spec": {{"containers": [{{"name": "{name}", "image": "i", '
        f'"resources": {{"requests": {{"cpu": "{cpu}"}}}}}}]}}}}'
    )


def test_decisions_are_those_of_the_journal(cluster: UpProcess, opened: OpenPage) -> None:
    opened.show("decisions")
    opened.page.wait_for_selector("details.decision", timeout=WITHIN_MS)
    assert "nodes:" in opened.read("#decisions")


def test_the_cost_page_draws_cost_and_bound(opened: OpenPage) -> None:
    opened.show("cost")
    opened.page.wait_for_selector("figure svg path.bound", timeout=WITHIN_MS)
    answer = opened.page.evaluate("fetch('/api/costs').then((answer) => answer.json())")
    assert len(answer["cost"]) == len(answer["bound"]) == len(answer["at"]) > 0
    assert "workers" in opened.read("figure:nth-of-type(2) .legend")


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_page_fits_a_phone(browser: Browser, opened: OpenPage, page: str, scheme: str) -> None:
    assert browser.is_connected()
    opened.page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
    opened.page.set_viewport_size({"width": 390, "height": 800})
    opened.show(page)
    assert opened.page.evaluate("document.documentElement.scrollWidth") <= 390


def test_the_map_is_used_by_keyboard(opened: OpenPage) -> None:
    opened.show("nodes")
    opened.page.wait_for_selector("#summary:has-text('node')")
    opened.page.focus("#map")
    opened.page.keyboard.press("ArrowRight")
    opened.page.wait_for_selector("#under:has-text('requested')")
    opened.page.keyboard.press("Enter")
    opened.page.wait_for_selector("h1:has-text('node/')")


def test_text_of_objects_is_never_markup(cluster: UpProcess, opened: OpenPage) -> None:
    cluster.kubectl("apply", "--server-side", "-f", "-", stdin=json.dumps(HOSTILE))
    event = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": "hostile"},
        "involvedObject": {"kind": "Pod", "namespace": "default", "name": "hostile"},
        "reason": "Odd",
        "message": MARKUP,
        "type": "Normal",
        "lastTimestamp": "2026-01-01T00:00:00Z",
    }
    cluster.kubectl("create", "-f", "-", stdin=json.dumps(event))
    opened.show("things/pod/default/hostile")
    opened.page.wait_for_selector("td:has-text('onerror')", timeout=WITHIN_MS)
    assert opened.page.evaluate("window.hacked") is None
    assert opened.page.locator("main img").count() == 0
    assert "\u202e" not in opened.read()
    cluster.kubectl("delete", "pod", "hostile", "--grace-period=0", "--force")


def test_a_code_works_once(browser: Browser, cluster: UpProcess) -> None:
    context = browser.new_context()
    page = context.new_page()
    page.goto(find_console(cluster.screen))
    page.wait_for_selector("[role=alert]:has-text('was used already')")
    context.close()


def test_a_page_without_a_session_says_what_to_do(browser: Browser, cluster: UpProcess) -> None:
    context = browser.new_context()
    page = context.new_page()
    page.goto(find_console(cluster.screen).split("#")[0])
    page.wait_for_selector("[role=alert]:has-text('session')")
    context.close()


def test_stopping_the_cluster_ends_every_stream(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> None:
    with running(tmp_path_factory.mktemp("stopped") / "cluster") as up:
        opened = open_page(browser.new_context(), find_console(up.screen))
        opened.page.wait_for_selector("#news:has-text('Live')")
        assert up.stop() == 0
        opened.page.wait_for_selector("body.stale #news", timeout=WITHIN_MS)
        opened.page.context.close()
