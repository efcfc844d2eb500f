"""Script plugins that return a token, a certificate, something expired, garbage, or hang: real processes."""

from __future__ import annotations

import asyncio
import os
import shlex
import time
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from plimsoll.kube.configuration.processes import Command, Finished, Killed, RealProcesses
from plimsoll.kube.errors import CredentialsFailed
from tests.e2e.kube_exec_plugins.scripts import PluginFolder, prints
from tests.kube.configuration.kubeconfigs import certificate_and_key


@pytest.fixture
def scripts(tmp_path: Path) -> PluginFolder:
    return PluginFolder(tmp_path)


def in_seconds(seconds: float) -> str:
    return (datetime.now(UTC) + timedelta(seconds=seconds)).isoformat().replace("+00:00", "Z")


def test_a_token(scripts: PluginFolder):
    assert scripts.ask(prints(token="abc")).headers == {"Authorization": "Bearer abc"}


def test_a_certificate(scripts: PluginFolder):
    certificate, key = certificate_and_key()
    found = scripts.ask(prints(clientCertificateData=certificate.decode(), clientKeyData=key.decode()))
    assert (found.certificate_pem, found.key_pem) == (certificate, key)


def test_it_is_run_once_until_its_answer_expires(scripts: PluginFolder):
    async def story() -> None:
        credentials = scripts.credentials(prints(token="abc", expirationTimestamp=in_seconds(3600)))
        await asyncio.gather(*(credentials.get_current() for _ in range(10)))
        first = await credentials.get_current()
        assert scripts.runs == 1
        credentials.invalidate(first)
        await credentials.get_current()
        assert scripts.runs == 2

    asyncio.run(story())


def test_an_expired_answer(scripts: PluginFolder):
    with pytest.raises(CredentialsFailed, match=r"exec plugin .*/plugin.sh: .*the credential expired at"):
        scripts.ask(prints(token="abc", expirationTimestamp=in_seconds(-1)))


def test_garbage(scripts: PluginFolder):
    with pytest.raises(CredentialsFailed, match=r"its answer \(16 bytes\) is not an ExecCredential") as caught:
        scripts.ask("echo my-secret-token")
    assert "secret" not in str(caught.value).replace(str(scripts.folder), "")


def test_more_than_can_be_an_answer(scripts: PluginFolder):
    with pytest.raises(CredentialsFailed, match="it wrote more than 1048576 bytes, and was killed"):
        scripts.ask("cat /dev/zero")


def test_a_hanging_plugin_is_killed_with_everything_it_started(
    scripts: PluginFolder, capsys: pytest.CaptureFixture[str]
):
    started = time.monotonic()
    with pytest.raises(CredentialsFailed, match=r"it did not end within 2 s, and was killed$"):
        scripts.ask("echo hanging >&2", f"sleep 300 & echo $! > {scripts.folder}/child", "wait", timeout_s=2)
    assert time.monotonic() - started < 20
    assert is_gone(int((scripts.folder / "child").read_text()))
    assert capsys.readouterr().err == "hanging\n"


def test_a_plugin_that_is_no_longer_wanted_is_killed(scripts: PluginFolder):
    async def story() -> None:
        made, child = scripts.folder / "made", scripts.folder / "child"
        credentials = scripts.credentials(f"echo $$ > {made}; mv {made} {child}", "sleep 300")
        task = asyncio.create_task(credentials.get_current())
        while not scripts.has("child"):  # noqa: ASYNC110 -- another process writes it, without an event
            await asyncio.sleep(0.01)
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task

    asyncio.run(story())
    assert is_gone(int((scripts.folder / "child").read_text()))


@pytest.mark.parametrize("rounds", range(1, 7))
def test_a_process_that_is_given_up_while_it_starts_is_ended_with_everything_it_started(tmp_path: Path, rounds: int):
    script = f"sleep 300 & echo $! > {tmp_path}/made; mv {tmp_path}/made {tmp_path}/child; wait"

    async def story() -> None:
        command = Command(argv=["sh", "-c", script], environment=os.environ)
        task = asyncio.create_task(RealProcesses().run(command))
        for _ in range(rounds):
            await asyncio.sleep(0)
        while rounds > 1 and not (tmp_path / "child").exists():
            time.sleep(0.01)  # noqa: ASYNC251 -- the loop must not hear of the process yet
        task.cancel()
        await asyncio.wait((task,), timeout=60)
        assert task.cancelled()

    asyncio.run(story())
    assert not (tmp_path / "child").exists() or is_gone(int((tmp_path / "child").read_text()))


def is_gone(pid: int) -> bool:
    """Ended, if not yet waited for by whoever inherited it."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except (FileNotFoundError, ProcessLookupError):
            return True
        if state in {"Z", "X"}:
            return True
        time.sleep(0.02)
    return False


def test_a_plugin_may_leave_a_daemon_behind_that_holds_its_output(scripts: PluginFolder):
    found = scripts.ask(f"sleep 300 & echo $! > {scripts.folder}/child", prints(token="abc"))
    child = int((scripts.folder / "child").read_text())
    assert found.headers == {"Authorization": "Bearer abc"}
    os.kill(child, 9)  # and it was left alive


def test_failure_with_its_complaint_which_is_shown_once_and_the_hint(
    scripts: PluginFolder, capsys: pytest.CaptureFixture[str]
):
    with pytest.raises(CredentialsFailed) as caught:
        scripts.ask("echo abc; echo please log in >&2; exit 3", installHint="see the wiki")
    assert caught.value.problem.endswith('/plugin.sh: failed with exit code 3: "please log in"\nsee the wiki')
    assert capsys.readouterr().err == ""


def test_what_a_plugin_says_beside_a_good_answer_is_passed_on(
    scripts: PluginFolder, capsys: pytest.CaptureFixture[str]
):
    scripts.ask("echo by the way >&2", prints(token="abc"))
    assert capsys.readouterr().err == "by the way\n"


def test_what_a_plugin_says_is_passed_on_while_it_waits_for_a_person(
    scripts: PluginFolder, capsys: pytest.CaptureFixture[str]
):
    with pytest.raises(CredentialsFailed, match=r"failed with exit code 3$"):
        scripts.ask("echo go there >&2; sleep 4; exit 3")
    assert capsys.readouterr().err == "go there\n"


def test_a_plugin_that_is_not_there(scripts: PluginFolder):
    with pytest.raises(CredentialsFailed, match=r"exec plugin no-such-plugin: executable not found\nsee the wiki"):
        scripts.ask(command="no-such-plugin", installHint="see the wiki")


def test_a_plugin_that_may_not_be_run(scripts: PluginFolder):
    with pytest.raises(CredentialsFailed, match=r"plugin\.sh: cannot be started: Permission denied"):
        scripts.ask(mode=0o644)


def test_it_gets_its_own_cluster_and_version_and_has_no_stdin(scripts: PluginFolder):
    scripts.ask(
        f'printf %s "$KUBERNETES_EXEC_INFO|$SETTING|$1|$(cat)" > {shlex.quote(str(scripts.folder / "told"))}',
        prints(token="abc"),
        args=["an argument"],
        env=[{"name": "SETTING", "value": "x"}],
    )
    assert (scripts.folder / "told").read_text() == (
        '{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1","spec":{"interactive":false}}'
        "|x|an argument|"
    )


def test_an_interactive_process_has_our_stdin_and_stderr(capfd: pytest.CaptureFixture[str]):
    async def story() -> object:
        command = Command(
            argv=["sh", "-c", "echo to you >&2; readlink /proc/self/fd/0"],
            environment=os.environ,
            is_interactive=True,
            timeout_s=30,
        )
        return await RealProcesses().run(command)

    outcome = asyncio.run(story())
    assert isinstance(outcome, Finished)
    assert outcome.stdout.decode().strip() == str(Path("/proc/self/fd/0").readlink())
    assert (outcome.stderr, capfd.readouterr().err) == (b"", "to you\n")


def test_an_interactive_process_that_takes_too_long_is_killed():
    command = Command(argv=["sleep", "300"], environment=os.environ, is_interactive=True, timeout_s=0.2)
    outcome = asyncio.run(RealProcesses().run(command))
    assert outcome == Killed(reason="it did not end within 0.2 s")
