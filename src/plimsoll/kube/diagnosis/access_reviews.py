"""What we may do: every permission of every controller put to the server, and the rule for each that is missing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from plimsoll.core.errors import PlimsollError
from plimsoll.core.values import Value
from plimsoll.kube.diagnosis.batches import ask_each
from plimsoll.kube.diagnosis.findings import Finding, Level
from plimsoll.kube.diagnosis.permissions import Permission, Places, Question, Scope, only_missing, role_manifests
from plimsoll.kube.errors import UnreadableAnswer
from plimsoll.kube.transport import JSON, Request

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from plimsoll.kube.client import Client
    from plimsoll.kube.diagnosis.requirements import Requirements

_REVIEWS: Final = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"

Answers = dict[Question, "bool | PlimsollError"]


class _Status(Value):
    allowed: bool = False


class _Review(Value):
    status: _Status


async def review(client: Client, questions: Iterable[Question]) -> Answers:
    """Each question once."""
    distinct = tuple(dict.fromkeys(questions))
    answers = await ask_each(distinct, lambda question: _is_allowed(client, question))
    return dict(zip(distinct, answers, strict=True))


async def _is_allowed(client: Client, question: Question) -> bool:
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


class Asker(Value):
    """Who wants to know: `user` as the server knows them, `invocation` the command that asks, with `-o json`."""

    user: str = ""
    invocation: str = "plimsoll doctor -o json"


def judge(
    requirements: Requirements, answers: Mapping[Question, bool | PlimsollError], *, places: Places, asker: Asker
) -> Finding:
    """Whether the controller has the permissions it needs."""
    check = f"permissions.{requirements.controller}"
    asked = list(
        dict.fromkeys(question for permission in requirements.permissions for question in permission.questions(places))
    )
    refusal = next((answers[question] for question in asked if isinstance(answers[question], PlimsollError)), None)
    if refusal is not None:
        return Finding(
            check=check,
            level=Level.FAIL,
            message=f"the server does not say what we may do: {refusal}",
            fix="let us create selfsubjectaccessreviews.authorization.k8s.io (the role system:basic-user does)",
        )
    missing = [question for question in asked if not answers[question]]
    if not missing:
        message = f"has all {len(asked)} permissions it needs"
        return Finding(check=check, level=Level.OK, message=message, details={"needed": len(asked)})
    lacking = [permission for need in requirements.permissions for permission in only_missing(need, missing, places)]
    return Finding(
        check=check,
        level=Level.FAIL,
        message=f"{len(missing)} of {len(asked)} permissions it needs are missing",
        fix="\n".join([*_advice(check, requirements, lacking, asker=asker), *_later(requirements, places)]),
        details={
            "needed": len(asked),
            "missing": [
                _told(question, permission) for permission in lacking for question in permission.questions(places)
            ],
            "rules": [
                {**({"namespace": permission.namespace} if permission.namespace else {}), **permission.rule()}
                for permission in lacking
            ],
            "manifests": list(
                role_manifests(requirements.permissions, role=_role(requirements), user=asker.user, places=places)
            ),
        },
    )


def _role(requirements: Requirements) -> str:
    return f"plimsoll-{requirements.controller}"


def _told(question: Question, permission: Permission) -> dict[str, Any]:
    return {**msgspec.to_builtins(question), "why": permission.why}


def _advice(check: str, requirements: Requirements, lacking: list[Permission], *, asker: Asker) -> list[str]:
    """The missing rules, each under the reason for it, and how an administrator grants all of them."""
    user = asker.user or "this user"
    lines = [f"grant {user} these rules:"]
    for namespace in sorted({permission.namespace for permission in lacking}):
        lines.append(f"in a Role of namespace {namespace}:" if namespace else "in a ClusterRole:")
        for permission in lacking:
            if permission.namespace == namespace:
                lines += [f"  # {permission.why}", f"  - {_flow(permission.rule())}"]
    file = f"{_role(requirements)}.json"
    selected = f""".findings[] | select(.check == "{check}") | .details.manifests[]"""
    return [
        *lines,
        "or all it needs here, and no more: write the roles and bindings into a file, which grants nothing yet;",
        f"run this as {user}, for whom they are made out:",
        f"  {asker.invocation} | jq '{selected}' > {file}",
        "then apply them as an administrator of the same cluster:",
        f"  kubectl apply -f {file}",
    ]


def _later(requirements: Requirements, places: Places) -> list[str]:
    """What is granted namespace by namespace has to be granted again when there is another."""
    narrow = [permission for permission in requirements.permissions if permission.scope is Scope.INHABITED]
    if places.watched or not narrow:
        return []
    where = ", ".join(places.inhabited) or "none so far"
    what = ", ".join(dict.fromkeys(f"{verb} {permission.path}" for permission in narrow for verb in permission.verbs))
    return [
        f"{what}: granted only in namespaces that hold {requirements.custom_resources[0].name} ({where});",
        "  do this again when one comes into another namespace",
    ]


def _flow(rule: dict[str, Any]) -> str:
    """A rule on one line of YAML."""
    return "{" + ", ".join(f"{key}: {msgspec.json.encode(value).decode()}" for key, value in rule.items()) + "}"
