"""Where access comes from: options, KUBECONFIG, the default file, the pod; and how several files become one."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest

from plimsoll.core.errors import InvalidInput
from plimsoll.kube.configuration import find_access
from plimsoll.runtime.clocks import RealClock
from plimsoll.testing import run_virtual
from tests.kube.configuration.kubeconfigs import SERVER, config

if TYPE_CHECKING:
    from pathlib import Path

    from tests.golden.reviewed_sentences import ReviewedSentences
    from tests.kube.configuration.kubeconfigs import ClientEnvironment


def one(name: str, **more: Any) -> dict[str, Any]:
    return config(name=name, cluster={"server": f"https://{name}"}, user={"token": f"token-of-{name}"}, **more)


def test_an_explicit_file_comes_before_everything_else(machine: ClientEnvironment):
    machine.environment["KUBECONFIG"] = machine.write("b", one("b"))
    machine.in_pod()
    assert machine.access(one("a")).server == "https://a"


def test_kubeconfig_comes_before_the_default_file(machine: ClientEnvironment):
    machine.write(".kube/config", one("home"))
    machine.environment["KUBECONFIG"] = machine.write("b", one("b"))
    assert machine.access().server == "https://b"


@pytest.mark.parametrize("empty", ["", None])
def test_without_kubeconfig_the_default_file_is_read(machine: ClientEnvironment, empty: str | None):
    machine.write(".kube/config", one("home"))
    if empty is not None:
        machine.environment["KUBECONFIG"] = empty
    access = machine.access()
    assert access.server == "https://home"
    assert access.origin == f"context home of {machine.folder}/.kube/config"


def test_the_default_file_comes_before_the_pod(machine: ClientEnvironment):
    machine.write(".kube/config", one("home"))
    machine.in_pod()
    assert machine.access().server == "https://home"


@pytest.mark.parametrize("content", [None, b"", config() | {"contexts": [], "current-context": ""}])
def test_in_a_pod_without_a_usable_file_the_service_account_is_used(machine: ClientEnvironment, content: object):
    if content is not None:
        machine.write(".kube/config", content)
    machine.in_pod()
    assert machine.access().origin == "the service account of this pod"


def test_missing_files_of_the_list_are_skipped(machine: ClientEnvironment):
    machine.environment["KUBECONFIG"] = os.pathsep.join(
        [str(machine.folder / "gone"), "", machine.write("b", one("b"))]
    )
    assert machine.access().server == "https://b"


def test_an_explicit_file_that_is_missing_is_an_error(machine: ClientEnvironment, reviewed: ReviewedSentences):
    with pytest.raises(InvalidInput) as raised:
        machine.access(kubeconfig=str(machine.folder / "gone"))
    reviewed(str(raised.value))


@pytest.mark.parametrize(
    ("content", "problem"), [(b"", "is empty"), (config() | {"contexts": [], "current-context": ""}, "has no contexts")]
)
def test_an_explicit_file_without_contexts_is_reported_as_such(
    machine: ClientEnvironment, content: object, problem: str
):
    machine.environment["KUBECONFIG"] = machine.write("b", one("b"))
    with pytest.raises(InvalidInput) as caught:
        machine.access(content)
    assert str(caught.value) == f"{machine.folder}/config.yaml: {problem}: it names no cluster to use"


def test_the_first_file_that_names_a_current_context_sets_it(machine: ClientEnvironment):
    first = one("a") | {"current-context": ""}
    files = [machine.write("a", first), machine.write("b", one("b")), machine.write("c", one("c"))]
    machine.environment["KUBECONFIG"] = os.pathsep.join(files)
    assert machine.access().server == "https://b"


def test_an_entry_is_taken_whole_from_the_first_file_that_has_it(machine: ClientEnvironment):
    first = config(name="x", cluster={"server": "https://first"})
    second = config(name="x", cluster={"server": "https://second", "tls-server-name": "second"}, user={"token": "t"})
    machine.environment["KUBECONFIG"] = os.pathsep.join([machine.write("a", first), machine.write("b", second)])
    access = machine.access()
    assert (access.server, access.tls.server_name) == ("https://first", "")
    assert run_virtual(access.credentials.get_current()).headers == {}


def test_context_cluster_and_user_may_stand_in_different_files(machine: ClientEnvironment):
    parts = {"clusters": {}, "users": {}, "contexts": {"current-context": "x"}}
    whole = config(name="x", user={"token": "t"})
    files = [machine.write(part, {part: whole[part], **more}) for part, more in parts.items()]
    machine.environment["KUBECONFIG"] = os.pathsep.join(files)
    assert run_virtual(machine.access().credentials.get_current()).headers == {"Authorization": "Bearer t"}


def test_context_chooses_among_several(machine: ClientEnvironment):
    machine.environment["KUBECONFIG"] = os.pathsep.join([machine.write("a", one("a")), machine.write("b", one("b"))])
    assert machine.access(context="b").server == "https://b"


def test_an_unknown_context_is_reported_with_the_known_ones(machine: ClientEnvironment, reviewed: ReviewedSentences):
    with pytest.raises(InvalidInput) as raised:
        machine.access(config(), context="prod")
    reviewed(str(raised.value))


def test_a_current_context_that_does_not_exist_names_file_and_field(
    machine: ClientEnvironment, reviewed: ReviewedSentences
):
    with pytest.raises(InvalidInput) as raised:
        machine.access(config() | {"current-context": "gone"})
    reviewed(str(raised.value))


def test_contexts_without_a_current_one_ask_for_a_choice(machine: ClientEnvironment, reviewed: ReviewedSentences):
    with pytest.raises(InvalidInput) as raised:
        machine.access(config() | {"current-context": ""})
    reviewed(str(raised.value))


def test_nothing_at_all_says_what_was_looked_for_and_what_helps(machine: ClientEnvironment):
    with pytest.raises(InvalidInput) as caught:
        machine.access()
    assert str(caught.value) == (
        f"no cluster is configured (KUBECONFIG is not set; the default file: {machine.folder}/.kube/config "
        "(no such file); and this is not a pod with a service account); give --kubeconfig FILE, set KUBECONFIG, or "
        "give --server URL"
    )


def test_kubeconfig_without_any_existing_file_is_reported(machine: ClientEnvironment, reviewed: ReviewedSentences):
    machine.environment["KUBECONFIG"] = "/gone/a:/gone/b"
    with pytest.raises(InvalidInput) as raised:
        machine.access()
    reviewed(str(raised.value))


@pytest.mark.parametrize(
    ("written", "server"),
    [
        ("https://host:6443/", "https://host:6443"),
        ("https://host/k8s/clusters/c-1/", "https://host/k8s/clusters/c-1"),
        ("https://host/path?x=1#y", "https://host/path"),
        ("http://host", "http://host"),
        ("localhost:8080", "http://localhost:8080"),
        ("host", "http://host"),
        ("https://[::1]:6443", "https://[::1]:6443"),
    ],
)
def test_server_alone_has_no_credentials(machine: ClientEnvironment, written: str, server: str):
    machine.write(".kube/config", config(user={"token": "t"}))
    access = machine.access(server=written)
    assert access.server == server
    assert run_virtual(access.credentials.get_current()).headers == {}
    assert access.namespace == "default"


@pytest.mark.parametrize(
    ("written", "problem"),
    [
        ("host/path", "must be an address like"),
        ("ftp://host", 'not "ftp://"'),
        ("https://", "must be an address like"),
        ("https://host:99999", "host or port cannot be understood"),
        ("https://[::1", "host or port cannot be understood"),
        ("https://ho st", "holds a space"),
        ("https://ada:secret@host", "must not hold a user name or password"),
    ],
)
def test_a_server_that_is_no_address_is_refused(machine: ClientEnvironment, written: str, problem: str):
    with pytest.raises(InvalidInput, match=problem) as caught:
        machine.access(server=written)
    assert caught.value.path == "--server"
    assert "secret" not in str(caught.value)


def test_server_beside_a_chosen_context_replaces_only_the_address(machine: ClientEnvironment):
    access = machine.access(config(user={"token": "t"}), server="https://other/")
    assert access.server == "https://other"
    assert access.origin == f"--server, beside context one of {machine.folder}/config.yaml"
    assert run_virtual(access.credentials.get_current()).headers == {"Authorization": "Bearer t"}


def test_namespace_is_the_options_then_the_contexts_then_default(machine: ClientEnvironment):
    content = config(context={"namespace": "apps"})
    assert machine.access(content, namespace="mine").namespace == "mine"
    assert machine.access(content).namespace == "apps"
    assert machine.access(config()).namespace == "default"


def test_a_namespace_that_cannot_be_one_is_refused(machine: ClientEnvironment, reviewed: ReviewedSentences):
    with pytest.raises(InvalidInput) as raised:
        machine.access(config(context={"namespace": "A/B"}))
    reviewed(str(raised.value))


def test_find_access_is_the_same_with_the_machines_own_surroundings(tmp_path: Path, machine: ClientEnvironment):
    file = machine.write("f", config())
    access = find_access(kubeconfig=file, environment={}, clock=RealClock())
    assert access.server == SERVER
