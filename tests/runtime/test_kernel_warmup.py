"""Machine code is loaded before the first plan whose time is measured."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from plimsoll.runtime.kernel_warmup import load_kernels
from plimsoll.solver import kernels

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.fixture
def loaded(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    names: list[str] = []

    def get_compiled(kernel: kernels.Kernel[..., Any]) -> Callable[..., Any]:
        names.append(f"{kernel.plain.__module__}.{kernel.plain.__name__}")
        return kernel.plain

    monkeypatch.delenv(kernels.VARIABLE, raising=False)
    monkeypatch.setattr(kernels.Kernel, "get_compiled", get_compiled)
    return names


def test_every_kernel_that_lies_ready_is_loaded_once(loaded: list[str], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(kernels, "is_cache_warm", lambda: True)
    count = load_kernels()
    assert count == len(loaded) == len(set(loaded))
    assert count > 50


def test_nothing_is_compiled_for_it(loaded: list[str], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(kernels, "is_cache_warm", lambda: False)
    assert (load_kernels(), loaded) == (0, [])


def test_nothing_is_loaded_where_plans_are_made_in_python(loaded: list[str], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(kernels, "is_cache_warm", lambda: True)
    monkeypatch.setenv(kernels.VARIABLE, "plain")
    assert (load_kernels(), loaded) == (0, [])
