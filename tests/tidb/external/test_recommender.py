"""T24, the asking half: which answers of an external service are believed. What is done about them is the pass's."""

from __future__ import annotations

import pytest

from plimsoll.objects.api.tidb import SecretReference
from plimsoll.web.client import RequestFailed
from tests.kube.http.authorities import CertificateAuthority
from tests.tidb.external.fake_services import ADDRESS, FakeSecrets, FakeService, advice, asked, problem_with, question

SECRET = SecretReference(name="advice-tls")


def test_t24_the_number_is_what_the_service_says() -> None:
    assert asked(FakeService(advice(5))) == 5


def test_t24_zero_and_less_are_numbers_too() -> None:
    assert asked(FakeService(advice(0))) == 0
    assert asked(FakeService(advice(-1))) == -1


@pytest.mark.parametrize("field", ["name", "namespace", "type"])
def test_t24_an_answer_about_something_else_is_an_error(field: str) -> None:
    assert f"answers about {field} 'other'" in problem_with(FakeService(advice(**{field: "other"})))


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(advice("3"), id="text"),
        pytest.param(advice(1.5), id="half"),
        pytest.param(advice(None), id="null"),
        pytest.param(advice(2**40), id="beyond int32"),
        pytest.param(b'{"name":"db","namespace":"prod","type":"tikv"}', id="no number"),
        pytest.param(b"<html>3</html>", id="html"),
        pytest.param(b'{"name":"db","namespace":"prod","type":"tikv","recommendedReplicas":3,}', id="trailing comma"),
        pytest.param(b"[3]", id="a list"),
        pytest.param(b"[" * 20_000, id="deep"),
        pytest.param(b"\xff\xfe", id="no text"),
    ],
)
def test_what_is_no_advice(body: bytes) -> None:
    assert "cannot be read" in problem_with(FakeService(body))


@pytest.mark.parametrize("status", [204, 301, 302, 404, 500])
def test_only_200_is_an_answer(status: int) -> None:
    assert f"answers {status}" in problem_with(FakeService(advice(), status=status))


def test_an_answer_that_is_too_large_is_none() -> None:
    assert "more than 65536 bytes" in problem_with(FakeService(advice(3, why="x" * 70_000)))


def test_an_answer_after_five_seconds_counts_as_none() -> None:
    assert "within 5 s" in problem_with(FakeService(answers_after_s=5.1))
    assert asked(FakeService(answers_after_s=4.9)) == 3


def test_no_server_there_is_a_failure_not_an_exception() -> None:
    service = FakeService()
    service.answer = RequestFailed(problem="refused")
    assert problem_with(service) == "refused"


# ---- how it is asked


def test_the_question_is_in_the_query() -> None:
    service = FakeService()
    asked(service)
    (place,) = service.called
    assert place.url == "http://advice.prod:8080/advise?name=db&namespace=prod&type=tikv"
    assert place.address == ADDRESS
    assert service.tls == [None]


@pytest.mark.parametrize(
    ("path", "url"),
    [
        ("/a?team=x", "http://advice.prod:8080/a?team=x&name=db&namespace=prod&type=tikv"),
        ("/a#part", "http://advice.prod:8080/a?name=db&namespace=prod&type=tikv"),
        ("/a b\r\nHost: x", "http://advice.prod:8080/a%20b%0D%0AHost:%20x?name=db&namespace=prod&type=tikv"),
    ],
    ids=["with a query", "with a fragment", "with another request in it"],
)
def test_paths_of_users(path: str, url: str) -> None:
    assert question(path=path).url == url


def test_values_are_written_so_that_they_stay_values() -> None:
    assert question(cluster="a&b=c").url.endswith("?name=a%26b%3Dc&namespace=prod&type=tikv")


def test_an_address_of_ipv6_stands_in_brackets() -> None:
    assert question(host="fd00::7").url.startswith("http://[fd00::7]:8080/advise?")


# ---- TLS


def test_a_secret_makes_it_https() -> None:
    authority = CertificateAuthority()
    service = FakeService()
    secrets = FakeSecrets({("prod", "advice-tls"): {"ca.crt": authority.pem}})
    assert asked(service, question(secret=SECRET), secrets=secrets) == 3
    assert service.called[0].url.startswith("https://advice.prod:8080/")
    (context,) = service.tls
    assert context is not None
    assert context.check_hostname
    assert len(context.get_ca_certs()) == 1


def test_the_secret_may_be_of_another_namespace_that_lets_us() -> None:
    secrets = FakeSecrets({("security", "advice-tls"): {"ca.crt": CertificateAuthority().pem}})
    about = question(secret=SecretReference(name="advice-tls", namespace="security"))
    assert asked(FakeService(), about, secrets=secrets) == 3


@pytest.mark.parametrize(
    ("held", "problem"),
    [
        pytest.param(None, "Secret prod/advice-tls cannot be read", id="absent"),
        pytest.param({}, "holds neither ca.crt nor tls.crt", id="empty"),
        pytest.param({"ca.crt": b"junk"}, "holds no certificate authority", id="no certificate"),
        pytest.param({"tls.crt": b"junk", "tls.key": b"s3cret"}, "is not usable PEM", id="no key"),
    ],
)
def test_without_its_secret_no_server_is_called(held: dict[str, bytes] | None, problem: str) -> None:
    service = FakeService()
    secrets = FakeSecrets({("prod", "advice-tls"): held} if held is not None else {})
    reported = problem_with(service, question(secret=SECRET), secrets=secrets)
    assert problem in reported
    assert "s3cret" not in reported
    assert service.called == []
