from __future__ import annotations

from typing import Any

import pytest

from plimsoll.local.apiserver.auth_types import User
from plimsoll.local.apiserver.authentication import Authenticated
from plimsoll.local.apiserver.reviews.review import review
from plimsoll.local.apiserver.reviews.token_requests import create_token
from plimsoll.local.apiserver.status_errors import StatusError
from tests.local.apiserver.authorization.builders import cluster_binding
from tests.local.apiserver.reviews.builders import ADMIN, ReviewHarness, review_call, token_call

Json = dict[str, Any]
AUTHENTICATION = "authentication.k8s.io"
PODS = {"verb": "get", "resource": "pods", "namespace": "n"}


@pytest.fixture(scope="module")
def court() -> ReviewHarness:
    return ReviewHarness()


def status(court: ReviewHarness, kind: str, spec: Json, **more: Any) -> Json:
    return review(court.server, review_call(kind, **more), {"spec": spec})["status"]


def refusal(court: ReviewHarness, kind: str, body: Json, **more: Any) -> Json:
    with pytest.raises(StatusError) as caught:
        review(court.server, review_call(kind, **more), body)
    return caught.value.status


def causes(answer: Json) -> list[str]:
    assert answer["code"] == 422
    return [f"{cause['field']}: {cause['message']}" for cause in answer["details"]["causes"]]


class TestAccessReviews:
    def test_one_asks_about_oneself(self, court: ReviewHarness):
        assert status(court, "SelfSubjectAccessReview", {"resourceAttributes": PODS}, user=ADMIN) == {"allowed": True}
        bob = User(name="bob")
        assert status(court, "SelfSubjectAccessReview", {"resourceAttributes": PODS}, user=bob) == {"allowed": False}

    def test_one_asks_about_another_by_group(self, court: ReviewHarness):
        spec = {"user": "x", "groups": ["system:masters"], "resourceAttributes": PODS}
        assert status(court, "SubjectAccessReview", spec) == {"allowed": True}

    def test_a_path_may_be_asked_about(self, court: ReviewHarness):
        spec = {"groups": ["system:monitoring"], "nonResourceAttributes": {"path": "/metrics", "verb": "get"}}
        assert status(court, "SubjectAccessReview", spec) == {
            "allowed": True,
            "reason": 'RBAC: allowed by ClusterRoleBinding "system:monitoring" of ClusterRole "system:monitoring"'
            ' to Group "system:monitoring"',
        }

    def test_a_broken_binding_is_reported(self):
        court = ReviewHarness(cluster_binding("b", "ClusterRole/gone", "User bob"))
        assert status(court, "SubjectAccessReview", {"user": "bob", "resourceAttributes": PODS}) == {
            "allowed": False,
            "reason": 'RBAC: clusterrole.rbac.authorization.k8s.io "gone" not found',
        }

    def test_both_kinds_of_attributes_are_too_much(self, court: ReviewHarness):
        spec = {"resourceAttributes": PODS, "nonResourceAttributes": {"path": "/", "verb": "get"}}
        (cause,) = causes(refusal(court, "SelfSubjectAccessReview", {"spec": spec}))
        assert cause == (
            'spec.nonResourceAttributes: Invalid value: {"path":"/","verb":"get"}:'
            " cannot be specified in combination with resourceAttributes"
        )

    def test_a_review_without_a_user_is_invalid(self, court: ReviewHarness):
        assert causes(refusal(court, "SubjectAccessReview", {"spec": {"resourceAttributes": PODS}})) == [
            'spec.user: Invalid value: "": at least one of user or group must be specified'
        ]

    def test_a_review_has_no_name(self, court: ReviewHarness):
        body = {"metadata": {"name": "x"}, "spec": {"resourceAttributes": PODS}}
        (cause,) = causes(refusal(court, "SelfSubjectAccessReview", body))
        assert cause.startswith("metadata: Invalid value: ")
        assert cause.endswith(": must be empty")

    def test_a_selector_says_something_once(self, court: ReviewHarness):
        spec = {"resourceAttributes": {**PODS, "fieldSelector": {}}}
        (cause,) = causes(refusal(court, "SelfSubjectAccessReview", {"spec": spec}))
        assert cause == (
            "spec.resourceAttributes.fieldSelector.requirements: Required value:"
            " when spec.resourceAttributes.fieldSelector is specified, requirements or rawSelector is required"
        )

    def test_a_body_of_the_wrong_types_is_a_bad_request(self, court: ReviewHarness):
        answer = refusal(court, "SelfSubjectAccessReview", {"spec": {"resourceAttributes": {"verb": 1}}})
        assert answer["code"] == 400
        assert answer["message"].startswith(
            'SelfSubjectAccessReview in version "v1" cannot be handled as a SelfSubjectAccessReview: json: '
        )

    @pytest.mark.parametrize("spec", [None, [], "x", 1, {"resourceAttributes": []}, {"extra": {"a": "b"}}])
    def test_nonsense_is_refused(self, court: ReviewHarness, spec: Any):
        assert refusal(court, "SubjectAccessReview", {"spec": spec})["code"] in {400, 422}


class TestLocalAccessReviews:
    def local(self, court: ReviewHarness, body: Json) -> Json:
        return review(court.server, review_call("LocalSubjectAccessReview", namespace="n"), body)

    def test_they_are_about_their_namespace(self, court: ReviewHarness):
        got = self.local(court, {"spec": {"user": "bob", "resourceAttributes": PODS}})
        assert got["metadata"]["namespace"] == "n"
        assert got["status"] == {"allowed": False}

    def test_another_namespace_is_refused(self, court: ReviewHarness):
        body = {"spec": {"user": "bob", "resourceAttributes": {**PODS, "namespace": "other"}}}
        assert causes(refusal(court, "LocalSubjectAccessReview", body, namespace="n")) == [
            'spec.resourceAttributes.namespace: Invalid value: "other": must match metadata.namespace'
        ]

    def test_paths_are_refused(self, court: ReviewHarness):
        body = {"spec": {"user": "bob", "nonResourceAttributes": {"path": "/", "verb": "get"}}}
        assert causes(refusal(court, "LocalSubjectAccessReview", body, namespace="n")) == [
            'spec.nonResourceAttributes: Invalid value: {"path":"/","verb":"get"}: disallowed on this kind of request'
        ]

    def test_the_body_may_not_name_another_namespace_than_the_address(self, court: ReviewHarness):
        body = {"metadata": {"namespace": "m"}, "spec": {"user": "bob", "resourceAttributes": PODS}}
        assert refusal(court, "LocalSubjectAccessReview", body, namespace="n")["message"] == (
            "the namespace of the provided object does not match the namespace sent on the request"
        )


def test_a_rules_review_needs_a_namespace(court: ReviewHarness):
    assert refusal(court, "SelfSubjectRulesReview", {"spec": {}})["message"] == "no namespace on request"


def test_a_rules_review_reports_what_it_could_not_find():
    court = ReviewHarness(cluster_binding("b", "ClusterRole/gone", "User bob"))
    got = status(court, "SelfSubjectRulesReview", {"namespace": "n"}, user=User(name="bob"))
    assert got["evaluationError"] == 'clusterrole.rbac.authorization.k8s.io "gone" not found'


class TestTokenReviews:
    def review(self, court: ReviewHarness, **spec: Any) -> Json:
        return status(court, "TokenReview", spec, group=AUTHENTICATION)

    def test_a_fixed_token_is_for_this_server_only(self, court: ReviewHarness):
        assert self.review(court, token="the-admin-token") == {
            "authenticated": True,
            "user": {"username": "admin", "groups": ["system:masters", "system:authenticated"]},
            "audiences": ["https://kubernetes.default.svc"],
        }
        other = self.review(court, token="the-admin-token", audiences=["vault"])
        assert other == {"user": {}, "error": "invalid bearer token"}

    def test_a_token_for_another_audience_is_valid_there(self, court: ReviewHarness):
        token = court.account_token(audiences=["vault", "x"])
        assert self.review(court, token=token, audiences=["vault"])["audiences"] == ["vault"]


class TestTokenRequests:
    def request(self, court: ReviewHarness, **spec: Any) -> Json:
        return create_token(court.server, token_call(), {"spec": spec})

    def refusal(self, court: ReviewHarness, body: Json, **call: str) -> Json:
        with pytest.raises(StatusError) as caught:
            create_token(court.server, token_call(**call), body)
        return caught.value.status

    def test_the_token_is_good_for_an_hour_and_for_this_server(self, court: ReviewHarness):
        got = self.request(court)
        assert got["spec"] == {
            "audiences": ["https://kubernetes.default.svc"],
            "expirationSeconds": 3600,
            "boundObjectRef": None,
        }
        assert got["status"]["expirationTimestamp"] == "2026-11-15T05:02:58Z"
        found = court.server.authenticator.authenticate_token(got["status"]["token"])  # type: ignore[attr-defined]
        assert isinstance(found, Authenticated)
        assert found.user.name == "system:serviceaccount:auth:sa"

    def test_audiences_and_duration_are_taken(self, court: ReviewHarness):
        got = self.request(court, audiences=["vault"], expirationSeconds=600)
        claims = court.tokens.read(got["status"]["token"])
        assert claims is not None
        assert claims.audiences == ("vault",)
        assert claims.expires_at_s - claims.issued_at_s == 600

    @pytest.mark.parametrize(
        ("seconds", "detail"),
        [
            (599, "may not specify a duration less than 10 minutes"),
            (0, "may not specify a duration less than 10 minutes"),
            (2**32 + 1, "may not specify a duration larger than 2^32 seconds"),
        ],
    )
    def test_durations_have_limits(self, court: ReviewHarness, seconds: int, detail: str):
        assert self.refusal(court, {"spec": {"expirationSeconds": seconds}})["message"] == (
            'TokenRequest.authentication.k8s.io "" is invalid:'
            f" spec.expirationSeconds: Invalid value: {seconds}: {detail}"
        )

    def test_the_account_must_be_there(self, court: ReviewHarness):
        answer = self.refusal(court, {}, name="gone")
        assert (answer["code"], answer["message"]) == (404, 'serviceaccounts "gone" not found')

    def test_a_name_in_the_body_must_be_the_accounts(self, court: ReviewHarness):
        assert self.refusal(court, {"metadata": {"name": "x"}})["message"] == (
            'TokenRequest.authentication.k8s.io "sa" is invalid:'
            ' metadata.name: Invalid value: "x": must match the service account name if specified'
        )

    def test_a_token_may_be_bound_to_a_pod_of_the_account(self):
        metadata = {"name": "p", "namespace": "auth", "uid": "u1"}
        court = ReviewHarness(
            {"kind": "Pod", "apiVersion": "v1", "metadata": metadata, "spec": {"serviceAccountName": "sa"}}
        )
        ref = {"kind": "Pod", "apiVersion": "v1", "name": "p", "uid": "u1"}
        got = self.request(court, boundObjectRef=ref)
        assert got["spec"]["boundObjectRef"] == ref
        found = court.server.authenticator.authenticate_token(got["status"]["token"])  # type: ignore[attr-defined]
        assert isinstance(found, Authenticated)
        assert found.user.extra["authentication.kubernetes.io/pod-uid"] == ("u1",)

    @pytest.mark.parametrize(
        ("ref", "code", "message"),
        [
            ({"kind": "Pod", "apiVersion": "v1", "name": "gone"}, 404, 'pods "gone" not found'),
            (
                {"kind": "Job", "apiVersion": "batch/v1", "name": "p"},
                400,
                "cannot bind token to object of type batch/v1, Kind=Job",
            ),
            (
                {"kind": "Pod", "apiVersion": "v1", "name": "other"},
                400,
                'cannot bind token for serviceaccount "sa" to pod running with serviceaccount "default"',
            ),
            ({"kind": "Pod", "apiVersion": "v1", "name": "p", "uid": "u2"}, 409, None),
        ],
    )
    def test_a_binding_must_hold(self, ref: Json, code: int, message: str | None):
        def pod(name: str, account: str) -> Json:
            metadata = {"name": name, "namespace": "auth", "uid": "u1"}
            return {"kind": "Pod", "apiVersion": "v1", "metadata": metadata, "spec": {"serviceAccountName": account}}

        court = ReviewHarness(pod("p", "sa"), pod("other", "default"))
        answer = self.refusal(court, {"spec": {"boundObjectRef": ref}})
        assert answer["code"] == code
        assert message in {None, answer["message"]}


def test_a_self_subject_review_names_the_user(court: ReviewHarness):
    user = User(name="bob", uid="u", groups=("dev",), extra={"b": ("2",), "a": ("1", "1")})
    got = review(court.server, review_call("SelfSubjectReview", user=user, group=AUTHENTICATION), {})
    assert got == {
        "kind": "SelfSubjectReview",
        "apiVersion": "authentication.k8s.io/v1",
        "metadata": {"creationTimestamp": "2026-11-15T04:02:58Z"},
        "status": {
            "userInfo": {"username": "bob", "uid": "u", "groups": ["dev"], "extra": {"a": ["1", "1"], "b": ["2"]}}
        },
    }
