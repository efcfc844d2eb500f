"""Values that a driver would refuse are an InvalidInput that names the column, on every database."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

import pytest

from plimsoll.core.errors import InvalidInput
from plimsoll.fleet.model.kafkas import Route
from plimsoll.fleet.model.statuses import KafkaStatus
from tests.fleet.store.databases import CHECK, build_kafka, build_ready

if TYPE_CHECKING:
    from plimsoll.fleet.ports import FleetStore
    from tests.fleet.store.databases import DatabaseUnderTest

TEXTS = ["a\0b", "\0", "\ud800", "a\udfff", "\udc80"]
ZONELESS = datetime(2026, 1, 1)  # noqa: DTZ001 - what is refused


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("column", ["id", "name", "owner", "status_details", "client_secret", "cluster_id"])
def test_text_with_nul_or_an_unpaired_surrogate(database: DatabaseUnderTest, column: str, text: str):
    async def story(store: FleetStore) -> None:
        if column in {"name", "owner"}:
            await store.insert_kafka(build_kafka(**{column: text}), CHECK)
        else:
            await store.insert_cluster(build_ready(**{column: text}))

    with pytest.raises(InvalidInput) as raised:
        database.play_store(story)
    assert raised.value.path == column
    assert "\0" not in str(raised.value)


@pytest.mark.parametrize("text", TEXTS)
def test_text_to_look_for(database: DatabaseUnderTest, text: str):
    async def story(store: FleetStore) -> None:
        lookups: list[tuple[str, Any]] = [
            ("id", store.get_cluster(text)),
            ("id", store.get_kafka(text)),
            ("cluster_id", store.find_cluster(text)),
            ("client_id", store.find_client(text)),
            ("cluster_id", store.list_kafkas([KafkaStatus.READY], cluster_id=text)),
            ("placement_id", store.change_kafka("k", {"owner": "x"}, statuses=[KafkaStatus.READY], placement_id=text)),
            ("owner", store.change_kafka("k", {"owner": text}, statuses=[KafkaStatus.READY])),
        ]
        for column, lookup in lookups:
            with pytest.raises(InvalidInput) as raised:
                await lookup
            assert raised.value.path == column

    database.play_store(story)


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("bytes_stored", 2**63),
        ("bytes_stored", -(2**63) - 1),
        ("created_at", ZONELESS),
        ("expires_at", ZONELESS),
        ("routes", (Route(domain="\ud800", router=""),)),
    ],
)
def test_numbers_times_and_json(database: DatabaseUnderTest, column: str, value: Any):
    async def story(store: FleetStore) -> None:
        await store.insert_kafka(build_kafka(**{column: value}), CHECK)

    with pytest.raises(InvalidInput) as raised:
        database.play_store(story)
    assert raised.value.path == column


@pytest.mark.parametrize("value", [{"x": object()}, {"x": "\ud800"}])
def test_opaque_data_of_providers(database: DatabaseUnderTest, value: Any):
    async def story(store: FleetStore) -> None:
        await store.insert_cluster(build_ready(provider_spec=value))

    with pytest.raises(InvalidInput) as raised:
        database.play_store(story)
    assert raised.value.path == "provider_spec"


def test_a_refused_value_changes_nothing(database: DatabaseUnderTest):
    async def story(store: FleetStore) -> None:
        await store.insert_cluster(build_ready())
        with pytest.raises(InvalidInput):
            await store.insert_kafka(build_kafka(cluster_id="cid-a", owner="\0"), CHECK)
        assert await store.list_kafkas(tuple(KafkaStatus)) == ()
        assert await store.list_clusters() == (build_ready(),)

    database.play_store(story)
