"""The generated code of the provider protocols: `python -m tests.nodes.providers.externalgrpc.protos` writes it anew.

Only messages are generated; calls are made by the names in the descriptors, so that no generated stub is needed.
"""

from __future__ import annotations

import tempfile
from importlib.resources import files
from pathlib import Path

from grpc_tools import protoc

PACKAGE = Path(__file__).parents[4] / "src/plimsoll/nodes/providers/externalgrpc"
GENERATED = PACKAGE / "generated"
_VIRTUAL = "plimsoll/nodes/providers/externalgrpc/generated"


def generated() -> dict[str, str]:
    """What the files of the folder should hold, by name."""
    well_known = files("grpc_tools") / "_proto"
    with tempfile.TemporaryDirectory() as folder:
        names = sorted(f"{_VIRTUAL}/{file.name}" for file in (PACKAGE / "protos").glob("*.proto"))
        places = [f"-I{_VIRTUAL}={PACKAGE / 'protos'}", f"-I{well_known}"]
        status = protoc.main(["protoc", *places, f"--python_out={folder}", f"--pyi_out={folder}", *names])
        if status:
            raise RuntimeError(f"protoc ended with {status}")
        return {file.name: file.read_text() for file in sorted((Path(folder) / _VIRTUAL).iterdir())}


if __name__ == "__main__":
    for name, text in generated().items():
        (GENERATED / name).write_text(text)
