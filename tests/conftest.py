"""Settings of all tests: hypothesis profiles, and markers by folder."""

from __future__ import annotations

import gc
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import structlog
from hypothesis import HealthCheck, is_hypothesis_test, settings

from tests.effort import IS_LONG
from tests.golden.reviewed_sentences import ReviewedSentences

if TYPE_CHECKING:
    from collections.abc import Iterator

END_TO_END = Path(__file__).parent / "e2e"
WAITING_FILES = frozenset(
    {
        "test_tidb_and_node_scaling.py",
        "test_documented_tidb.py",
        "test_fresh_clone.py",
        "test_false_clocks_and_leases.py",
        "test_failures.py",
        "test_scaling.py",
    }
)
"""Files whose tests wait for minutes of real time: they begin first, so that others use the machine meanwhile."""
FEW_EXAMPLES = 20
"""A property with more examples than this tries an eighth of the rest in short runs."""

# No test asserts seconds, hypothesis included: a slow machine is no failure. In CI the same change gives the same
# examples; on a developer's machine every run tries new ones.
settings.register_profile("desk", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ci", parent=settings.get_profile("desk"), derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "desk")


@pytest.fixture(autouse=True)
def _default_log() -> Iterator[None]:
    """Undo what a command under test configured: a later test that captures the log would miss its levels."""
    yield
    structlog.reset_defaults()


@pytest.fixture
def reviewed(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ReviewedSentences]:
    """Compare sentences with the golden file: `reviewed(message)`."""
    sentences = ReviewedSentences(request.node.nodeid, str(tmp_path))
    failed_before = request.session.testsfailed
    yield sentences
    if request.session.testsfailed == failed_before:
        sentences.finish()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if END_TO_END in item.path.parents:
            item.add_marker(pytest.mark.e2e)
        if not IS_LONG and isinstance(item, pytest.Function):
            _shorten(item.function)
    items.sort(key=lambda item: item.path.name not in WAITING_FILES)


def pytest_collection_finish() -> None:
    """Keep what was imported and collected out of the garbage collector's sight: it stays until the end."""
    gc.collect()
    gc.freeze()


def _shorten(test: object) -> None:
    """Cut down the examples of a property that asks for many; `make test-long` tries them all."""
    inner: Any = getattr(test, "__func__", test)
    if not is_hypothesis_test(inner):
        return
    wanted: Any = getattr(inner, "_hypothesis_internal_use_settings", settings.default)
    if wanted.max_examples > FEW_EXAMPLES:
        fewer = FEW_EXAMPLES + (wanted.max_examples - FEW_EXAMPLES) // 8
        inner._hypothesis_internal_use_settings = settings(wanted, max_examples=fewer)
