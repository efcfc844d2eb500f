"""Assembles the application folder of the image: packages, kernels, licences and a list of what is in it.

Used by both ways to build the image: the Containerfile, and build_from_debian.py. It needs Python 3.11 with pip; the
folder needs neither of the two tools, nor a compiler.

    python3 assemble.py --variant fast --source . --target /opt/plimsoll --commit abc --built-at 2026-01-01T00:00:00Z
"""

from __future__ import annotations

import argparse
import compileall
import json
import os
import py_compile
import re
import shutil
import subprocess
import sys
import tempfile
from datetime import datetime
from importlib import metadata
from pathlib import Path
from typing import Any, Final

VARIANTS: Final = {"fast": "[fast]", "slim": ""}
"""By name of the variant: the extras of the package. `slim` plans with the same results, in plain Python."""
PROCESSOR: Final = "generic"
"""The processor that kernels are compiled for: they must run on every one."""
ENVIRONMENT: Final = {
    "PATH": "/opt/plimsoll/bin:/usr/bin",
    "PYTHONPATH": "/opt/plimsoll/lib",
    "PYTHONDONTWRITEBYTECODE": "1",
    "NUMBA_CPU_NAME": PROCESSOR,
    "HOME": "/tmp",
}
"""The environment of every process in the image."""
COMMAND: Final = """\
#!/usr/bin/python3.11
\"\"\"Starts Plimsoll. Kernels are copied to where they may be written to: numba reads only from there.\"\"\"
import os
import py_compile
import re
import shutil
import sys

kernels, place = "/opt/plimsoll/kernels", os.environ.setdefault("NUMBA_CACHE_DIR", "/tmp/kernels")
if os.path.isdir(kernels) and not os.path.exists(place):
    try:
        shutil.copytree(kernels, place)
    except OSError as error:
        print(f"kernels are not used: {error}", file=sys.stderr)

from plimsoll.cli.main import main

main()
"""
_LICENCE: Final = re.compile("licen[cs]e|notice|copying", re.IGNORECASE)
_WITHOUT: Final = ("pip", "setuptools", "wheel")


def assemble(*, source: Path, target: Path, variant: str, commit: str, built_at: str) -> None:
    """Everything but kernels, which are compiled by the Python of the image."""
    library = target / "lib"
    library.mkdir(parents=True)
    with tempfile.TemporaryDirectory() as folder:
        wheel = _build_wheel(source, Path(folder))
        _install(f"plimsoll{VARIANTS[variant]} @ file://{wheel}", library, source / "constraints.txt")
    written = {"commit": commit, "builtAt": built_at, "variant": variant}
    (library / "plimsoll" / "build.json").write_text(json.dumps(written) + "\n")
    shutil.rmtree(library / "bin", ignore_errors=True)
    command = target / "bin" / "plimsoll"
    command.parent.mkdir()
    command.write_text(COMMAND)
    command.chmod(0o755)
    _copy_licences(library, target / "licenses")
    (target / "sbom.cdx.json").write_text(json.dumps(build_sbom(library, built_at), indent=1) + "\n")
    _set_times(library, built_at)
    compileall.compile_dir(library, quiet=2, invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)
    _set_times(target, built_at)


def _build_wheel(source: Path, folder: Path) -> Path:
    _run_pip("wheel", "--no-deps", "--wheel-dir", str(folder), str(source), constraints=source / "constraints.txt")
    (wheel,) = folder.glob("plimsoll-*.whl")
    return wheel


def _install(requirement: str, library: Path, constraints: Path) -> None:
    """Wheels only, in the versions of constraints.txt: nothing is compiled here."""
    words = ("--only-binary", ":all:", "--no-compile", "--target", str(library), requirement)
    _run_pip("install", *words, constraints=constraints)
    missing = {name for name in _WITHOUT if (library / name).exists()}
    for name in missing:
        shutil.rmtree(library / name)


def _run_pip(*words: str, constraints: Path) -> None:
    environment = {**os.environ, "PIP_CONSTRAINT": str(constraints), "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    subprocess.run([sys.executable, "-m", "pip", words[0], "--quiet", *words[1:]], check=True, env=environment)


def _copy_licences(library: Path, target: Path) -> None:
    for distribution in metadata.distributions(path=[str(library)]):
        texts = [file for file in distribution.files or () if _LICENCE.search(file.name)]
        for text in texts:
            place = target / str(distribution.metadata["Name"]) / text.name
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(library / text, place)


def build_sbom(library: Path, built_at: str) -> dict[str, Any]:
    """CycloneDX 1.5 of the Python packages."""
    found = sorted(metadata.distributions(path=[str(library)]), key=lambda item: str(item.metadata["Name"]).lower())
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"timestamp": built_at, "component": {"type": "container", "name": "plimsoll"}},
        "components": [_describe_package(distribution) for distribution in found],
    }


def _describe_package(distribution: metadata.Distribution) -> dict[str, Any]:
    about = distribution.metadata
    name, version = str(about["Name"]), distribution.version
    described: dict[str, Any] = {
        "type": "library",
        "name": name,
        "version": version,
        "purl": f"pkg:pypi/{name.lower().replace('_', '-')}@{version}",
    }
    expression = about.get("License-Expression") or ""
    title = (about.get("License") or "").strip().splitlines()[:1]
    if expression:
        described["licenses"] = [{"expression": expression}]
    elif title:
        described["licenses"] = [{"license": {"name": title[0][:200]}}]
    return described


def _set_times(folder: Path, built_at: str) -> None:
    """The same for each file: compiled kernels name the times of their sources, and layers are the same again."""
    at = int(datetime.fromisoformat(built_at).timestamp())
    for path in [folder, *folder.rglob("*")]:
        os.utime(path, (at, at), follow_symlinks=False)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--variant", choices=VARIANTS, default="fast")
    options.add_argument("--source", type=Path, required=True)
    options.add_argument("--target", type=Path, required=True)
    options.add_argument("--commit", required=True)
    options.add_argument("--built-at", required=True)
    given = options.parse_args()
    assemble(
        source=given.source.absolute(),
        target=given.target.absolute(),
        variant=given.variant,
        commit=given.commit,
        built_at=given.built_at,
    )


if __name__ == "__main__":
    main()
