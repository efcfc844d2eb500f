"""`plimsoll doctor` as a user runs it, against `plimsoll apiserver` as a process of its own."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
import yaml

from plimsoll.cli.commands.requirements import REQUIREMENTS
from plimsoll.kube.diagnosis import Namespaces
from plimsoll.kube.diagnosis.permissions import build_role_manifests
from plimsoll.objects.validation import list_shipped_definitions
from tests.e2e.apiserver.processes import ApiServer, running
from tests.e2e.timeouts import PATIENCE_S

if TYPE_CHECKING:
    from collections.abc import Iterator

TIDB = "/apis/pingcap.com/v1alpha1"
DEPLOY = Path(__file__).parents[3] / "deploy"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
E2E_KUBECONFIG = os.environ.get("PLIMSOLL_E2E_KUBECONFIG", "")


class DoctorResult(NamedTuple):
    code: int
    stdout: str
    stderr: str

    @property
    def reported(self) -> dict[str, Any]:
        return json.loads(self.stdout)

    @property
    def error(self) -> dict[str, Any]:
        return json.loads(self.stderr)["error"]

    @property
    def complaints(self) -> str:
        """Without what it prints of its progress when the machine is slow."""
        lines = self.stderr.splitlines(keepends=True)
        return "".join(line for line in lines if not line.startswith("looking at "))

    def finding(self, check: str) -> dict[str, Any]:
        (found,) = [finding for finding in self.reported["findings"] if finding["check"] == check]
        return found


def doctor(*arguments: str | Path, home: Path | None = None) -> DoctorResult:
    """Run it with nothing of this machine's own configuration around."""
    foreign = {"KUBECONFIG", "KUBERNETES_SERVICE_HOST", "HTTPS_PROXY", "https_proxy"}
    environment = {name: value for name, value in os.environ.items() if name not in foreign}
    if home is not None:
        environment["HOME"] = str(home)
    ended = subprocess.run(
        [sys.executable, "-m", "plimsoll", "doctor", *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
        timeout=PATIENCE_S,
    )
    assert "Traceback" not in ended.stderr, ended.stderr
    return DoctorResult(ended.returncode, ended.stdout, ended.stderr)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    folder = tmp_path_factory.mktemp("doctor")
    users = folder / "users.csv"
    users.write_text('bobs-secret,bob,1,"dev"\ncarols-secret,carol,2,"dev"\n')
    with running(folder / "cluster", "--token-file", str(users)) as started:
        yield started


def shipped(folder: str, *files: str) -> list[dict[str, Any]]:
    return [document for file in files for document in yaml.safe_load_all((DEPLOY / folder / file).read_text())]


def kubeconfig(server: ApiServer, folder: Path, **changes: Any) -> Path:
    """The server's own kubeconfig with another user or cluster."""
    config = server.config
    if "user" in changes:
        config["users"][0]["user"] = changes["user"]
    config["clusters"][0]["cluster"].update(changes.get("cluster", {}))
    file = folder / "kubeconfig"
    file.write_text(yaml.safe_dump(config))
    return file


def test_a_fresh_server_is_well(server: ApiServer):
    ended = doctor("--kubeconfig", server.kubeconfig, "--controller", "nodes")
    assert ended.code == 0, ended.stdout
    lines = ended.stdout.splitlines()
    assert lines[1].startswith(f"api                ok       {server.url} answers in ")
    assert "identity           ok       authenticated as admin" in lines
    assert "clock              ok       agrees with the server's to a second" in lines
    assert lines[-1] == "all checks passed"
    assert ended.complaints == ""


def test_all_controllers_are_examined_unless_one_is_named(server: ApiServer):
    ended = doctor("--kubeconfig", server.kubeconfig, "-o", "json")
    assert ended.code == 0
    assert ended.reported["healthy"]
    assert ended.reported["controllers"] == [*REQUIREMENTS]
    assert ended.finding("definitions.kafka")["level"] == "warn"


def test_a_custom_resource_that_is_missing_fails_the_controller_that_was_named(server: ApiServer):
    ended = doctor("--kubeconfig", server.kubeconfig, "--controller", "kafka", "-o", "name")
    assert (ended.code, ended.stdout) == (1, "definitions.kafka\n")


def test_the_kubeconfig_is_found_in_the_home_directory(server: ApiServer, tmp_path: Path):
    (tmp_path / ".kube").mkdir()
    (tmp_path / ".kube" / "config").write_text(server.kubeconfig.read_text())
    ended = doctor("--controller", "nodes", "-o", "json", home=tmp_path)
    assert ended.code == 0
    assert str(tmp_path) in ended.finding("api")["details"]["origin"]


def test_without_any_configuration_it_says_what_was_looked_for(tmp_path: Path):
    ended = doctor(home=tmp_path)
    assert ended.code == 2
    assert "--kubeconfig" in ended.stderr


@pytest.mark.parametrize("output", ["table", "json"])
def test_a_wrong_port_is_exit_code_4_and_names_the_address(server: ApiServer, tmp_path: Path, output: str):
    wrong = kubeconfig(server, tmp_path, cluster={"server": "https://127.0.0.1:1"})
    ended = doctor("--kubeconfig", wrong, "-o", output)
    assert (ended.code, ended.stdout) == (4, "")
    if output == "json":
        assert ended.error["exitCode"] == 4
        assert "https://127.0.0.1:1: connection refused" in ended.error["message"]
        assert str(wrong) in ended.error["hint"]
    else:
        assert ended.complaints.startswith("error: cannot reach https://127.0.0.1:1: connection refused")
        assert f"of {wrong}; check host and port" in ended.stderr


def test_a_wrong_authority_is_exit_code_4_and_says_whose_certificate_it_is(server: ApiServer, tmp_path: Path):
    with running(tmp_path / "other") as other:
        theirs = other.config["clusters"][0]["cluster"]["certificate-authority-data"]
    wrong = kubeconfig(server, tmp_path, cluster={"certificate-authority-data": theirs})
    ended = doctor("--kubeconfig", wrong, "-o", "json")
    assert (ended.code, ended.stdout) == (4, "")
    assert server.url in ended.error["message"]
    assert "certificate" in ended.error["message"]
    assert "a new certificate authority" in ended.error["hint"]


def test_a_server_given_alone_is_asked_without_credentials_and_not_trusted_blindly(server: ApiServer, tmp_path: Path):
    ended = doctor("--server", server.url, home=tmp_path)
    assert ended.code == 4
    assert "certificate" in ended.stderr


def test_an_unknown_token_is_exit_code_1(server: ApiServer, tmp_path: Path):
    ended = doctor("--kubeconfig", kubeconfig(server, tmp_path, user={"token": "unheard-of"}), "-o", "json")
    assert ended.code == 1
    assert [finding["check"] for finding in ended.reported["findings"]] == ["api", "identity"]
    assert ended.finding("identity")["level"] == "fail"
    assert "unheard-of" not in ended.stdout + ended.stderr


def test_few_rights_are_exit_code_1_with_exactly_what_is_missing(server: ApiServer, tmp_path: Path):
    """All but two of the kubelet's permissions are granted; the role in the answer grants the rest."""
    kept = [
        permission
        for permission in REQUIREMENTS["kubelet"].permissions
        if permission.path not in {"pods/status", "leases"}
    ]
    for manifest in build_role_manifests(kept, role="bobs", user="bob", namespaces=Namespaces()):
        assert server.ask("POST", f"{RBAC}/{manifest['kind'].lower()}s", manifest)[0] == 201
    bob = kubeconfig(server, tmp_path, user={"token": "bobs-secret"})
    ended = doctor("--kubeconfig", bob, "--controller", "kubelet", "-o", "json")
    assert ended.code == 1
    missing = ended.finding("permissions.kubelet")["details"]["missing"]
    assert {(rule["verb"], rule["resource"], rule["subresource"], rule["namespace"]) for rule in missing} == {
        ("patch", "pods", "status", ""),
        ("get", "leases", "", "kube-node-lease"),
        ("create", "leases", "", "kube-node-lease"),
        ("patch", "leases", "", "kube-node-lease"),
    }
    assert "bobs-secret" not in ended.stdout + ended.stderr
    for manifest in ended.finding("permissions.kubelet")["details"]["manifests"]:
        namespace = manifest["metadata"].get("namespace")
        where = f"{RBAC}/namespaces/{namespace}" if namespace else RBAC
        assert server.ask("POST", f"{where}/{manifest['kind'].lower()}s", manifest)[0] == 201
    assert doctor("--kubeconfig", bob, "--controller", "kubelet").code == 0


def test_what_it_prints_for_the_administrator_grants_what_is_missing_and_nothing_elsewhere(
    server: ApiServer, tmp_path: Path
):
    """The line is run as it is printed, with the administrator's part of it done by hand."""
    carol = kubeconfig(server, tmp_path, user={"token": "carols-secret"})
    given = ["--kubeconfig", str(carol), "-n", "default", "--controller", "tidb"]
    ended = doctor(*given)
    line = next(line for line in ended.stdout.splitlines() if line.strip().startswith("plimsoll doctor "))
    command, _, _ = line.partition(" | ")
    again = doctor(*shlex.split(command)[2:])
    assert shlex.split(command)[2:] == [*given, "-o", "json"]
    manifests = again.finding("permissions.tidb")["details"]["manifests"]
    for manifest in manifests:
        namespace = manifest["metadata"].get("namespace")
        where = f"{RBAC}/namespaces/{namespace}" if namespace else RBAC
        assert server.ask("POST", f"{where}/{manifest['kind'].lower()}s", manifest)[0] == 201
        if manifest["kind"] == "ClusterRole":
            assert not [rule for rule in manifest["rules"] if "secrets" in rule["resources"]]
    assert doctor(*given, "-o", "json").finding("permissions.tidb")["level"] == "ok"


def plugin(folder: Path, *lines: str) -> dict[str, Any]:
    script = folder / "plugin.sh"
    script.write_text("\n".join(["#!/bin/sh", *lines]))
    script.chmod(0o755)
    version = "client.authentication.k8s.io/v1"
    return {"exec": {"apiVersion": version, "command": str(script), "interactiveMode": "Never"}}


def test_a_plugin_may_take_longer_than_an_answer_of_the_server(server: ApiServer, tmp_path: Path):
    answer: dict[str, Any] = {"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential"}
    answer |= {"status": {"token": server.config["users"][0]["user"]["token"]}}
    slow = kubeconfig(
        server, tmp_path, user=plugin(tmp_path, "sleep 3", f"printf %s {shlex.quote(json.dumps(answer))}")
    )
    ended = doctor("--kubeconfig", slow, "--timeout", "2", "--controller", "kubelet")
    assert ended.code == 0, ended.stderr
    assert "waiting for credentials" in ended.stderr


def test_a_plugin_that_fails_is_exit_code_2_and_named_with_file_and_field(server: ApiServer, tmp_path: Path):
    failing = kubeconfig(server, tmp_path, user=plugin(tmp_path, "echo please log in >&2", "exit 3"))
    ended = doctor("--kubeconfig", failing, "-o", "json")
    assert ended.code == 2
    reported = (
        f'{failing}: users[0].user.exec: exec plugin {tmp_path}/plugin.sh: failed with exit code 3: "please log in"'
    )
    assert ended.error["message"] == reported


def test_a_mistake_in_the_kubeconfig_is_exit_code_2_with_the_path_of_the_field(server: ApiServer, tmp_path: Path):
    wrong = kubeconfig(server, tmp_path, user={"token": 7})
    ended = doctor("--kubeconfig", wrong, "-o", "json")
    assert (ended.code, ended.stdout) == (2, "")
    assert f"{wrong}: users[0].user.token" in ended.error["message"]


def test_a_context_that_is_not_there_is_exit_code_2_and_the_others_are_named(server: ApiServer):
    ended = doctor("--kubeconfig", server.kubeconfig, "--context", "prod")
    assert ended.code == 2
    assert server.config["contexts"][0]["name"] in ended.stderr


def test_insecure_connections_are_a_warning(server: ApiServer, tmp_path: Path):
    config = server.config
    cluster = {"server": server.url, "insecure-skip-tls-verify": True}
    config["clusters"][0]["cluster"] = cluster
    file = tmp_path / "kubeconfig"
    file.write_text(yaml.safe_dump(config))
    ended = doctor("--kubeconfig", file, "--controller", "nodes", "-o", "json")
    assert ended.code == 0
    assert ended.finding("api")["level"] == "warn"


def test_the_shipped_tidb_account_has_what_the_running_configuration_needs(server: ApiServer, tmp_path: Path):
    """Its lease and ConfigMaps are where the account is, and without TLS no Secret is read."""
    for document in shipped("tidb", "service-account.yaml", "permissions.yaml"):
        place = "" if document["kind"].startswith("Cluster") else "/namespaces/kube-system"
        api = "/api/v1" if document["kind"] == "ServiceAccount" else RBAC
        # Another test of this server may have created a role of the same name.
        path = f"{api}{place}/{document['kind'].lower()}s/{document['metadata']['name']}?fieldManager=t&force=true"
        status, answer = server.ask("PATCH", path, document, content="application/apply-patch+yaml")
        assert status in {200, 201}, answer
    for manifest in list_shipped_definitions():
        if manifest.ref.name.endswith("pingcap.com"):
            server.ask("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", manifest.body)
    server.ask("POST", "/api/v1/namespaces", {"metadata": {"name": "prod"}})
    specs: dict[str, dict[str, Any]] = {"TidbCluster": {}, "TidbClusterAutoScaler": {"cluster": {"name": "db"}}}
    for kind, spec in specs.items():
        body = {"apiVersion": "pingcap.com/v1alpha1", "kind": kind, "metadata": {"name": "db"}, "spec": spec}
        status, answer = server.ask("POST", f"{TIDB}/namespaces/prod/{kind.lower()}s", body)
        assert status == 201, answer
    path = "/api/v1/namespaces/kube-system/serviceaccounts/plimsoll-tidb/token"
    token = server.ask("POST", path, {"spec": {"expirationSeconds": 3600}})[1]["status"]["token"]
    account = kubeconfig(server, tmp_path, user={"token": token})
    ended = doctor("--kubeconfig", account, "--controller", "tidb", "-o", "json")
    assert ended.finding("permissions.tidb")["level"] == "ok", ended.stdout
    assert ended.code == 0

    with_tls = {"spec": {"tlsCluster": {"enabled": True}}}
    place = f"{TIDB}/namespaces/prod/tidbclusters/db"
    assert server.ask("PATCH", place, with_tls, content="application/merge-patch+json")[0] == 200
    missing = doctor("--kubeconfig", account, "--controller", "tidb", "-o", "json").finding("permissions.tidb")
    assert [(rule["namespace"], rule["resources"]) for rule in missing["details"]["rules"]] == [("prod", ["secrets"])]


@pytest.mark.skipif(not E2E_KUBECONFIG, reason="PLIMSOLL_E2E_KUBECONFIG names no cluster")
def test_any_cluster_can_be_examined():
    ended = doctor("--kubeconfig", E2E_KUBECONFIG, "--controller", "nodes", "-o", "json")
    assert ended.code in {0, 1}, ended.stderr
    assert ended.finding("api")["level"] in {"ok", "warn"}
    assert ended.finding("identity")["level"] == "ok"
    assert ended.finding("apis.nodes")["level"] == "ok"
    assert (ended.code == 0) is ended.reported["healthy"]


def test_a_management_cluster_of_cluster_api_is_judged_with_its_own_kubeconfig(server: ApiServer, tmp_path: Path):
    """The user there is bob, who may do nothing, while the autoscaled cluster's user may do everything."""
    management = kubeconfig(server, tmp_path, user={"token": "bobs-secret"})
    words = ("--kubeconfig", server.kubeconfig, "--controller", "nodes", "-o", "json")
    ended = doctor(*words, "--cloud-config", management)
    assert ended.code == 1
    assert ended.finding("permissions.nodes")["level"] == "ok"
    assert ended.finding("management.identity")["message"] == "authenticated as bob"
    finding = ended.finding("management.permissions.clusterapi")
    assert finding["level"] == "fail"
    resources = {question["resource"] for question in finding["details"]["missing"]}
    assert resources == {"machinedeployments", "machinesets", "machinepools", "machines"}
    assert ended.finding("management.definitions.clusterapi")["level"] == "fail"


def test_a_management_cluster_that_is_not_checked_is_named(tmp_path: Path):
    options = json.dumps({"cloud-provider": "clusterapi", "cloud-config": "/etc/management.kubeconfig"})
    metadata = {"name": "cluster-autoscaler-status", "annotations": {"plimsoll.io/options": options}}
    with running(tmp_path / "data") as started:
        started.ask("POST", "/api/v1/namespaces/kube-system/configmaps", {"metadata": metadata})
        ended = doctor("--kubeconfig", started.kubeconfig, "--controller", "nodes", "-o", "json")
    finding = ended.finding("management")
    assert (finding["level"], "--cloud-config" in finding["fix"]) == ("unknown", True)
