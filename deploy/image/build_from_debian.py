"""Builds the image from nothing but Debian's packages: no daemon, no other image.

    python3 deploy/image/build_from_debian.py --variant fast --output /tmp/image

mmdebstrap unpacks a root without shell and package manager, assemble.py puts the application into it, the Python of
that root compiles the kernels, and the result is written as an OCI layout, for `skopeo copy oci:/tmp/image/layout ...`.
The root stays beside it. It must run as root, on the processor architecture of the image, with Python 3.11, pip and
mmdebstrap.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tarfile
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

sys.path.insert(0, str(Path(__file__).parent))

from assemble import ENVIRONMENT, VARIANTS, assemble

PACKAGES: Final = (
    *("python3.11-minimal", "libpython3.11-stdlib", "ca-certificates", "libstdc++6", "libgcc-s1", "zlib1g"),
    *("base-files", "netbase", "tzdata"),
)
SUITE: Final = "bookworm"
USER: Final = 65532
KEPT_PROGRAMS: Final = frozenset({"python3.11", "python3"})
REMOVED: Final = (
    *("boot", "home", "media", "mnt", "opt", "srv", "sbin", "usr/sbin", "usr/games", "usr/libexec", "usr/lib/apt"),
    *("var/cache", "var/lib/apt", "var/log", "etc/apt", "etc/cron.daily", "etc/dpkg", "usr/lib/systemd"),
    *("usr/share/bash-completion", "usr/share/binfmts", "usr/share/bug", "usr/share/debconf", "usr/share/dict"),
    *("usr/share/dpkg", "usr/share/gcc", "usr/share/gdb", "usr/share/info", "usr/share/lintian", "usr/share/locale"),
    *("usr/share/man", "usr/share/menu", "usr/share/misc", "usr/share/perl5", "usr/share/pixmaps"),
    *("usr/share/polkit-1", "usr/share/readline"),
)
_REPOSITORY: Final = Path(__file__).absolute().parents[2]
_ARCHITECTURES: Final = {"x86_64": "amd64", "aarch64": "arm64"}


def build(*, variant: str, output: Path, mirror: str = "") -> dict[str, Any]:
    """Returns what was built: sizes in bytes, and the seconds of each step."""
    if sys.version_info[:2] != (3, 11):
        sys.exit(f"the image has Python 3.11, so its wheels are chosen by one; this is {platform.python_version()}")
    commit, built_at, version = _describe_source()
    root = output / "root"
    if output.exists():
        sys.exit(f"{output} exists already")
    output.mkdir(parents=True)
    seconds: dict[str, float] = {}
    began_s = time.monotonic()

    def end_step(name: str) -> None:
        nonlocal began_s
        seconds[name] = round(time.monotonic() - began_s, 1)
        began_s = time.monotonic()

    make_root(root, mirror)
    end_step("root")
    application = root / "opt" / "plimsoll"
    assemble(source=_REPOSITORY, target=application, variant=variant, commit=commit, built_at=built_at)
    add_debian_packages(application / "sbom.cdx.json", output / "packages.json")
    end_step("application")
    if variant == "fast":
        compile_kernels(root)
    end_step("kernels")
    labels = build_labels(variant=variant, commit=commit, built_at=built_at, version=version)
    size = write_layout(output / "layout", root, labels=labels, built_at=built_at)
    end_step("layout")
    result = {
        "variant": variant,
        "commit": commit,
        "unpacked": _measure_folder(root),
        "application": _measure_folder(application),
        "compressed": size,
        "seconds": seconds,
    }
    (output / "result.json").write_text(json.dumps(result, indent=1) + "\n")
    return result


def _describe_source() -> tuple[str, str, str]:
    """Commit, its time, and the version. A tag of the commit must be that of the version."""

    def git(*words: str) -> str:
        return subprocess.run(
            ["git", "-C", str(_REPOSITORY), *words], check=True, capture_output=True, text=True
        ).stdout.strip()

    (version,) = re.findall(r'__version__ = "([^"]+)"', (_REPOSITORY / "src/plimsoll/__init__.py").read_text())
    tags = git("tag", "--points-at", "HEAD", "v*").split()
    if tags and f"v{version}" not in tags:
        sys.exit(f"HEAD has the tag {tags[0]}, but the program is of version {version}")
    commit = git("describe", "--always", "--dirty", "--abbrev=12", "--exclude=*")
    at = datetime.fromtimestamp(int(git("log", "-1", "--format=%ct")), UTC)
    return commit, at.isoformat().replace("+00:00", "Z"), version


# ---- the root


def make_root(root: Path, mirror: str) -> None:
    """Unpacked packages without maintainer scripts, shell, package manager and documentation."""
    listing = root.parent / "packages.tsv"
    show = f"dpkg-deb -W --showformat='${{Package}}\\t${{Version}}\\n' $package >> {listing}"
    hook = f"--extract-hook=for package in $1/var/cache/apt/archives/*.deb; do {show}; done"
    command = ["mmdebstrap", "--quiet", "--mode=root", "--variant=extract", f"--include={','.join(PACKAGES)}", hook]
    subprocess.run([*command, SUITE, str(root), *([mirror] if mirror else [])], check=True)
    _write_package_list(root.parent)
    for name in REMOVED:
        path = root / name
        if path.is_symlink():
            path.unlink()
        else:
            shutil.rmtree(path, ignore_errors=True)
    for program in [*(root / "bin").iterdir(), *(root / "usr/bin").iterdir()]:
        if program.name not in KEPT_PROGRAMS:
            program.unlink(missing_ok=True)
    (root / "usr/bin/python3").symlink_to("python3.11")
    for file in (root / "usr/share/doc").rglob("*"):
        if file.is_file() and file.name != "copyright":
            file.unlink()
    _write_settings(root)


def _write_package_list(folder: Path) -> None:
    lines = (folder / "packages.tsv").read_text().splitlines()
    packages = dict(line.split("\t") for line in sorted(set(lines)))
    (folder / "packages.json").write_text(json.dumps(packages, indent=1) + "\n")


def _write_settings(root: Path) -> None:
    """What maintainer scripts would have written."""
    certificates = sorted((root / "usr/share/ca-certificates/mozilla").glob("*.crt"))
    bundle = root / "etc/ssl/certs/ca-certificates.crt"
    bundle.parent.mkdir(parents=True, exist_ok=True)
    bundle.write_bytes(b"".join(certificate.read_bytes() for certificate in certificates))
    (root / "etc/passwd").write_text(
        f"root:x:0:0:root:/root:/sbin/nologin\nplimsoll:x:{USER}:{USER}:plimsoll:/tmp:/sbin/nologin\n"
    )
    (root / "etc/group").write_text(f"root:x:0:\nplimsoll:x:{USER}:\n")
    (root / "etc/nsswitch.conf").write_text("hosts: files dns\n")
    for folder in ("tmp", "data", "proc", "dev", "sys"):
        (root / folder).mkdir(exist_ok=True)
    (root / "tmp").chmod(0o1777)


def add_debian_packages(sbom: Path, packages: Path) -> None:
    described = json.loads(sbom.read_text())
    for name, version in json.loads(packages.read_text()).items():
        purl = f"pkg:deb/debian/{name}@{version}?distro={SUITE}"
        described["components"].append({"type": "library", "name": name, "version": version, "purl": purl})
    sbom.write_text(json.dumps(described, indent=1) + "\n")


def compile_kernels(root: Path) -> None:
    """By the Python of the image, at the paths that it will have."""
    environment = {**ENVIRONMENT, "NUMBA_CACHE_DIR": "/opt/plimsoll/kernels"}
    command = ["chroot", str(root), "/usr/bin/python3.11", "-m", "plimsoll.solver.kernels"]
    subprocess.run(command, check=True, env={**environment, "PATH": os.environ["PATH"]})


# ---- the layout


def build_labels(*, variant: str, commit: str, built_at: str, version: str) -> dict[str, str]:
    prefix = "org.opencontainers.image."
    return {
        f"{prefix}title": "plimsoll",
        f"{prefix}description": "A Kubernetes capacity control plane",
        f"{prefix}version": version if variant == "fast" else f"{version}-{variant}",
        f"{prefix}revision": commit,
        f"{prefix}created": built_at,
        f"{prefix}licenses": "Apache-2.0",
        "io.plimsoll.variant": variant,
        "io.plimsoll.sbom": "/opt/plimsoll/sbom.cdx.json",
    }


def write_layout(target: Path, root: Path, *, labels: dict[str, str], built_at: str) -> int:
    """Two layers, the root and the application, so that an upgrade pulls the application only. Returns their size."""
    blobs = target / "blobs" / "sha256"
    blobs.mkdir(parents=True)
    at = int(datetime.fromisoformat(built_at).timestamp())
    application = root / "opt"
    layers, digests = [], []
    for paths in (_list_paths(root, without=application), _list_paths(application, base=root)):
        layer, uncompressed = _write_layer(blobs, root, paths, at=at)
        layers.append(layer)
        digests.append(uncompressed)
    architecture = _ARCHITECTURES.get(platform.machine(), platform.machine())
    config = {
        "created": built_at,
        "architecture": architecture,
        "os": "linux",
        "config": {
            "User": f"{USER}:{USER}",
            "Env": [f"{key}={value}" for key, value in ENVIRONMENT.items()],
            "Entrypoint": ["/opt/plimsoll/bin/plimsoll"],
            "WorkingDir": "/tmp",
            "Labels": labels,
        },
        "rootfs": {"type": "layers", "diff_ids": digests},
        "history": [{"created": built_at, "created_by": step} for step in ("debian packages", "plimsoll")],
    }
    described = _write_blob(blobs, config, "application/vnd.oci.image.config.v1+json")
    manifest = {
        "schemaVersion": 2,
        "mediaType": _MANIFEST,
        "config": described,
        "layers": layers,
        "annotations": labels,
    }
    entry = _write_blob(blobs, manifest, _MANIFEST)
    entry["platform"] = {"architecture": architecture, "os": "linux"}
    entry["annotations"] = {"org.opencontainers.image.ref.name": labels["org.opencontainers.image.version"]}
    index = {"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "manifests": [entry]}
    (target / "index.json").write_text(json.dumps(index))
    (target / "oci-layout").write_text('{"imageLayoutVersion": "1.0.0"}')
    return sum(layer["size"] for layer in layers)


_MANIFEST: Final = "application/vnd.oci.image.manifest.v1+json"


def _list_paths(folder: Path, *, base: Path | None = None, without: Path | None = None) -> list[Path]:
    paths = sorted(folder.rglob("*"))
    own = [folder] if base is not None else []
    return own + [path for path in paths if without is None or not path.is_relative_to(without)]


def _write_layer(blobs: Path, root: Path, paths: list[Path], *, at: int) -> tuple[dict[str, Any], str]:
    raw = blobs / "layer.tar"
    with tarfile.open(raw, "w", format=tarfile.PAX_FORMAT) as archive:
        for path in paths:
            info = archive.gettarinfo(path, arcname=str(path.relative_to(root)))
            info.uid = info.gid = 0
            info.uname = info.gname = ""
            info.mtime = at
            if info.isfile():
                with path.open("rb") as content:
                    archive.addfile(info, content)
            else:
                archive.addfile(info)
    uncompressed = _compute_digest(raw)
    packed = blobs / "layer.tar.gz"
    with raw.open("rb") as content, packed.open("wb") as sink, gzip.GzipFile("", "wb", 6, sink, mtime=0) as zipped:
        shutil.copyfileobj(content, zipped, 1024 * 1024)
    raw.unlink()
    digest = _compute_digest(packed)
    placed = packed.rename(blobs / digest)
    size = placed.stat().st_size
    layer = {"mediaType": "application/vnd.oci.image.layer.v1.tar+gzip", "digest": f"sha256:{digest}", "size": size}
    return layer, f"sha256:{uncompressed}"


def _write_blob(blobs: Path, content: dict[str, Any], media_type: str) -> dict[str, Any]:
    data = json.dumps(content, sort_keys=True).encode()
    digest = hashlib.sha256(data).hexdigest()
    (blobs / digest).write_bytes(data)
    return {"mediaType": media_type, "digest": f"sha256:{digest}", "size": len(data)}


def _compute_digest(file: Path) -> str:
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


def _measure_folder(folder: Path) -> int:
    return sum(path.lstat().st_size for path in folder.rglob("*") if not path.is_dir())


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--variant", choices=VARIANTS, default="fast")
    options.add_argument("--output", type=Path, required=True)
    options.add_argument("--mirror", default="", help="A mirror of Debian; default: that of this machine.")
    given = options.parse_args()
    result = build(variant=given.variant, output=given.output.absolute(), mirror=given.mirror)
    sys.stdout.write(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
