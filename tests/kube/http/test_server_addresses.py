from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plimsoll.core.errors import InvalidInput
from plimsoll.kube.http.addresses import ServerAddress
from plimsoll.kube.transport import Request


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("https://api.example.com", ServerAddress("https://api.example.com", "api.example.com", 443, is_tls=True)),
        ("https://api.example.com/", ServerAddress("https://api.example.com", "api.example.com", 443, is_tls=True)),
        ("http://10.0.0.1:8080", ServerAddress("http://10.0.0.1:8080", "10.0.0.1", 8080, is_tls=False)),
        ("https://[fd00::1]:6443", ServerAddress("https://[fd00::1]:6443", "fd00::1", 6443, is_tls=True)),
        ("https://h:1/clusters/x/", ServerAddress("https://h:1/clusters/x", "h", 1, is_tls=True)),
    ],
)
def test_an_address_is_taken_apart(text: str, expected: ServerAddress):
    assert ServerAddress.parse(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "api.example.com",
        "api.example.com:6443",
        "ftp://x",
        "https://",
        "https://h:port",
        "https://h?a=1",
        "https://h#f",
    ],
)
def test_what_is_no_address_of_a_server_is_refused(text: str):
    with pytest.raises(InvalidInput, match="server: "):
        ServerAddress.parse(text)


def test_a_password_in_the_address_is_refused_and_not_shown():
    with pytest.raises(InvalidInput) as caught:
        ServerAddress.parse("https://admin:hidden@host")
    assert "hidden" not in str(caught.value)


@pytest.mark.parametrize(
    ("host", "expected"), [("127.0.0.1", True), ("[::1]", True), ("localhost", True), ("10.0.0.1", False), ("x", False)]
)
def test_loopback_is_known_by_name_and_address(host: str, expected: bool):
    assert ServerAddress.parse(f"https://{host}:1").is_loopback is expected


def test_the_path_of_the_server_stands_before_the_path_of_the_call():
    url = ServerAddress.parse("https://host/clusters/a").build_url(
        Request("GET", "/api/v1/pods", (("limit", "5"),)).url
    )
    assert str(url) == "https://host/clusters/a/api/v1/pods?limit=5"


@given(st.text(max_size=20), st.text(max_size=10))
@settings(max_examples=200, deadline=None)
def test_the_escapes_of_a_call_are_sent_exactly_as_they_are(name: str, value: str):
    call = Request("GET", f"/api/v1/namespaces/{name}", (("fieldSelector", value),))
    assert ServerAddress.parse("https://host/x").build_url(call.url).raw_path_qs == "/x" + call.url
