"""Exec plugins, with a process runner that only pretends: their input, their answers, and how long an answer counts."""

from __future__ import annotations

import asyncio
import json
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from plimsoll.kube.access import SlowCredentials
from plimsoll.kube.configuration.processes import Finished, Killed, NotStarted
from plimsoll.kube.errors import CredentialsFailed, CredentialsLate
from plimsoll.runtime.virtual_run import DEFAULT_START
from plimsoll.testing import run_virtual
from tests.kube.configuration.kubeconfigs import (
    SERVER,
    V1,
    V1BETA1,
    ClientEnvironment,
    FakeProcesses,
    answer,
    b64,
    certificate_and_key,
    config,
    plugin,
)

if TYPE_CHECKING:
    from pathlib import Path

    from plimsoll.kube.configuration.processes import Command, Outcome
    from plimsoll.runtime.clocks import VirtualClock
    from tests.golden.reviewed_sentences import ReviewedSentences

CERTIFICATE, KEY = (pem.decode() for pem in certificate_and_key())


def stamp(seconds: float) -> str:
    """So many seconds after the start of virtual time."""
    return (DEFAULT_START + timedelta(seconds=seconds)).isoformat().replace("+00:00", "Z")


def reported(machine: ClientEnvironment) -> dict[str, Any]:
    """What the last run found in KUBERNETES_EXEC_INFO."""
    info: dict[str, Any] = json.loads(machine.runner.commands[-1].environment["KUBERNETES_EXEC_INFO"])
    return info


def run(machine: ClientEnvironment, *, cluster: dict[str, Any] | None = None, **fields: Any):
    return run_virtual(machine.access(config(user=plugin(**fields), cluster=cluster)).credentials.get_current())


class TestWhatIsRun:
    def test_command_arguments_and_environment(self, machine: ClientEnvironment):
        run(machine, args=["get", "token"], env=[{"name": "PATH", "value": "/plugins"}, {"name": "A", "value": ""}])
        command = machine.runner.commands[0]
        assert command.argv == ("login", "get", "token")
        assert command.timeout_s == 60
        environment = dict(command.environment)
        del environment["KUBERNETES_EXEC_INFO"]
        assert environment == {**machine.environment, "PATH": "/plugins", "A": ""}

    @pytest.mark.parametrize(
        ("written", "run_as"), [("login", "login"), ("./login", "{}/login"), ("/bin/login", "/bin/login")]
    )
    def test_a_command_with_a_slash_is_found_beside_the_file(
        self, machine: ClientEnvironment, written: str, run_as: str
    ):
        run(machine, command=written)
        assert machine.runner.commands[0].argv == (run_as.format(machine.folder),)

    @pytest.mark.parametrize("version", [V1, V1BETA1])
    def test_the_version_asked_for_is_the_one_configured(self, machine: ClientEnvironment, version: str):
        machine.runner.play = lambda _: Finished(exit_code=0, stdout=answer(api_version=version, token="t"))
        run(machine, apiVersion=version)
        assert reported(machine) == {"kind": "ExecCredential", "apiVersion": version, "spec": {"interactive": False}}

    def test_the_cluster_is_reported_when_asked_for(self, machine: ClientEnvironment):
        ca, _ = certificate_and_key("ca")
        machine.write("ca.crt", ca)
        cluster = {
            "certificate-authority": "ca.crt",
            "tls-server-name": "kube",
            "proxy-url": "http://proxy:3128",
            "extensions": [
                {"name": "other", "extension": 1},
                {"name": "client.authentication.k8s.io/exec", "extension": {"audience": "x", "list": [1]}},
            ],
        }
        run(machine, cluster=cluster, provideClusterInfo=True)
        assert reported(machine)["spec"]["cluster"] == {
            "server": SERVER,
            "tls-server-name": "kube",
            "certificate-authority-data": b64(ca),
            "proxy-url": "http://proxy:3128",
            "config": {"audience": "x", "list": [1]},
        }

    def test_an_unverified_cluster_is_reported_as_such(self, machine: ClientEnvironment):
        run(machine, cluster={"insecure-skip-tls-verify": True}, provideClusterInfo=True)
        assert reported(machine)["spec"]["cluster"] == {"server": SERVER, "insecure-skip-tls-verify": True}


class TestInteractiveMode:
    @pytest.mark.parametrize(
        ("mode", "is_terminal", "is_interactive"),
        [
            ("Never", True, False),
            ("IfAvailable", True, True),
            ("IfAvailable", False, False),
            ("Always", True, True),
        ],
    )
    def test_the_interactive_mode_decides_whether_a_plugin_gets_the_terminal(
        self, machine: ClientEnvironment, mode: str, is_terminal: bool, is_interactive: bool
    ):
        machine.is_terminal = is_terminal
        run(machine, interactiveMode=mode)
        assert machine.runner.commands[0].is_interactive is is_interactive
        assert reported(machine)["spec"]["interactive"] is is_interactive

    def test_always_without_a_terminal_is_an_error(self, machine: ClientEnvironment, reviewed: ReviewedSentences):
        with pytest.raises(CredentialsFailed) as raised:
            run(machine, interactiveMode="Always")
        reviewed(str(raised.value))
        assert machine.runner.commands == []

    def test_v1beta1_takes_a_terminal_if_there_is_one(self, machine: ClientEnvironment):
        machine.is_terminal = True
        machine.runner.play = lambda _: Finished(exit_code=0, stdout=answer(api_version=V1BETA1, token="t"))
        run(machine, apiVersion=V1BETA1, interactiveMode=None)
        assert machine.runner.commands[0].is_interactive

    def test_a_person_is_given_more_time(self, machine: ClientEnvironment):
        machine.is_terminal = True
        run(machine, interactiveMode="Always")
        assert machine.runner.commands[0].timeout_s == 300


class TestAnswers:
    def test_a_token(self, machine: ClientEnvironment):
        assert run(machine).headers == {"Authorization": "Bearer plugin-token"}

    def test_a_certificate(self, machine: ClientEnvironment):
        found = answer(clientCertificateData=CERTIFICATE, clientKeyData=KEY)
        machine.runner.play = lambda _: Finished(exit_code=0, stdout=found)
        credential = run(machine)
        assert (credential.certificate_pem, credential.key_pem) == (CERTIFICATE.encode(), KEY.encode())
        assert credential.headers == {}

    @pytest.mark.parametrize(
        ("stdout", "problem"),
        [
            (b"", "its answer is empty"),
            (b"secret", "its answer (6 bytes) is not an ExecCredential in JSON"),
            (b'{"secret', "is not an ExecCredential in JSON"),
            (b"\xff\xfe", "is not an ExecCredential in JSON"),
            (b'["secret"]', "is not an ExecCredential in JSON"),
            (b'{"kind": "secret"}', 'its answer: kind: must be "ExecCredential"'),
            (answer(api_version=V1BETA1, token="secret"), f"must be {V1}, as the configuration says, and is {V1BETA1}"),
            (answer(api_version="secret"), f"apiVersion: must be {V1}, as the configuration says"),
            (json.dumps({"apiVersion": V1, "kind": "ExecCredential"}).encode(), "its answer: status: is not there"),
            (answer(), "its answer: status: holds neither a token nor a client certificate"),
            (answer(token=7), "status.token: must be text, and is a number"),
            (answer(token="secret\n"), "status.token: holds characters that no HTTP header can hold"),
            (
                answer(clientCertificateData=CERTIFICATE),
                "status.clientKeyData: is not there, but clientCertificateData",
            ),
            (answer(clientKeyData=KEY), "status.clientCertificateData: is not there, but clientKeyData"),
            (answer(clientCertificateData="secret", clientKeyData=KEY), "clientCertificateData: holds no certificate"),
            (
                answer(clientCertificateData=CERTIFICATE, clientKeyData=certificate_and_key()[1].decode()),
                "status.clientKeyData: does not belong to the certificate",
            ),
            (answer(token="secret", expirationTimestamp="soon"), "expirationTimestamp: is not a time like"),
            (
                answer(token="secret", expirationTimestamp="2024-01-01T00:00:00"),
                "expirationTimestamp: is not a time like",
            ),
            (
                answer(token="secret", expirationTimestamp=stamp(-60)),
                "the credential expired at 2024-12-31T23:59:00Z, and it is 2025-01-01T00:00:00Z now",
            ),
        ],
    )
    def test_an_answer_that_cannot_be_used_is_reported_and_not_quoted(
        self, tmp_path: Path, stdout: bytes, problem: str
    ):
        async def story(clock: VirtualClock) -> None:
            machine = ClientEnvironment(tmp_path, clock=clock)
            machine.runner.play = lambda _: Finished(exit_code=0, stdout=stdout)
            await machine.credential(plugin())

        with pytest.raises(CredentialsFailed) as caught:
            run_virtual(story)
        assert problem in str(caught.value)
        assert caught.value.path == f"{tmp_path}/config.yaml: users[0].user.exec"
        assert caught.value.problem.startswith("exec plugin login: ")
        assert "secret" not in str(caught.value)
        assert KEY not in str(caught.value)


class TestFailures:
    @pytest.mark.parametrize(
        ("outcome", "problem"),
        [
            (NotStarted(reason="No such file", is_missing=True), "login: executable not found\nget it from the shop"),
            (NotStarted(reason="Permission denied"), "login: cannot be started: Permission denied\nget it"),
            (Finished(exit_code=3, stdout=b"secret", stderr=b""), "login: failed with exit code 3\nget it"),
            (Finished(exit_code=1, stderr=b"no \x1b[31m login\n"), 'failed with exit code 1: "no ?[31m login"\nget it'),
            (Finished(exit_code=-9, stderr=b""), "failed with signal 9"),
            (Killed(reason="it did not end within 60 s"), "it did not end within 60 s, and was killed"),
        ],
    )
    def test_are_named(self, machine: ClientEnvironment, outcome: Outcome, problem: str):
        machine.runner.play = lambda _: outcome
        with pytest.raises(CredentialsFailed) as caught:
            run(machine, installHint="get it from\x1b the shop".replace("\x1b", ""))
        assert problem in str(caught.value)
        assert "secret" not in str(caught.value)

    def test_a_long_complaint_is_cut(self, machine: ClientEnvironment):
        machine.runner.play = lambda _: Finished(exit_code=1, stderr=b"x" * 2000 + b" the end")
        with pytest.raises(CredentialsFailed) as caught:
            run(machine)
        assert len(str(caught.value)) < 700
        assert str(caught.value).endswith(' the end"')

    def test_a_hint_cannot_command_the_terminal(self, machine: ClientEnvironment):
        machine.runner.play = lambda _: NotStarted(reason="", is_missing=True)
        with pytest.raises(CredentialsFailed) as caught:
            run(machine, installHint="\x1b[2Jsee\nhere")
        assert "\x1b" not in str(caught.value)
        assert "see\nhere" in str(caught.value)


class TestKeeping:
    """Virtual time; each run takes a second and gives another token."""

    @staticmethod
    def plugin_machine(folder: Path, clock: VirtualClock, *, lives_s: float | None = 600) -> ClientEnvironment:
        runner = FakeProcesses(clock=clock, takes_s=1)

        def play(_: Command) -> Outcome:
            ends = {} if lives_s is None else {"expirationTimestamp": stamp(clock.monotonic_s() + lives_s)}
            return Finished(exit_code=0, stdout=answer(token=f"t{len(runner.commands)}", **ends))

        runner.play = play
        return ClientEnvironment(folder, clock=clock, runner=runner)

    def test_an_answer_is_kept_until_it_expires(self, tmp_path: Path):
        async def story(clock: VirtualClock) -> None:
            machine = self.plugin_machine(tmp_path, clock)
            credentials = machine.access(config(user=plugin())).credentials
            first = await credentials.get_current()
            await clock.sleep(599)
            assert await credentials.get_current() is first
            await clock.sleep(1)
            assert (await credentials.get_current()).headers == {"Authorization": "Bearer t2"}
            assert len(machine.runner.commands) == 2

        run_virtual(story)

    def test_an_answer_without_an_end_is_kept(self, tmp_path: Path):
        async def story(clock: VirtualClock) -> None:
            machine = self.plugin_machine(tmp_path, clock, lives_s=None)
            credentials = machine.access(config(user=plugin())).credentials
            first = await credentials.get_current()
            await clock.sleep(1e6)
            assert await credentials.get_current() is first

        run_virtual(story)

    def test_callers_at_the_same_time_share_one_run(self, tmp_path: Path):
        async def story(clock: VirtualClock) -> None:
            machine = self.plugin_machine(tmp_path, clock)
            credentials = machine.access(config(user=plugin())).credentials
            found = await asyncio.gather(*(credentials.get_current() for _ in range(20)))
            assert {credential.headers["Authorization"] for credential in found} == {"Bearer t1"}
            assert len(machine.runner.commands) == 1

        run_virtual(story)

    def test_credentials_serve_several_event_loops(self, tmp_path: Path):
        """As with the thread that renews a lease: it has a loop of its own, and the same access."""
        made: list[Any] = []

        async def story(clock: VirtualClock) -> None:
            if not made:
                made.append(self.plugin_machine(tmp_path, clock).access(config(user=plugin())).credentials)
            credentials = made[0]
            credentials.invalidate(await credentials.get_current())
            await asyncio.gather(*(credentials.get_current() for _ in range(3)))

        run_virtual(story)
        run_virtual(story)

    def test_callers_at_the_same_time_share_a_failure_and_the_next_one_tries_again(self, tmp_path: Path):
        async def story(clock: VirtualClock) -> None:
            machine = self.plugin_machine(tmp_path, clock)
            good, machine.runner.play = machine.runner.play, lambda _: Killed(reason="it did not end within 60 s")
            credentials = machine.access(config(user=plugin())).credentials
            found = await asyncio.gather(*(credentials.get_current() for _ in range(20)), return_exceptions=True)
            assert all(isinstance(result, CredentialsFailed) for result in found)
            assert (len(machine.runner.commands), clock.monotonic_s()) == (1, 1.0)
            machine.runner.play = good
            assert (await credentials.get_current()).headers == {"Authorization": "Bearer t2"}

        run_virtual(story)

    def test_a_caller_that_gives_up_leaves_the_run_to_the_next(self, tmp_path: Path):
        async def story(clock: VirtualClock) -> None:
            machine = self.plugin_machine(tmp_path, clock)
            credentials = machine.access(config(user=plugin())).credentials
            async with asyncio.TaskGroup() as group:
                gone = group.create_task(credentials.get_current())
                waiting = group.create_task(credentials.get_current())
                await clock.sleep(0.5)
                gone.cancel()
            assert waiting.result().headers == {"Authorization": "Bearer t2"}

        run_virtual(story)

    @pytest.mark.parametrize("more", [{}, {"as": "ada"}], ids=["alone", "together"])
    def test_a_request_that_times_out_names_the_plugin_and_how_long_it_has_run(
        self, tmp_path: Path, more: dict[str, str]
    ):
        async def story(clock: VirtualClock) -> None:
            machine = self.plugin_machine(tmp_path, clock)
            machine.runner.takes_s = 30
            credentials = machine.access(config(user={**plugin(), **more})).credentials
            assert isinstance(credentials, SlowCredentials)
            assert credentials.find_late_credentials() is None
            async with asyncio.TaskGroup() as group:
                group.create_task(credentials.get_current())
                await clock.sleep(2.5)
                late = credentials.find_late_credentials()
            assert isinstance(late, CredentialsLate)
            assert late.path == f"{tmp_path}/config.yaml: users[0].user.exec"
            assert late.problem == "exec plugin login: has run for 2.5 s without an answer (it may take 60 s)"
            assert credentials.find_late_credentials() is None

        run_virtual(story)

    def test_many_refusals_of_one_credential_are_one_new_run(self, tmp_path: Path):
        async def story(clock: VirtualClock) -> None:
            machine = self.plugin_machine(tmp_path, clock)
            credentials = machine.access(config(user=plugin())).credentials

            async def refuse_and_ask_again() -> str:
                old = await credentials.get_current()
                await clock.sleep(5)
                credentials.invalidate(old)
                return (await credentials.get_current()).headers["Authorization"]

            assert set(await asyncio.gather(*(refuse_and_ask_again() for _ in range(20)))) == {"Bearer t2"}
            assert len(machine.runner.commands) == 2

        run_virtual(story)

    def test_a_refusal_of_an_older_credential_changes_nothing(self, tmp_path: Path):
        async def story(clock: VirtualClock) -> None:
            machine = self.plugin_machine(tmp_path, clock)
            credentials = machine.access(config(user=plugin())).credentials
            old = await credentials.get_current()
            credentials.invalidate(old)
            new = await credentials.get_current()
            credentials.invalidate(old)
            assert await credentials.get_current() is new

        run_virtual(story)

    def test_a_refusal_is_understood_when_other_credentials_went_with_it(self, tmp_path: Path):
        async def story(clock: VirtualClock) -> None:
            machine = self.plugin_machine(tmp_path, clock)
            certificate = {"client-certificate-data": b64(CERTIFICATE), "client-key-data": b64(KEY)}
            credentials = machine.access(config(user={**plugin(), **certificate, "as": "ada"})).credentials
            old = await credentials.get_current()
            assert old.headers == {"Authorization": "Bearer t1", "Impersonate-User": "ada"}
            assert old.certificate_pem == CERTIFICATE.encode()
            assert await credentials.get_current() is old
            credentials.invalidate(old)
            assert (await credentials.get_current()).headers["Authorization"] == "Bearer t2"

        run_virtual(story)
