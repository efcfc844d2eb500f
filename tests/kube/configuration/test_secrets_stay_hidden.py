"""No secret shows when anything of the configuration is printed, logged or put into an error."""

from __future__ import annotations

import dataclasses
import gc
from typing import TYPE_CHECKING, Any

import pytest
from structlog.testing import capture_logs

from plimsoll.core.errors import InvalidInput
from plimsoll.kube.access import Credential
from plimsoll.kube.configuration.processes import Command, Finished, Killed
from plimsoll.testing import run_virtual
from tests.kube.configuration.kubeconfigs import ClientEnvironment, answer, b64, certificate_and_key, config, plugin

if TYPE_CHECKING:
    from pathlib import Path

SECRET = "hush-hush"
CERTIFICATE, KEY = certificate_and_key()
PAIR = {"client-certificate-data": b64(CERTIFICATE), "client-key-data": b64(KEY)}
KEY_LINE = KEY.splitlines()[2].decode()

USERS: dict[str, dict[str, Any]] = {
    "token": {"token": SECRET},
    "tokenFile": {"tokenFile": "token"},
    "password": {"username": "ada", "password": SECRET},
    "certificate": PAIR,
    "together": {"token": SECRET, **PAIR, "as": "ada"},
    "plugin": plugin(args=[SECRET], env=[{"name": "P", "value": SECRET}], provideClusterInfo=True),
}


def shown(value: object, *, depth: int = 6) -> str:
    """Everything that printing the value, or anything our own types hold inside it, would show."""
    texts = [repr(value), str(value)]
    if depth and type(value).__module__.startswith("plimsoll.kube"):
        texts += [shown(inner, depth=depth - 1) for inner in gc.get_referents(value) if is_ours(inner)]
    return "\n".join(texts)


def is_ours(value: object) -> bool:
    return type(value).__module__.startswith("plimsoll.kube") and not isinstance(value, type)


@pytest.mark.parametrize("kind", USERS)
def test_access_and_credentials(tmp_path: Path, kind: str):
    machine = ClientEnvironment(tmp_path)
    machine.write("token", SECRET.encode())
    machine.runner.play = lambda _: Finished(exit_code=0, stdout=answer(token=SECRET), stderr=SECRET.encode())
    cluster = {"proxy-url": f"http://u:{SECRET}@proxy"}
    with capture_logs() as logs:
        access = machine.access(config(user=USERS[kind], cluster=cluster))
        credential = run_virtual(access.credentials.get_current())
        access.credentials.invalidate(credential)
    assert credential != Credential()
    printed = shown(access) + shown(credential) + shown(access.credentials) + repr(logs) + repr(machine.runner.commands)
    for secret in (SECRET, b64(f"ada:{SECRET}"), KEY_LINE, b64(KEY)[40:80]):
        assert secret not in printed


def test_outcomes_of_processes():
    values = [
        Command(argv=["login", SECRET], environment={"P": SECRET}),
        Finished(exit_code=0, stdout=SECRET.encode(), stderr=SECRET.encode()),
        Killed(reason="late", stderr=SECRET.encode()),
    ]
    assert SECRET not in repr(values) + "".join(map(str, values))


@pytest.mark.parametrize(
    "user",
    [
        {"token": f"{SECRET}\n"},
        {"token": [SECRET]},
        {"username": {SECRET: SECRET}},
        {"client-key-data": f"%{SECRET}", "client-certificate-data": b64(CERTIFICATE)},
        {"client-key-data": b64(SECRET), "client-certificate-data": b64(CERTIFICATE)},
        {"as": f"{SECRET}\n"},
        plugin(args=[SECRET, 1]),
        plugin(env=[{"name": "=", "value": SECRET}]),
    ],
)
def test_errors_and_what_they_were_raised_from(machine: ClientEnvironment, user: dict[str, Any]):
    with pytest.raises(InvalidInput) as caught:
        machine.access(config(user=user))
    error: BaseException | None = caught.value
    while error is not None:
        assert SECRET not in str(error) + repr(error)
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)


def test_every_secret_field_of_a_credential_is_left_out_of_its_repr():
    printed = {field.name for field in dataclasses.fields(Credential) if field.repr}
    assert printed == {"expires_at"}
