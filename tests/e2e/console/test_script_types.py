"""The scripts of the pages are checked by TypeScript: their types stand in comments, and nothing is built."""

from __future__ import annotations

import json
import shutil
import subprocess
from typing import TYPE_CHECKING, Final

import pytest

from tests.e2e.up.up_processes import REPOSITORY

if TYPE_CHECKING:
    from pathlib import Path

TYPESCRIPT: Final = "typescript@5.9.3"
SCRIPTS: Final = REPOSITORY / "src" / "plimsoll" / "console" / "static"
TIMEOUT_S: Final = 300
OPTIONS: Final = {
    "allowJs": True,
    "checkJs": True,
    "noEmit": True,
    "strict": True,
    "target": "ES2022",
    "module": "ES2022",
    "moduleResolution": "bundler",
    "lib": ["ES2022", "DOM", "DOM.Iterable"],
}


def test_the_scripts_have_no_type_errors(tmp_path: Path) -> None:
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("NOT TESTED: needs npm")
    project = tmp_path / "tsconfig.json"
    project.write_text(json.dumps({"compilerOptions": OPTIONS, "include": [f"{SCRIPTS}/*.js"]}))
    command = [npm, "exec", "--yes", f"--package={TYPESCRIPT}", "--", "tsc", "--listFiles", "-p", str(project)]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=TIMEOUT_S)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert all(str(script) in ended.stdout for script in SCRIPTS.glob("*.js"))
