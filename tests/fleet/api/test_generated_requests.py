"""Requests that schemathesis generates, from our documents and from those of the original service.

They are sent in process, so that virtual time is not left: schemathesis' own transport starts a thread.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from plimsoll.fleet.api.operations import Group
from plimsoll.web.asgi_client import call_application
from plimsoll.web.client import Response as WebResponse
from tests.effort import IS_LONG
from tests.fleet.api.api_world import ApiWorld
from tests.fleet.api.original_documents import FILES, load_original
from tests.fleet.service import MEMORY

if TYPE_CHECKING:
    from collections.abc import Iterator

    from schemathesis import Case

EXAMPLES = 100 if IS_LONG else 5
OWN_CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]
ORIGINAL_CHECKS = [not_a_server_error, response_schema_conformance]
"""Statuses that the original left out of its documents (404, 413, 429) are answered all the same."""


class GeneratedRequests:
    """A world with one row of each kind, and a token per group."""

    def __init__(self, url: str = MEMORY) -> None:
        self.world = ApiWorld(url=url)
        cluster = self.world.add_cluster()
        self.kafka_id = self.world.create("orders").document["id"]
        self.tokens = {
            Group.PUBLIC: self.world.user_token(),
            Group.AGENT: self.world.agent_token(cluster),
            Group.ADMIN: self.world.admin_token(),
        }

    def find_id(self, path: str) -> str:
        ids = {"/agent-clusters/": "cid-a", "/admin/clusters/": "a", "/cloud_providers/": "aws", "/errors/": "7"}
        return next((value for part, value in ids.items() if part in path), self.kafka_id)

    def send(self, case: Case, group: Group) -> Any:
        case.headers["Authorization"] = f"Bearer {self.tokens[group]}"
        kwargs = case.as_transport_kwargs(base_url="http://fleet.test")
        fields = ("method", "url", "headers", "params", "data", "json", "cookies", "files")
        prepared = requests.Request(**{name: kwargs[name] for name in fields if name in kwargs}).prepare()
        body = prepared.body or b""
        path, _, query = prepared.path_url.partition("?")
        answer = self.world.run.run_until(
            call_application(
                self.world.api.application,
                str(prepared.method),
                path,
                query=query,
                headers={name: str(value) for name, value in prepared.headers.items() if str(value).isascii()},
                body=body if isinstance(body, bytes) else str(body).encode("utf-8", "surrogatepass"),
            )
        )
        assert isinstance(answer, WebResponse)
        return schemathesis.Response(
            status_code=answer.status,
            headers={name: [value] for name, value in answer.headers.items()},
            content=answer.body,
            request=prepared,
            elapsed=0.0,
            verify=False,
        )


@pytest.fixture(scope="module")
def generated() -> Iterator[GeneratedRequests]:
    generated = GeneratedRequests()
    yield generated
    generated.world.close()


def check_operations(
    generated: GeneratedRequests, document: dict[str, Any], group: Group, checks: list[Any], mode: Any
) -> int:
    """Tries every operation of a document, and returns their number."""
    schema = schemathesis.openapi.from_dict(document)
    count = 0
    for result in schema.get_all_operations():
        found: Any = result
        operation = found.ok()
        count += 1
        if mode is schemathesis.GenerationMode.NEGATIVE and not (operation.query or operation.body):
            continue  # nothing can be wrong in such a request
        has_id = "{id}" in operation.path
        fixed = {"id": generated.find_id(operation.path)} if has_id else None

        @given(case=operation.as_strategy(mode, path_parameters=fixed))
        @settings(
            max_examples=EXAMPLES,
            derandomize=True,
            database=None,
            suppress_health_check=list(HealthCheck),
            deadline=None,
        )
        def check(case: Case) -> None:
            case.validate_response(generated.send(case, group), checks=checks)

        check()
    return count


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("mode", [schemathesis.GenerationMode.POSITIVE, schemathesis.GenerationMode.NEGATIVE])
@pytest.mark.parametrize("group", list(FILES))
def test_requests_from_our_documents_are_answered_as_documented(generated: GeneratedRequests, group: Group, mode: Any):
    document = generated.world.api.build_openapi(group)
    assert check_operations(generated, document, group, OWN_CHECKS, mode) >= 4


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("mode", [schemathesis.GenerationMode.POSITIVE, schemathesis.GenerationMode.NEGATIVE])
@pytest.mark.parametrize("group", list(FILES))
def test_requests_from_the_documents_of_the_original_are_answered_in_its_form(
    generated: GeneratedRequests, group: Group, mode: Any
):
    assert check_operations(generated, load_original(group), group, ORIGINAL_CHECKS, mode) >= 4
