"""Unreadable parameters are ignored and reported once."""

from __future__ import annotations

from structlog.testing import capture_logs

from plimsoll.nodes.requests.reader import IgnoredParametersLog
from tests.nodes.requests.listed_requests import request, seen_one

ODD = seen_one(request(noRetry="yes"))


def test_n06_a_parameter_that_cannot_be_read_is_reported_once():
    ignored_parameters = IgnoredParametersLog()
    with capture_logs() as logs:
        ignored_parameters.log_new([ODD])
        ignored_parameters.log_new([ODD])
    (reported,) = logs
    assert (reported["log_level"], reported["request"], reported["problems"]) == (
        "error",
        "ml/r",
        ["noRetry is 'yes', not true or false"],
    )


def test_no_other_is_reported():
    with capture_logs() as logs:
        IgnoredParametersLog().log_new([seen_one(request(noRetry="false", reserve="true", ValidUntilSeconds="2h"))])
    assert logs == []


def test_deleted_requests_are_forgotten():
    ignored_parameters = IgnoredParametersLog()
    with capture_logs() as logs:
        ignored_parameters.log_new([ODD])
        ignored_parameters.log_new([])
        ignored_parameters.log_new([ODD])
    assert len(logs) == 2
