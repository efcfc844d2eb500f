"""Every mistake in a kubeconfig file is an InvalidInput that names the file and the field, and quotes no secret."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plimsoll.core.errors import InvalidInput
from tests.kube.configuration.kubeconfigs import (
    V1,
    V1BETA1,
    ClientEnvironment,
    b64,
    certificate_and_key,
    config,
    plugin,
)

if TYPE_CHECKING:
    from pathlib import Path

    from tests.golden.reviewed_sentences import ReviewedSentences

CERTIFICATE, KEY = certificate_and_key()
OTHER_CERTIFICATE, OTHER_KEY = certificate_and_key()

CLUSTER = "clusters[0].cluster"
USER = "users[0].user"


@pytest.mark.parametrize(
    ("content", "path", "problem"),
    [
        ([], "", "must be a mapping, and is a list"),
        ({"kind": "Pod"}, "kind", 'must be "Config", and is "Pod"'),
        ({"apiVersion": "v2"}, "apiVersion", 'must be "v1"'),
        ({"clusters": {}}, "clusters", "must be a list, and is a mapping"),
        ({"users": ["x"]}, "users[0]", "must be a mapping, and is text"),
        ({"contexts": [{"name": 7}]}, "contexts[0].name", "must be text, and is a number"),
        ({"users": [{"name": "a"}, {"name": "a"}]}, "users[1].name", '"a" occurs twice among the users'),
        (config(context={"cluster": "gone"}), "contexts[0].context.cluster", 'no cluster "gone"; known clusters: one'),
        (config(context={"cluster": ""}), "contexts[0].context.cluster", "must be given"),
        (config(context={"user": "gone"}), "contexts[0].context.user", 'no user "gone"; known users: one'),
    ],
)
def test_shape_of_the_file(machine: ClientEnvironment, content: Any, path: str, problem: str):
    expect(machine, content, path=path, problem=problem)


@pytest.mark.parametrize(
    ("cluster", "field", "problem"),
    [
        ({"server": ""}, "server", "must be given"),
        ({"server": "ftp://x"}, "server", "must start with https://"),
        ({"certificate-authority": "gone.crt"}, "certificate-authority", "gone.crt cannot be read: No such file"),
        ({"certificate-authority-data": "%"}, "certificate-authority-data", "is not base64"),
        ({"certificate-authority-data": b64("x")}, "certificate-authority-data", "holds no certificate in PEM"),
        (
            {"certificate-authority-data": b64(CERTIFICATE), "certificate-authority": "x"},
            "certificate-authority-data",
            "only one may be given",
        ),
        (
            {"certificate-authority-data": b64(CERTIFICATE), "insecure-skip-tls-verify": True},
            "insecure-skip-tls-verify",
            "specifying a root certificates file (certificate-authority-data) with this flag is not allowed",
        ),
        ({"insecure-skip-tls-verify": "yes"}, "insecure-skip-tls-verify", "must be a boolean, and is text"),
        ({"proxy-url": "ftp://u:secret@p"}, "proxy-url", "must be an address with the scheme http or https"),
        ({"proxy-url": "socks5://u:secret@p:1080"}, "proxy-url", "SOCKS proxies are not supported; give an http or"),
        ({"proxy-url": "http://u:secret@[p"}, "proxy-url", "must be an address"),
    ],
)
def test_clusters(machine: ClientEnvironment, cluster: dict[str, Any], field: str, problem: str):
    expect(machine, config(cluster=cluster), path=f"{CLUSTER}.{field}", problem=problem)


@pytest.mark.parametrize(
    ("user", "field", "problem"),
    [
        ({"token": 1234}, "token", "must be text, and is a number"),
        ({"token": "secret\nX-Evil: 1"}, "token", "characters that no HTTP header can hold"),
        ({"tokenFile": "gone"}, "tokenFile", "gone cannot be read: No such file"),
        ({"tokenFile": "/dev/null"}, "tokenFile", "/dev/null is empty"),
        ({"token": "secret", "username": "ada"}, "username", "only one may be given"),
        ({"client-certificate": "gone.crt", "client-key-data": b64(KEY)}, "client-certificate", "cannot be read"),
        ({"client-certificate-data": b64(CERTIFICATE)}, "client-key", "must be given"),
        ({"client-key-data": b64(KEY)}, "client-certificate", "must be given"),
        (
            {"client-certificate-data": b64(CERTIFICATE), "client-certificate": "x", "client-key-data": b64(KEY)},
            "client-certificate-data",
            "only one may be given",
        ),
        (
            {"client-certificate-data": b64("x"), "client-key-data": b64(KEY)},
            "client-certificate-data",
            "holds no certificate in PEM",
        ),
        (
            {"client-certificate-data": b64(CERTIFICATE), "client-key-data": b64(CERTIFICATE)},
            "client-key-data",
            "holds no private key in PEM",
        ),
        (
            {"client-certificate-data": b64(CERTIFICATE), "client-key-data": b64(OTHER_KEY)},
            "client-key-data",
            "does not belong to the certificate",
        ),
        (
            {"client-certificate-data": b64(CERTIFICATE), "client-key-data": b64(KEY.replace(b"MH", b"AA"))},
            "client-key-data",
            "is not a readable private key",
        ),
        (
            {"client-certificate-data": b64(CERTIFICATE.replace(b"MI", b"AA")), "client-key-data": b64(KEY)},
            "client-certificate-data",
            "is not a readable certificate",
        ),
        ({"as-groups": ["g"]}, "as-groups", "only with `as`"),
        ({"as-uid": "7"}, "as-uid", "only with `as`"),
        ({"as-user-extra": {"a": ["b"]}}, "as-user-extra", "only with `as`"),
        ({"as": "ada", "as-groups": "g"}, "as-groups", "must be a list, and is text"),
        ({"as": "ada", "as-user-extra": {"a": [1]}}, "as-user-extra.a[0]", "must be text, and is a number"),
        ({"as": "ada", "as-groups": ["g\r\nX: y"]}, "as", "characters that no HTTP header can hold"),
        ({"auth-provider": {"name": "gcp"}}, "auth-provider", "no longer part of Kubernetes clients"),
        (plugin(command=""), "exec.command", "must be given"),
        (plugin(apiVersion=""), "exec.apiVersion", f"must be given: it must be {V1} or {V1BETA1}"),
        (plugin(apiVersion=f"{V1[:-2]}v1alpha1"), "exec.apiVersion", "v1alpha1 is no longer supported"),
        (plugin(apiVersion="v1"), "exec.apiVersion", 'and is "v1"'),
        (plugin(interactiveMode=""), "exec.interactiveMode", f"must be given with {V1}"),
        (plugin(interactiveMode="Often"), "exec.interactiveMode", "must be Never, IfAvailable or Always"),
        (plugin(args="x"), "exec.args", "must be a list"),
        (plugin(args=["a", 2]), "exec.args[1]", "must be text, and is a number"),
        (plugin(env=[{"value": "x"}]), "exec.env[0].name", "must be the name of an environment variable"),
        (plugin(env=[{"name": "A=B"}]), "exec.env[0].name", "must be the name of an environment variable"),
        (plugin(provideClusterInfo="yes"), "exec.provideClusterInfo", "must be a boolean"),
    ],
)
def test_users(machine: ClientEnvironment, user: dict[str, Any], field: str, problem: str):
    expect(machine, config(user=user), path=f"{USER}.{field}", problem=problem)


def test_the_place_of_an_entry_is_counted_in_its_own_file(machine: ClientEnvironment):
    content = config(user={"token": 5})
    content["users"].insert(0, {"name": "other", "user": {}})
    expect(machine, content, path="users[1].user.token", problem="must be text")


def test_mistakes_of_entries_that_are_not_used_do_no_harm(machine: ClientEnvironment):
    content = config(user={"token": "t"})
    content["users"].append({"name": "other", "user": {"token": 5, "client-key-data": "%"}})
    assert machine.access(content).origin.startswith("context one")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (b"a: [", r"line \d+, column \d+"),
        (b"\xff\xfe\x00", "not UTF-8"),
        (b"users:\n- user: {token: !!int secret}\n", "line 2, column 17: not YAML"),
        (b"a: 1\na: 2\n", "occurs twice"),
    ],
)
def test_files_that_are_not_yaml(machine: ClientEnvironment, text: bytes, problem: str):
    with pytest.raises(InvalidInput, match=problem) as caught:
        machine.access(text)
    assert caught.value.path == str(machine.folder / "config.yaml")
    assert "secret" not in str(caught.value)


def test_a_folder_is_no_kubeconfig(machine: ClientEnvironment, reviewed: ReviewedSentences):
    with pytest.raises(InvalidInput) as raised:
        machine.access(kubeconfig=str(machine.folder))
    reviewed(str(raised.value))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@settings(max_examples=150, deadline=None)
@given(
    section=st.sampled_from(["cluster", "user", "context"]),
    field=st.sampled_from(
        [
            "server",
            "certificate-authority-data",
            "proxy-url",
            "extensions",
            "token",
            "tokenFile",
            "exec",
            "as",
            "as-user-extra",
            "namespace",
            "client-key-data",
            "username",
            "insecure-skip-tls-verify",
        ]
    ),
    value=JSON,
)
def test_whatever_a_field_holds_there_is_access_or_a_named_mistake(
    tmp_path_factory: pytest.TempPathFactory, section: str, field: str, value: Any
):
    machine = ClientEnvironment(tmp_path_factory.mktemp("any"))
    try:
        access = machine.access(config(**dict[str, Any]({section: {field: value}})))
    except InvalidInput as error:
        assert error.path.startswith(str(machine.folder))  # noqa: PT017 -- either outcome is right
    else:
        assert access.server.startswith("http")


def expect(machine: ClientEnvironment, content: Any, *, path: str, problem: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        machine.access(content)
    file = str(machine.folder / "config.yaml")
    assert caught.value.path == (f"{file}: {path}" if path else file)
    assert problem in caught.value.problem
    assert "secret" not in str(caught.value)
    assert caught.value.exit_code == 2


def test_a_relative_file_is_named_where_it_was_looked_for(tmp_path: Path, machine: ClientEnvironment):
    expect(
        machine,
        config(user={"tokenFile": "sub/token"}),
        path=f"{USER}.tokenFile",
        problem=f"{tmp_path}/sub/token cannot be read",
    )
