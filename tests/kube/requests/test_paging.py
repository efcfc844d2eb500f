"""Lists in pages: the same as lists in one piece, whatever happens meanwhile."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plimsoll.core.errors import InvalidInput
from plimsoll.core.field_selectors import parse_field_selector
from plimsoll.core.label_selector_parsing import parse_label_selector
from plimsoll.core.selectors import NOTHING
from plimsoll.kube.client import Client
from plimsoll.kube.errors import Expired, UnreadableAnswer
from plimsoll.kube.requests.options import ClientSettings, Selection
from plimsoll.kube.transport import Request, Response
from plimsoll.objects.api.core import ConfigMap
from plimsoll.runtime.entropy import SeededEntropy
from plimsoll.testing import run_virtual
from tests.kube.embedded_api import EmbeddedApi, ScriptedTransport, json_reply, status_reply
from tests.local.apiserver.builders import config_map

if TYPE_CHECKING:
    from tests.golden.reviewed_sentences import ReviewedSentences

URL = "/api/v1/namespaces/here/configmaps"
HERE = Selection(namespace="here")


def world_with(count: int) -> EmbeddedApi:
    world = EmbeddedApi()
    world.namespace()
    for number in range(count):
        world.made(URL, config_map(f"c{number:02}", metadata={"labels": {"parity": str(number % 2)}}))
    return world


def names(listed: Any) -> list[str]:
    return [item.metadata.name for item in listed.items]


def page(*items: str, token: str = "", version: str = "7") -> Response:
    metadata = {"resourceVersion": version, "continue": token}
    listed = [{"metadata": {"name": name}} for name in items]
    return json_reply({"kind": "ConfigMapList", "metadata": metadata, "items": listed})


EXPIRED = status_reply(410, "too old", reason="Expired")


def listing(*script: Response, selection: Selection = HERE) -> tuple[list[str], list[Request]]:
    async def main(clock: Any) -> tuple[list[str], list[Request]]:
        transport = ScriptedTransport(*script)
        client = Client(transport, clock=clock, entropy=SeededEntropy(1))
        return names(await client.list(ConfigMap, selection)), transport.sent

    return run_virtual(main)


def test_a_list_is_read_in_pages_of_the_clients_size():
    with world_with(5) as world:
        client = world.new_client(settings=ClientSettings(qps=0, page_size=2))

        async def sizes() -> list[int]:
            return [len(page.items) async for page in client.iterate_pages(ConfigMap, HERE)]

        assert world.do(sizes()) == [2, 2, 1]


def test_a_list_carries_the_version_of_its_first_page_and_no_token():
    with world_with(5) as world:
        listed = world.do(world.client.list(ConfigMap, Selection(namespace="here", page_size=2)))
        assert listed.metadata.resource_version == world.ask("GET", URL)["metadata"]["resourceVersion"]
        assert (listed.metadata.continue_, listed.metadata.remaining_item_count) == ("", None)


@pytest.mark.parametrize(
    "selection",
    [
        Selection(namespace="here", labels="parity=1", page_size=1),
        Selection(namespace="here", labels=parse_label_selector("parity in (1)"), page_size=1),
        Selection(labels="parity=1"),
    ],
)
def test_labels_select_in_every_page(selection: Selection):
    with world_with(4) as world:
        assert names(world.do(world.client.list(ConfigMap, selection))) == ["c01", "c03"]


@pytest.mark.parametrize("fields", ["metadata.name=c02", parse_field_selector("metadata.name=c02")])
def test_fields_select(fields: Any):
    with world_with(4) as world:
        assert names(world.do(world.client.list(ConfigMap, Selection(namespace="here", fields=fields)))) == ["c02"]


def test_a_selector_that_selects_nothing_is_never_sent_as_one_that_selects_everything(reviewed: ReviewedSentences):
    with pytest.raises(InvalidInput) as raised:
        Selection(labels=NOTHING)
    reviewed(str(raised.value))


def test_raw_pages_hold_each_objects_bytes():
    with world_with(3) as world:

        async def read() -> list[tuple[str, bytes]]:
            pages = world.client.iterate_raw_pages(ConfigMap, Selection(namespace="here", page_size=2))
            return [
                (item.metadata.name, raw)
                async for page in pages
                for item, raw in zip(page.listed.items, page.raws, strict=True)
            ]

        rows = world.do(read())
        assert [name for name, _ in rows] == ["c00", "c01", "c02"]
        assert all(f'"name":"{name}"'.encode() in raw for name, raw in rows)


def test_metadata_alone_may_be_listed():
    with world_with(3) as world:

        async def read() -> list[tuple[str, dict[str, str]]]:
            pages = world.client.iterate_metadata_pages(
                ConfigMap, Selection(namespace="here", labels="parity=0", page_size=1)
            )
            return [(item.metadata.name, item.metadata.labels) async for page in pages for item in page.items]

        assert world.do(read()) == [("c00", {"parity": "0"}), ("c02", {"parity": "0"})]


def test_the_version_is_reported_only_once():
    selection = Selection(namespace="here", resource_version="5", resource_version_match="Exact", page_size=1)
    _, sent = listing(page("a", token="t"), page("b"), selection=selection)
    assert [dict(call.query) for call in sent] == [
        {"resourceVersion": "5", "resourceVersionMatch": "Exact", "limit": "1"},
        {"limit": "1", "continue": "t"},
    ]


def test_a_server_that_ignores_the_limit_is_fine():
    assert listing(page("a", "b", "c"), selection=Selection(page_size=1))[0] == ["a", "b", "c"]


def test_an_empty_page_with_a_token_is_not_the_end():
    assert listing(page(token="t"), page("b"))[0] == ["b"]


def test_a_list_that_expires_on_the_way_is_started_over():
    found, sent = listing(page("old", token="t"), EXPIRED, page("a", token="u"), page("b"))
    assert (found, len(sent)) == (["a", "b"], 4)


def test_a_list_that_always_expires_is_asked_for_in_one_piece():
    found, sent = listing(*[page("old", token="t"), EXPIRED] * 3, page("a", "b"))
    assert found == ["a", "b"]
    assert dict(sent[-1].query) == {}


def test_a_first_page_that_expired_would_expire_again():
    with pytest.raises(Expired, match="too old"):
        listing(EXPIRED, selection=Selection(resource_version="1", resource_version_match="Exact"))


def test_pages_by_themselves_raise_what_expired():
    seen: list[str] = []

    async def main(clock: Any) -> None:
        client = Client(ScriptedTransport(page("a", token="t"), EXPIRED), clock=clock, entropy=SeededEntropy(1))
        async for decoded_list in client.iterate_pages(ConfigMap):
            seen.extend(names(decoded_list))

    with pytest.raises(Expired):
        run_virtual(main)
    assert seen == ["a"]


def test_a_server_that_never_ends_its_list_is_stopped(reviewed: ReviewedSentences):
    with pytest.raises(UnreadableAnswer) as raised:
        listing(page("a", token="t"))
    reviewed(str(raised.value))


def test_an_answer_that_is_no_list_is_not_an_empty_list(reviewed: ReviewedSentences):
    with pytest.raises(UnreadableAnswer) as raised:
        listing(json_reply({"kind": "PodList", "items": []}))
    reviewed(str(raised.value))


def test_one_bad_object_does_not_lose_the_list():
    items = [{"metadata": {"name": "good"}}, {"metadata": {"name": "bad"}, "data": 7}]
    reply = json_reply({"kind": "ConfigMapList", "metadata": {}, "items": items})

    async def main(clock: Any) -> Any:
        client = Client(ScriptedTransport(reply), clock=clock, entropy=SeededEntropy(1))
        return await client.list(ConfigMap)

    listed = run_virtual(main)
    assert (names(listed), [bad.name for bad in listed.bad]) == (["good"], ["bad"])


writes = st.lists(st.tuples(st.sampled_from(["make", "change", "remove"]), st.integers(0, 11)), min_size=0, max_size=6)


@settings(max_examples=25)
@given(st.integers(1, 9), st.lists(writes, max_size=8))
def test_a_list_in_pages_equals_the_list_in_one_piece_at_its_beginning(page_size: int, meanwhile: list[Any]):
    with world_with(8) as world:
        before = [item["metadata"]["name"] for item in world.ask("GET", URL)["items"]]
        pending = iter(meanwhile)

        async def read() -> list[str]:
            found: list[str] = []
            async for decoded_list in world.client.iterate_pages(
                ConfigMap, Selection(namespace="here", page_size=page_size)
            ):
                found += names(decoded_list)
                for verb, number in next(pending, ()):
                    await written(world, verb, f"c{number:02}")
            return found

        assert world.do(read()) == before


async def written(world: EmbeddedApi, verb: str, name: str) -> None:
    method, url, body = {
        "make": ("POST", URL, config_map(name)),
        "change": ("PUT", f"{URL}/{name}", config_map(name, data={"changed": "yes"})),
        "remove": ("DELETE", f"{URL}/{name}", None),
    }[verb]
    call = Request(method, url, headers={"content-type": "application/json"}, body=b"")
    if body is not None:
        call = call._replace(body=json_reply(body).body)
    await world.new_transport().send(call)
