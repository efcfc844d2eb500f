from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from plimsoll.local.apiserver.data_directory import DataDirectory
from plimsoll.local.apiserver.shared_address import KubeconfigFile
from plimsoll.local.apiserver.transport.kubeconfig import KubeconfigContext, build_kubeconfig, build_url

if TYPE_CHECKING:
    from pathlib import Path


def test_one_context_called_plimsoll_joins_cluster_and_user():
    config = yaml.safe_load(
        build_kubeconfig([KubeconfigContext("plimsoll", "https://127.0.0.1:6443", "secret")], ca_pem=b"PEM")
    )
    assert config["current-context"] == "plimsoll"
    (written,), (cluster,), (user,) = config["contexts"], config["clusters"], config["users"]
    assert written["name"] == "plimsoll"
    assert (written["context"]["cluster"], written["context"]["user"]) == (cluster["name"], user["name"])
    assert cluster["cluster"]["server"] == "https://127.0.0.1:6443"
    assert base64.b64decode(cluster["cluster"]["certificate-authority-data"]) == b"PEM"
    assert user["user"] == {"token": "secret"}


@pytest.mark.parametrize("token", ["0777", "y", "1e3", "-starts-oddly", "~"])
def test_tokens_stay_text_however_they_look(token: str):
    content = build_kubeconfig([KubeconfigContext("plimsoll", "u", token)], ca_pem=b"")
    assert yaml.safe_load(content)["users"][0]["user"]["token"] == token


class Fleet:
    """A kubeconfig file of a server, over restarts."""

    def __init__(self, root: Path) -> None:
        self._directory = DataDirectory(root)
        self.start()

    def start(self) -> None:
        own = KubeconfigContext("plimsoll", "https://127.0.0.1:6443", "secret")
        self.file = KubeconfigFile(self._directory, own, ca_pem=b"PEM")
        self.path = self.file.write()

    def use_context(self, name: str) -> None:
        """As `kubectl config use-context` does it."""
        self.path.write_text(yaml.safe_dump({**self.read(), "current-context": name}))

    def read(self) -> dict[str, Any]:
        config: dict[str, Any] = yaml.safe_load(self.path.read_text())
        return config


def test_clusters_behind_the_address_have_a_context_each(tmp_path: Path):
    fleet = Fleet(tmp_path)
    fleet.file.add("c1", "token of c1")
    fleet.file.add("c2", "token of c2")
    config = fleet.read()
    assert config["current-context"] == "plimsoll"
    servers = {cluster["name"]: cluster["cluster"]["server"] for cluster in config["clusters"]}
    assert servers["c2"] == "https://127.0.0.1:6443/clusters/c2"
    assert {user["name"]: user["user"]["token"] for user in config["users"]}["c1"] == "token of c1"
    fleet.file.remove("c1")
    assert [context["name"] for context in fleet.read()["contexts"]] == ["plimsoll", "c2"]


def test_the_context_that_a_user_selected_stays_while_its_cluster_exists_also_over_a_restart(tmp_path: Path):
    fleet = Fleet(tmp_path)
    fleet.file.add("c1", "token of c1")
    fleet.use_context("c1")
    fleet.file.add("c2", "token of c2")
    assert fleet.read()["current-context"] == "c1"
    fleet.start()
    assert fleet.read()["current-context"] == "plimsoll"
    fleet.file.add("c1", "token of c1")
    assert fleet.read()["current-context"] == "c1"
    fleet.file.remove("c1")
    assert fleet.read()["current-context"] == "plimsoll"


def test_a_kubeconfig_that_cannot_be_read_is_written_anew(tmp_path: Path):
    fleet = Fleet(tmp_path)
    fleet.path.write_bytes(b"\xff{")
    fleet.file.add("c1", "token of c1")
    assert fleet.read()["current-context"] == "plimsoll"


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("127.0.0.1", "https://127.0.0.1:6443"),
        ("localhost", "https://localhost:6443"),
        ("::1", "https://[::1]:6443"),
        ("0.0.0.0", "https://127.0.0.1:6443"),
        ("::", "https://[::1]:6443"),
    ],
)
def test_the_url_is_one_that_a_client_can_reach(host: str, url: str):
    assert build_url(host, 6443) == url
