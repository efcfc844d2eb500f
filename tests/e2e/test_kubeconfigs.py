"""Kubeconfigs that name files: an end-to-end suite accepts what kubectl accepts."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.e2e.apiserver import processes as apiservers
from tests.e2e.externalgrpc.authorities import CertificateAuthority
from tests.e2e.kubeconfigs import read_access


def write(folder: Path, *, cluster: dict[str, Any], user: dict[str, Any]) -> Path:
    file = folder / "kubeconfig"
    document = {
        "clusters": [{"name": "other", "cluster": {}}, {"name": "it", "cluster": cluster}],
        "users": [{"name": "me", "user": user}],
        "contexts": [{"name": "here", "context": {"cluster": "it", "user": "me"}}],
        "current-context": "here",
    }
    file.write_text(yaml.safe_dump(document))
    return file


@pytest.mark.parametrize("is_relative", [True, False], ids=["relative", "absolute"])
def test_certificates_may_be_files(tmp_path: Path, is_relative: bool) -> None:
    folder = tmp_path / "pki"
    folder.mkdir()
    files = {name: Path(path) for name, path in CertificateAuthority(folder, "ca").files("client").items()}
    paths = {name: path.relative_to(tmp_path) if is_relative else path for name, path in files.items()}
    server = {"server": "https://127.0.0.1:6443", "certificate-authority": str(paths["cacert"])}
    user = {"client-certificate": str(paths["cert"]), "client-key": str(paths["key"])}
    access = read_access(write(tmp_path, cluster=server, user=user))
    assert (access.certificate, access.key) == (files["cert"].read_text(), files["key"].read_text())
    assert base64.b64decode(access.cluster["certificate-authority-data"]).decode() == files["cacert"].read_text()
    assert access.tls_context().get_ca_certs()


def test_a_server_answers_to_a_kubeconfig_that_names_files(tmp_path: Path) -> None:
    with apiservers.running(tmp_path / "data") as server:
        (tmp_path / "ca.crt").write_text(server.ca_pem)
        (tmp_path / "token").write_text(server.token)
        cluster = {"server": server.url, "certificate-authority": "ca.crt"}
        access = read_access(write(tmp_path, cluster=cluster, user={"tokenFile": "token"}))
        assert access.ask("GET", "/api/v1/namespaces/kube-system")[0] == 200
