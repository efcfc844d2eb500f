from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plimsoll.core.errors import InvalidInput
from plimsoll.local.apiserver.auth_types import User
from plimsoll.local.apiserver.authentication import BoundObject, read_token_file
from plimsoll.local.apiserver.authentication.bearer import Unauthenticated
from plimsoll.local.apiserver.http_types import Request
from plimsoll.local.apiserver.status_errors import StatusError
from tests.local.apiserver.authentication.builders import ADMIN_TOKEN, AUDIENCE, AuthenticatorHarness
from tests.narrowing import instance_of


def refusal(door: AuthenticatorHarness, token: str) -> str:
    """The message of the refusal."""
    return instance_of(Unauthenticated, door.authenticator.authenticate_token(token)).message


def refused(door: AuthenticatorHarness, token: str) -> bool:
    try:
        door.enter(token)
    except StatusError as refusal:
        return refusal.code == 401
    return False


def test_without_a_token_one_is_anonymous():
    user = AuthenticatorHarness().enter()
    assert (user.name, user.groups) == ("system:anonymous", ("system:unauthenticated",))


def test_the_admin_token_is_a_member_of_masters():
    user = AuthenticatorHarness().enter(ADMIN_TOKEN)
    assert (user.name, user.groups) == ("admin", ("system:masters", "system:authenticated"))


@pytest.mark.parametrize("token", ["wrong", ADMIN_TOKEN + "x", ADMIN_TOKEN[:-1], "a.b.c", "..", ".", "\ud800", "é"])
def test_an_unknown_token_is_refused(token: str):
    with pytest.raises(StatusError) as caught:
        AuthenticatorHarness().enter(token)
    assert caught.value.status["message"] == "Unauthorized"
    assert caught.value.code == 401


@pytest.mark.parametrize(
    ("header", "name"),
    [
        ("", "system:anonymous"),
        ("   ", "system:anonymous"),
        ("Bearer", "system:anonymous"),
        ("Bearer ", "system:anonymous"),
        ("Basic YWRtaW46YWRtaW4=", "system:anonymous"),
        (f"bearer {ADMIN_TOKEN}", "admin"),
        (f"  BEARER {ADMIN_TOKEN} trailing", "admin"),
        (f"Bearer  {ADMIN_TOKEN}", "system:anonymous"),
    ],
)
def test_the_header_is_read_as_kubernetes_reads_it(header: str, name: str):
    assert AuthenticatorHarness().enter(authorization=header).name == name


def test_a_service_account_token_gives_its_account_and_groups():
    door = AuthenticatorHarness()
    user = door.enter(door.token())
    assert user.name == "system:serviceaccount:auth:sa"
    assert user.uid == "uid-1"
    assert user.groups == ("system:serviceaccounts", "system:serviceaccounts:auth", "system:authenticated")
    (credential,) = user.extra["authentication.kubernetes.io/credential-id"]
    assert credential.startswith("JTI=")


def test_a_token_ends_when_it_says():
    door = AuthenticatorHarness()
    token = door.token(expires_in_s=600)
    door.clock.turn(599)
    assert door.enter(token).name == "system:serviceaccount:auth:sa"
    door.clock.turn(1)
    assert refused(door, token)
    assert refusal(door, token) == "[invalid bearer token, service account token has expired]"


def test_a_token_does_not_count_before_it_was_issued():
    door = AuthenticatorHarness()
    token = door.token()
    door.clock.turn(-1)
    assert refusal(door, token) == "[invalid bearer token, service account token is not valid yet]"


def test_a_token_of_a_deleted_account_is_refused():
    door = AuthenticatorHarness()
    token = door.token()
    door.accounts.objects.clear()
    assert refused(door, token)
    assert refusal(door, token) == '[invalid bearer token, serviceaccounts "sa" not found]'


def test_a_token_of_an_account_that_was_made_anew_is_refused():
    door = AuthenticatorHarness()
    token = door.token()
    door.accounts.add("ServiceAccount", "auth", "sa", uid="uid-2")
    message = "[invalid bearer token, service account UID (uid-2) does not match claim (uid-1)]"
    assert refusal(door, token) == message


def test_a_token_for_another_audience_is_refused():
    door = AuthenticatorHarness()
    assert refused(door, door.token(audiences=["vault"]))
    assert door.enter(door.token(audiences=["vault", AUDIENCE])).uid == "uid-1"


def test_another_key_signs_nothing_we_read():
    other = AuthenticatorHarness()
    other.tokens._key = b"another key of at least 32 bytes!"
    assert refused(AuthenticatorHarness(), other.token())


def test_the_signing_key_must_be_long():
    with pytest.raises(ValueError, match="at least 32 bytes"):
        type(AuthenticatorHarness().tokens)(b"short", entropy=None)  # type: ignore[arg-type]


def test_a_token_bound_to_a_pod_lives_as_long_as_the_pod():
    door = AuthenticatorHarness()
    door.accounts.add("Pod", "auth", "p", uid="pod-uid")
    token = door.token(bound_to=[BoundObject(kind="Pod", name="p", uid="pod-uid")])
    user = door.enter(token)
    assert user.extra["authentication.kubernetes.io/pod-name"] == ("p",)
    assert user.extra["authentication.kubernetes.io/pod-uid"] == ("pod-uid",)
    door.accounts.add("Pod", "auth", "p", uid="pod-uid", deletionTimestamp="2026-11-15T04:00:00Z")
    assert refused(door, token)
    door.accounts.add("Pod", "auth", "p", uid="another")
    assert refused(door, token)
    del door.accounts.objects["Pod", "auth", "p"]
    assert refused(door, token)


@given(st.data())
@settings(max_examples=150)
def test_a_token_with_any_bit_flipped_is_refused(data: st.DataObject):
    door = AuthenticatorHarness()
    token = bytearray(door.token(), "ascii")
    place = data.draw(st.integers(0, len(token) - 1))
    token[place] ^= 1 << data.draw(st.integers(0, 7))
    assert refused(door, token.decode("latin-1"))


def test_every_spelling_of_the_signatures_last_letter_but_one_is_refused():
    door = AuthenticatorHarness()
    token = door.token()
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    accepted = [letter for letter in letters if not refused(door, token[:-1] + letter)]
    assert accepted == [token[-1]]


@given(st.dictionaries(st.sampled_from(["authorization", "impersonate-user", "impersonate-extra-a"]), st.text()))
@settings(max_examples=150)
def test_hostile_headers_are_answered_never_raised(headers: dict[str, str]):
    try:
        AuthenticatorHarness().authenticator.authenticate(Request(method="GET", path="/", headers=headers))
    except StatusError as refusal:
        assert refusal.code in {400, 401, 403}  # noqa: PT017 - a user is as good an answer


def test_no_token_shows_in_a_repr():
    door = AuthenticatorHarness({"secret-token": User(name="bob")})
    token = door.token()
    shown = repr([door.authenticator, vars(door.authenticator), door.tokens, door.tokens.read(token)])
    assert ADMIN_TOKEN not in shown
    assert "secret-token" not in shown
    assert token.rpartition(".")[2] not in shown


def test_the_same_claims_make_the_same_token():
    assert AuthenticatorHarness().token() == AuthenticatorHarness().token()


class TestTokenFiles:
    def test_users_uids_and_groups_are_read(self):
        users = read_token_file('t1,bob,u1,"dev,ops"\nt2,eve,u2\n\nt3,mia,u3,single\n,nobody,u4\n')
        assert users == {
            "t1": User(name="bob", uid="u1", groups=("dev", "ops")),
            "t2": User(name="eve", uid="u2"),
            "t3": User(name="mia", uid="u3", groups=("single",)),
        }

    def test_their_users_are_authenticated(self):
        door = AuthenticatorHarness(read_token_file('t1,bob,u1,"dev,ops"'))
        assert door.enter("t1").groups == ("dev", "ops", "system:authenticated")

    def test_a_later_line_wins(self):
        assert read_token_file("t,bob,1\nt,eve,2\n")["t"].name == "eve"

    @pytest.mark.parametrize("text", ["good,u,1\nsecret,u\n", 'good,u,1\nsecret,"u\n'])
    def test_a_bad_line_is_named_without_its_content(self, text: str):
        with pytest.raises(InvalidInput, match="line") as caught:
            read_token_file(text, path="tokens.csv")
        assert "secret" not in str(caught.value)
        assert str(caught.value).startswith("tokens.csv: line 2")
