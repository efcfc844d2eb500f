"""Access reviews: every permission of every controller is checked, and each missing one comes with its RBAC rule."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from plimsoll.core.errors import PlimsollError
from plimsoll.core.values import Value
from plimsoll.kube.diagnosis.findings import Finding, Level
from plimsoll.kube.diagnosis.parallel_requests import request_all
from plimsoll.kube.diagnosis.permissions import (
    AccessQuestion,
    Namespaces,
    Permission,
    Scope,
    build_role_manifests,
    select_missing,
)
from plimsoll.kube.errors import UnreadableAnswer
from plimsoll.kube.transport import JSON, Request

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from plimsoll.kube.client import Client
    from plimsoll.kube.diagnosis.requirements import Requirements

_REVIEWS: Final = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"

Answers = dict[AccessQuestion, "bool | PlimsollError"]


class _Status(Value):
    allowed: bool = False


class _Review(Value):
    status: _Status


async def review(client: Client, questions: Iterable[AccessQuestion]) -> Answers:
    """Each question once."""
    distinct = tuple(dict.fromkeys(questions))
    answers = await request_all(distinct, lambda question: _is_allowed(client, question))
    return dict(zip(distinct, answers, strict=True))


async def _is_allowed(client: Client, question: AccessQuestion) -> bool:
    attributes = {name: value for name, value in msgspec.to_builtins(question).items() if value}
    body = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": attributes},
    }
    headers = {"content-type": JSON, "accept": JSON}
    timeout_s = client.settings.timeout_s
    reply = await client.call(
        Request("POST", _REVIEWS, headers=headers, body=msgspec.json.encode(body), timeout_s=timeout_s)
    )
    try:
        return msgspec.json.decode(reply.body, type=_Review).status.allowed
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise UnreadableAnswer(f"not a SelfSubjectAccessReview: {error}") from error


class Reviewer(Value):
    """The subject of the reviews: its name on the server, and the command line that runs them, with `-o json`."""

    user: str = ""
    invocation: str = "plimsoll doctor -o json"


def check_permissions(
    requirements: Requirements,
    answers: Mapping[AccessQuestion, bool | PlimsollError],
    *,
    namespaces: Namespaces,
    reviewer: Reviewer,
) -> Finding:
    """Whether the controller has the permissions it needs."""
    check = f"permissions.{requirements.controller}"
    needed = list(
        dict.fromkeys(
            question for permission in requirements.permissions for question in permission.list_questions(namespaces)
        )
    )
    refusal = next((answers[question] for question in needed if isinstance(answers[question], PlimsollError)), None)
    if refusal is not None:
        return Finding(
            check=check,
            level=Level.FAIL,
            message=f"the server does not report the permissions of this client: {refusal}",
            fix="allow it to create selfsubjectaccessreviews.authorization.k8s.io (the role system:basic-user does)",
        )
    missing = [question for question in needed if not answers[question]]
    if not missing:
        message = f"has all {len(needed)} permissions it needs"
        return Finding(check=check, level=Level.OK, message=message, details={"needed": len(needed)})
    lacking = [
        permission for need in requirements.permissions for permission in select_missing(need, missing, namespaces)
    ]
    return Finding(
        check=check,
        level=Level.FAIL,
        message=f"{len(missing)} of {len(needed)} permissions it needs are missing",
        fix="\n".join(
            [
                *_format_advice(check, requirements, lacking, reviewer=reviewer),
                *_format_namespace_notes(requirements, namespaces),
            ]
        ),
        details={
            "needed": len(needed),
            "missing": [
                _build_review(question, permission)
                for permission in lacking
                for question in permission.list_questions(namespaces)
            ],
            "rules": [
                {**({"namespace": permission.namespace} if permission.namespace else {}), **permission.build_rule()}
                for permission in lacking
            ],
            "manifests": list(
                build_role_manifests(
                    requirements.permissions, role=_format_role(requirements), user=reviewer.user, namespaces=namespaces
                )
            ),
        },
    )


def _format_role(requirements: Requirements) -> str:
    return f"plimsoll-{requirements.controller}"


def _build_review(question: AccessQuestion, permission: Permission) -> dict[str, Any]:
    return {**msgspec.to_builtins(question), "why": permission.why}


def _format_advice(
    check: str, requirements: Requirements, lacking: list[Permission], *, reviewer: Reviewer
) -> list[str]:
    """The missing rules, each under the reason for it, and how an administrator grants all of them."""
    user = reviewer.user or "this user"
    lines = [f"grant {user} these rules:"]
    for namespace in sorted({permission.namespace for permission in lacking}):
        lines.append(f"in a Role of namespace {namespace}:" if namespace else "in a ClusterRole:")
        for permission in lacking:
            if permission.namespace == namespace:
                lines += [f"  # {permission.why}", f"  - {_format_rule(permission.build_rule())}"]
    file = f"{_format_role(requirements)}.json"
    selected = f""".findings[] | select(.check == "{check}") | .details.manifests[]"""
    return [
        *lines,
        "or grant exactly what it needs: write the roles and bindings to a file, which grants nothing yet;",
        f"run this as {user}, the subject of the bindings:",
        f"  {reviewer.invocation} | jq '{selected}' > {file}",
        "then apply them as an administrator of the same cluster:",
        f"  kubectl apply -f {file}",
    ]


def _format_namespace_notes(requirements: Requirements, namespaces: Namespaces) -> list[str]:
    """What is granted namespace by namespace has to be granted again when there is another."""
    narrow = [permission for permission in requirements.permissions if permission.scope is Scope.WITH_OBJECTS]
    if namespaces.watched or not narrow:
        return []
    where = ", ".join(namespaces.used) or "none so far"
    what = ", ".join(dict.fromkeys(f"{verb} {permission.path}" for permission in narrow for verb in permission.verbs))
    return [
        f"{what}: granted only in namespaces that hold {requirements.custom_resources[0].name} ({where});",
        "  repeat this when one is created in another namespace",
    ]


def _format_rule(rule: dict[str, Any]) -> str:
    """A rule on one line of YAML."""
    return "{" + ", ".join(f"{key}: {msgspec.json.encode(value).decode()}" for key, value in rule.items()) + "}"
