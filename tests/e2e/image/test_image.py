"""The image, built from Debian's packages and run with a read-only root as 65532: `make test-image`.

It takes minutes, needs root, mmdebstrap and the package registries, and is no part of CI. PLIMSOLL_IMAGES names a
folder with the outputs `fast` and `slim` of deploy/image/build_from_debian.py, for another run without building.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tarfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

import plimsoll
from tests.e2e.timeouts import PATIENCE_S

if TYPE_CHECKING:
    from collections.abc import Iterator

REPOSITORY = Path(__file__).parents[3]
BUILD = REPOSITORY / "deploy" / "image" / "build_from_debian.py"
ASKED = os.environ.get("PLIMSOLL_TEST_IMAGE") == "1"
BUILT = os.environ.get("PLIMSOLL_IMAGES", "")
USER = 65_532
# Mounts as a container has them: nothing may be written but /data and /tmp.
_ENTER = """
set -e
root=$1; data=$2; shift 2
mount --bind "$root" "$root"; mount -o remount,bind,ro "$root"
mount --bind "$data" "$root/data"; mount -t tmpfs tmpfs "$root/tmp"; mount -t proc proc "$root/proc"
mount -t tmpfs tmpfs "$root/dev"
for device in null zero random urandom; do
    touch "$root/dev/$device"; mount --bind /dev/$device "$root/dev/$device"
done
exec "$(command -v chroot)" --userspec=65532:65532 "$root" "$@"
"""

pytestmark = pytest.mark.skipif(not ASKED, reason="NOT TESTED: make test-image builds the image and runs this")


@pytest.fixture(scope="module", params=["fast", "slim"])
def image(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The output of a build: layout/, root/ and result.json."""
    if BUILT:
        return Path(BUILT) / request.param
    if os.geteuid() != 0 or shutil.which("mmdebstrap") is None:
        pytest.skip("NOT TESTED: the build needs root and mmdebstrap (apt-get install mmdebstrap)")
    output = tmp_path_factory.mktemp("image") / request.param
    subprocess.run([sys.executable, str(BUILD), "--variant", request.param, "--output", str(output)], check=True)
    return output


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """The volume /data of a pod."""
    folder = tmp_path / "data"
    folder.mkdir()
    shutil.copytree(REPOSITORY / "examples" / "fleet" / "config", folder / "config")
    for path in [folder, *folder.rglob("*")]:
        os.chown(path, USER, USER)
    return folder


def read_blob(image: Path, descriptor: dict[str, Any]) -> dict[str, Any]:
    blob = image / "layout" / "blobs" / descriptor["digest"].replace(":", "/")
    content: dict[str, Any] = json.loads(blob.read_bytes())
    return content


def read_config(image: Path) -> dict[str, Any]:
    (entry,) = json.loads((image / "layout" / "index.json").read_text())["manifests"]
    return read_blob(image, read_blob(image, entry)["config"])


def run_in(image: Path, data: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """The entry point with the environment of the image and of the chart."""
    config = read_config(image)["config"]
    environment = dict(pair.split("=", 1) for pair in config["Env"])
    environment |= {"HOME": "/data", "NUMBA_CACHE_DIR": "/data/kernels"}
    environment["PATH"] += ":/usr/sbin:/bin:/sbin"
    enter = ["unshare", "--mount", "bash", "-c", _ENTER, "bash", str(image / "root"), str(data)]
    command = [*enter, *config["Entrypoint"], *words]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=PATIENCE_S)


@contextmanager
def serving(folder: Path, data: Path) -> Iterator[None]:
    """The embedded API server outside of the image; its kubeconfig is in `data`."""
    command = [sys.executable, "-m", "plimsoll", "apiserver", "--data", str(folder), "--port", "0"]
    with (folder.parent / "server.log").open("w") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        until_s = time.monotonic() + PATIENCE_S
        while not (folder / "kubeconfig").exists():
            assert time.monotonic() < until_s
            assert process.poll() is None, (folder.parent / "server.log").read_text()
            time.sleep(0.2)
        shutil.copyfile(folder / "kubeconfig", data / "kubeconfig")
        os.chown(data / "kubeconfig", USER, USER)
        yield
    finally:
        process.terminate()
        process.wait(timeout=PATIENCE_S)


def test_controllers_reach_their_first_turn(image: Path, data: Path, tmp_path: Path):
    with serving(tmp_path / "server", data):
        at_cluster = ("--kubeconfig", "/data/kubeconfig")
        applied = run_in(image, data, "definitions", "apply", *at_cluster, "--without-tidb-operator")
        assert applied.returncode == 0, applied.stderr
        nodes = run_in(image, data, "run", "nodes", *at_cluster, "--data=/data", "--once")
        assert (nodes.returncode, nodes.stdout.strip()) == (0, "nothing to do"), nodes.stderr
        tidb = run_in(image, data, "run", "tidb", *at_cluster, "--data=/data", "--once")
        assert tidb.returncode == 0, tidb.stderr
    fleet = run_in(image, data, "run", "fleet", "--config-dir", "/data/config", "--data=/data", "--once")
    assert (fleet.returncode, "worker/dynamic_scale_up: nothing to do" in fleet.stdout) == (0, True), fleet.stderr


def test_its_version_is_that_of_its_labels(image: Path, data: Path):
    printed = json.loads(run_in(image, data, "version", "-o", "json").stdout)
    labels = read_config(image)["config"]["Labels"]
    assert (printed["plimsoll"], printed["variant"]) == (plimsoll.__version__, image.name)
    assert printed["commit"] == labels["org.opencontainers.image.revision"]
    assert printed["builtAt"] == labels["org.opencontainers.image.created"]


def test_kernels_are_compiled_at_build_time(image: Path, data: Path):
    built = list((image / "root" / "opt" / "plimsoll" / "kernels").glob("kernels-*/*"))
    assert bool(built) is (image.name == "fast")
    run_in(image, data, "version")
    assert (data / "kernels").is_dir() is (image.name == "fast")


def test_there_is_no_compiler_no_shell_and_no_installer(image: Path):
    root = image / "root"
    programs = {path.name for folder in ("bin", "usr/bin", "sbin", "usr/sbin") for path in (root / folder).glob("*")}
    assert programs == {"python3", "python3.11"}
    library = {path.name.lower() for path in (root / "opt" / "plimsoll" / "lib").iterdir()}
    assert not {"pip", "setuptools", "wheel"} & library
    assert ("numba" in library) is (image.name == "fast")


def test_every_package_is_listed_with_its_version(image: Path):
    pinned = dict(
        line.split("==") for line in (REPOSITORY / "constraints.txt").read_text().splitlines() if "==" in line[1:60]
    )
    names = {name.lower().replace("_", "-"): version for name, version in pinned.items() if not name.startswith("#")}
    bill = json.loads((image / "root" / "opt" / "plimsoll" / "sbom.cdx.json").read_text())
    assert (bill["bomFormat"], bill["specVersion"]) == ("CycloneDX", "1.5")
    python = [item for item in bill["components"] if item["purl"].startswith("pkg:pypi/")]
    listed = {item["name"].lower().replace("_", "-"): item["version"] for item in python}
    assert {name: names.get(name) for name in listed if name != "plimsoll"} == {
        name: version for name, version in listed.items() if name != "plimsoll"
    }
    assert any(item["purl"].startswith("pkg:deb/debian/libc6@") for item in bill["components"])
    licences = {path.name for path in (image / "root" / "opt" / "plimsoll" / "licenses").iterdir()}
    assert "plimsoll" in licences
    assert len(licences) > len(listed) / 2


def test_the_layout_holds_together(image: Path):
    (entry,) = json.loads((image / "layout" / "index.json").read_text())["manifests"]
    manifest = read_blob(image, entry)
    config = read_config(image)
    assert config["config"]["User"] == f"{USER}:{USER}"
    names: set[str] = set()
    for layer, uncompressed in zip(manifest["layers"], config["rootfs"]["diff_ids"], strict=True):
        blob = image / "layout" / "blobs" / layer["digest"].replace(":", "/")
        assert f"sha256:{hashlib.sha256(blob.read_bytes()).hexdigest()}" == layer["digest"]
        assert f"sha256:{hashlib.sha256(gzip.decompress(blob.read_bytes())).hexdigest()}" == uncompressed
        with tarfile.open(blob) as archive:
            members = archive.getmembers()
        assert {member.uid for member in members} == {0}
        names |= {member.name for member in members}
    assert {"opt/plimsoll/bin/plimsoll", "usr/bin/python3.11", "tmp", "data"} <= names


def test_the_chart_runs_this_user_and_these_paths(image: Path):
    deployment = yaml.safe_load((REPOSITORY / "deploy/nodes/deployment.yaml").read_text())
    pod = deployment["spec"]["template"]["spec"]
    assert pod["securityContext"]["runAsUser"] == USER
    mounts = {mount["mountPath"] for mount in pod["containers"][0]["volumeMounts"]}
    assert mounts == {"/data", "/tmp"}
    assert all((image / "root" / mount.strip("/")).is_dir() for mount in mounts)
