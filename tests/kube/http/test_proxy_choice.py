"""Which proxy a server is reached through: read as Go programs read the environment."""

from __future__ import annotations

import base64

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plimsoll.core.errors import InvalidInput
from plimsoll.kube.http.addresses import ServerAddress
from plimsoll.kube.http.proxies import Proxy, choose_proxy, is_exempt

REMOTE = "https://api.prod.example.com:6443"


def chosen(server: str = REMOTE, *, proxy_url: str = "", **environment: str) -> str:
    proxy = choose_proxy(ServerAddress.parse(server), proxy_url=proxy_url, environment=environment)
    return proxy.url if proxy else ""


def test_without_any_setting_there_is_no_proxy():
    assert chosen() == ""


@pytest.mark.parametrize(
    ("server", "environment", "expected"),
    [
        (REMOTE, {"HTTPS_PROXY": "http://p:3128"}, "http://p:3128"),
        (REMOTE, {"https_proxy": "http://p:3128"}, "http://p:3128"),
        (REMOTE, {"HTTPS_PROXY": "http://upper", "https_proxy": "http://lower"}, "http://upper:80"),
        (REMOTE, {"HTTP_PROXY": "http://p"}, ""),
        (REMOTE, {"ALL_PROXY": "http://p"}, ""),
        (REMOTE, {"HTTPS_PROXY": "p:3128"}, "http://p:3128"),
        (REMOTE, {"HTTPS_PROXY": "https://p"}, "https://p:443"),
        (REMOTE, {"HTTPS_PROXY": "http://[fd00::1]:8080/"}, "http://[fd00::1]:8080"),
        ("http://api.example.com", {"HTTP_PROXY": "http://p"}, "http://p:80"),
        ("http://api.example.com", {"HTTPS_PROXY": "http://p"}, ""),
    ],
)
def test_the_environment_names_the_proxy(server: str, environment: dict[str, str], expected: str):
    assert chosen(server, **environment) == expected


@pytest.mark.parametrize(
    "server", ["https://127.0.0.1:6443", "https://127.9.9.9", "https://[::1]:6443", "https://localhost"]
)
def test_the_environment_never_applies_to_loopback(server: str):
    assert chosen(server, HTTPS_PROXY="http://p") == ""


def test_the_proxy_of_the_kubeconfig_knows_no_exceptions():
    environment = {"HTTPS_PROXY": "http://other", "NO_PROXY": "*"}
    assert chosen("https://127.0.0.1:6443", proxy_url="http://p:1", **environment) == "http://p:1"


@pytest.mark.parametrize(
    ("entry", "host", "expected"),
    [
        ("*", "anything.example", True),
        ("example.com", "example.com", True),
        ("example.com", "api.example.com", True),
        ("example.com", "badexample.com", False),
        (".example.com", "api.example.com", True),
        (".example.com", "example.com", False),
        ("*.example.com", "api.example.com", True),
        ("*.example.com", "example.com", False),
        ("EXAMPLE.com", "api.Example.COM", True),
        ("example.com:6443", "example.com", True),
        ("example.com:443", "example.com", False),
        ("10.0.0.0/8", "10.1.2.3", True),
        ("10.0.0.0/8", "11.1.2.3", False),
        ("10.0.0.0/8", "example.com", False),
        ("10.0.0.7/8", "10.1.2.3", True),
        ("10.1.2.3", "10.1.2.3", True),
        ("10.1.2.3:6443", "10.1.2.3", True),
        ("10.1.2.3:1", "10.1.2.3", False),
        ("fd00::/8", "fd00::5", True),
        ("fd00::5", "fd00::5", True),
        ("[fd00::5]:6443", "fd00:0::5", True),
        ("", "example.com", False),
        (":6443", "example.com", False),
        ("nonsense/8", "10.0.0.1", False),
    ],
)
def test_no_proxy_names_hosts_suffixes_addresses_and_networks(entry: str, host: str, expected: bool):
    assert is_exempt(host, port=6443, no_proxy=entry) is expected
    assert is_exempt(host, port=6443, no_proxy=f"other.org, {entry} ,third.org") is expected
    wanted = "" if expected else "http://p:80"
    shown = f"[{host}]" if ":" in host else host
    assert chosen(f"https://{shown}:6443", HTTPS_PROXY="http://p", no_proxy=entry) == wanted


@given(st.text(alphabet="ab.*:/[]019,- ", max_size=30), st.sampled_from(("a", "a.b", "b.a.b", "10.0.0.1", "ab-1.b")))
@settings(max_examples=100, deadline=None)
def test_no_list_however_odd_breaks_the_choice_and_a_star_in_it_ends_it(no_proxy: str, host: str):
    assert is_exempt(host, port=443, no_proxy=no_proxy) in {True, False}
    assert is_exempt(host, port=443, no_proxy=f"{no_proxy},*")
    assert is_exempt(host, port=443, no_proxy=f"{no_proxy},{host}")


def test_user_and_password_become_a_header_and_are_not_shown():
    proxy = Proxy.parse("http://us%40er:p%3Aw%20d@proxy:3128", path="proxy-url")
    assert proxy.url == "http://proxy:3128"
    scheme, encoded = proxy.headers["Proxy-Authorization"].split()
    assert (scheme, base64.b64decode(encoded)) == ("Basic", b"us@er:p:w d")
    assert encoded not in repr(proxy)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("socks5://user:hidden@p:1080", "SOCKS proxies are not supported"),
        ("ftp://user:hidden@p", "unsupported scheme 'ftp'"),
        ("http://user:hidden@", "names no host"),
        ("http://user:hidden@p:port", "is not a URL"),
        ("http://[user:hidden", "is not a URL"),
    ],
)
def test_a_proxy_that_cannot_be_used_is_named_without_its_password(text: str, problem: str):
    with pytest.raises(InvalidInput) as caught:
        chosen(proxy_url=text)
    assert str(caught.value).startswith("proxy-url: ")
    assert problem in str(caught.value)
    assert "hidden" not in str(caught.value)
    with pytest.raises(InvalidInput, match="HTTPS_PROXY: "):
        chosen(HTTPS_PROXY=text)
