from __future__ import annotations

import base64

import pytest
import yaml

from plimsoll.local.apiserver.transport.kubeconfig import build_kubeconfig, build_url


def test_one_context_called_plimsoll_joins_cluster_and_user():
    config = yaml.safe_load(build_kubeconfig(url="https://127.0.0.1:6443", ca_pem=b"PEM", token="secret"))
    assert config["current-context"] == "plimsoll"
    (context,), (cluster,), (user,) = config["contexts"], config["clusters"], config["users"]
    assert context["name"] == "plimsoll"
    assert (context["context"]["cluster"], context["context"]["user"]) == (cluster["name"], user["name"])
    assert cluster["cluster"]["server"] == "https://127.0.0.1:6443"
    assert base64.b64decode(cluster["cluster"]["certificate-authority-data"]) == b"PEM"
    assert user["user"] == {"token": "secret"}


@pytest.mark.parametrize("token", ["0777", "y", "1e3", "-starts-oddly", "~"])
def test_tokens_stay_text_however_they_look(token: str):
    assert yaml.safe_load(build_kubeconfig(url="u", ca_pem=b"", token=token))["users"][0]["user"]["token"] == token


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
