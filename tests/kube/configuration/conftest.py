from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.kube.configuration.kubeconfigs import ClientEnvironment

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def machine(tmp_path: Path) -> ClientEnvironment:
    return ClientEnvironment(tmp_path)
