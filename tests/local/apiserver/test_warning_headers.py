"""Warning headers stay within what kube-apiserver sends."""

from __future__ import annotations

from plimsoll.local.apiserver.warning_headers import build_warning_headers
from tests.local.apiserver.builders import ApiServerHarness


def texts(*warnings: str) -> list[str]:
    return [value.removeprefix('299 - "').removesuffix('"') for _, value in build_warning_headers(warnings)]


def test_each_warning_comes_once_and_in_order():
    assert texts("b", "a", "", "b") == ["b", "a"]


def test_warnings_that_fit_come_whole():
    assert texts("x" * 2_048, "y" * 2_048) == ["x" * 2_048, "y" * 2_048]


def test_warnings_that_do_not_fit_are_all_cut():
    assert texts("x" * 300, "y" * 3_797, "short") == ["x" * 256, "y" * 256, "short"]


def test_after_the_limit_no_further_warning_comes():
    cut = texts(*(f"{number:04}" + "x" * 996 for number in range(1_000)))
    assert [text[:4] for text in cut] == [f"{number:04}" for number in range(16)]
    assert {len(text) for text in cut} == {256}


def test_a_request_with_thousands_of_unknown_fields_has_a_short_head():
    with ApiServerHarness() as world:
        body = {"metadata": {"name": "a"}, **{f"unknown{number}": 1 for number in range(5_000)}}
        made = world.ask("POST", "/api/v1/namespaces/default/configmaps", body)
    assert made.status == 201
    assert made.warnings[0] == '299 - "unknown field \\"unknown0\\""'
    assert len(made.warnings) == 100
