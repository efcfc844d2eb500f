"""What becomes of a reply that says no: the right kind of error, the server's own words, how long to wait."""

from __future__ import annotations

from datetime import UTC, datetime

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plimsoll.kube import errors
from plimsoll.kube.requests.status_errors import build_api_error, read_status_error
from plimsoll.kube.transport import Request, Response
from tests.kube.embedded_api import json_reply, status_reply

NOW = datetime(2026, 1, 1, tzinfo=UTC)
CALL = Request("GET", "/api/v1/nodes")


def read(reply: Response) -> errors.ApiError:
    return build_api_error(reply, CALL, now=NOW)


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (400, errors.BadRequest),
        (401, errors.Unauthorized),
        (403, errors.Forbidden),
        (404, errors.NotFound),
        (405, errors.MethodNotAllowed),
        (409, errors.Conflict),
        (410, errors.Expired),
        (413, errors.TooLarge),
        (415, errors.Unsupported),
        (418, errors.ApiError),
        (422, errors.Invalid),
        (429, errors.TooManyRequests),
        (500, errors.ServerFailed),
        (504, errors.ServerFailed),
    ],
)
def test_the_code_gives_the_kind_and_the_message_stays_as_it_is(code: int, kind: type[errors.ApiError]):
    error = read(status_reply(code, 'pods "x"  said\nno'))
    assert (type(error), str(error), error.status.code) == (kind, 'pods "x"  said\nno', code)


def test_a_name_that_is_taken_is_a_conflict_of_its_own():
    assert type(read(status_reply(409, reason="AlreadyExists"))) is errors.AlreadyExists


def test_causes_are_kept():
    details = {"causes": [{"reason": "FieldValueRequired", "message": "Required value", "field": "spec.x"}]}
    (cause,) = read(status_reply(422, details=details)).causes
    assert (cause.reason, cause.message, cause.field) == ("FieldValueRequired", "Required value", "spec.x")


def test_the_code_of_the_exchange_counts_more_than_that_of_the_body():
    body = msgspec.json.encode({"kind": "Status", "code": 409, "message": "m"})
    assert type(read(Response(503, body=body))) is errors.ServerFailed


def test_nulls_in_a_status_do_not_cost_its_message():
    error = read(json_reply({"kind": "Status", "message": "m", "reason": None, "details": None}, status=403))
    assert (str(error), error.reason) == ("m", "")


def test_unreadable_details_do_not_cost_the_message():
    assert str(read(json_reply({"kind": "Status", "message": "m", "details": ["odd"]}, status=403))) == "m"


def test_plain_text_is_the_message():
    error = read(Response(404, headers={"content-type": "text/plain"}, body=b"404 page not found\n"))
    assert (type(error), str(error), error.reason) == (errors.NotFound, "404 page not found", "NotFound")


def test_of_a_page_of_html_only_the_title_is_reported():
    page = b"<html><head><title>502 Bad&nbsp;Gateway</title></head><body>" + b"<p>nginx</p>" * 1_000
    error = read(Response(502, headers={"content-type": "text/html"}, body=page))
    assert str(error) == "the server answered 502 with a page of HTML, as proxies do: 502 Bad\xa0Gateway"


def test_an_empty_answer_is_named_by_its_call():
    assert str(read(Response(503))) == "the server answered 503 to GET /api/v1/nodes, without a word"


def test_a_long_text_is_cut():
    assert len(str(read(Response(500, body=b"x" * 1_000_000)))) < 600


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("7", 7.0),
        (" 0 ", 0.0),
        ("Thu, 01 Jan 2026 00:02:00 GMT", 120.0),
        ("Thu, 01 Jan 1970 00:00:00 GMT", 0.0),
        ("-1", None),
        ("soon", None),
        ("1e9", None),
        ("99999999999999999999", None),
    ],
)
def test_retry_after_is_seconds_or_a_date(header: str, seconds: float | None):
    assert read(status_reply(503, retry_after=header)).retry_after_s == seconds


def test_a_date_is_measured_by_the_servers_own_clock():
    reply = status_reply(503, retry_after="Thu, 01 Jan 2026 00:02:00 GMT", date="Thu, 01 Jan 2026 00:01:50 GMT")
    assert read(reply).retry_after_s == 10


def test_without_the_header_the_details_decide():
    assert read(status_reply(429, details={"retryAfterSeconds": 5})).retry_after_s == 5


def test_an_error_in_a_watch_is_the_same_error():
    error = read_status_error(b'{"kind":"Status","code":410,"reason":"Expired","message":"too old"}')
    assert type(error) is errors.Expired
    assert read_status_error(b'{"kind":"Pod"}') is None


@settings(max_examples=200)
@given(st.integers(300, 599), st.binary(max_size=200) | st.text(max_size=50).map(msgspec.json.encode), st.text())
def test_no_answer_however_odd_is_worse_than_an_api_error(code: int, body: bytes, header: str):
    error = read(Response(code, headers={"retry-after": header, "date": header}, body=body))
    assert isinstance(error, errors.ApiError)
    assert str(error)
