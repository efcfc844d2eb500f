"""Random clusters and requests for properties of the analyzer."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from plimsoll.kafka.model.description import ClusterDescription, TopicDescription
from plimsoll.kafka.model.requests import Mode, RebalanceRequest
from tests.kafka.planning.clusters import describe_broker, describe_partition

MODES = [Mode.FULL, Mode.ADD_BROKERS, Mode.REMOVE_BROKERS, Mode.DEMOTE_BROKERS, Mode.FIX_OFFLINE_REPLICAS]


def rarely() -> st.SearchStrategy[bool]:
    return st.integers(0, 9).map(lambda number: number == 9)


@st.composite
def descriptions(draw: st.DrawFn, *, has_trouble: bool = True) -> ClusterDescription:
    """Clusters of up to nine brokers, with rates or without. Trouble: silent, fenced and unknown brokers, and so on."""
    count = draw(st.integers(2, 9))
    racks = draw(st.integers(1, 4))
    disk = draw(st.sampled_from([-1, 10**9, 10**12]))
    has_rates = draw(st.booleans())
    brokers = []
    for index in range(count):
        fields: dict[str, Any] = {"cpu_pct": draw(st.sampled_from([None, 10.0, 60.0]))} if has_rates else {}
        if has_trouble and draw(st.integers(0, 19)) == 19:
            fields |= draw(st.sampled_from([{"is_fenced": True}, {"log_dirs": None, "problem": "timed out"}]))
        brokers.append(describe_broker(index * 2, rack=f"r{index % racks}", disk=disk, **fields))
    ids = [broker.id for broker in brokers]
    topics = []
    for name in range(draw(st.integers(1, 4))):
        factor = draw(st.integers(1, min(count, 4 if draw(rarely()) else racks)))
        partitions = []
        for number in range(draw(st.integers(1, 12))):
            replicas = draw(st.permutations(ids))[:factor]
            fields = {}
            if has_rates:
                rate = st.sampled_from([0.0, 1e3, 1e5, 1e6])
                fields = {"bytes_in_per_s": draw(rate), "bytes_out_per_s": draw(rate)}
            if has_trouble:
                troubles = [{"leader": -1}, {"adding": (ids[0],)}, {"offline": (replicas[-1],)}]
                troubles += [{"removing": (replicas[0],)}, {"removing": (replicas[-1],), "adding": (replicas[0],)}]
                fields |= draw(st.sampled_from([{}] * 12 + troubles))
            size = draw(st.sampled_from([0, 1, 10**6, 5 * 10**6, 2 * 10**7]))
            partitions.append(describe_partition(number, replicas, size=size, **fields))
        topics.append(TopicDescription(name=f"t{name}", partitions=tuple(partitions)))
    return ClusterDescription(
        brokers=tuple(brokers), topics=tuple(topics), rate_source="prometheus" if has_rates else ""
    )


@st.composite
def requests(draw: st.DrawFn, description: ClusterDescription, mode: Mode) -> RebalanceRequest:
    ids = [broker.id for broker in description.brokers]
    some = st.lists(st.sampled_from(ids), min_size=1, max_size=2, unique=True).map(tuple)
    return RebalanceRequest(
        mode=mode,
        brokers=draw(some) if mode in {Mode.ADD_BROKERS, Mode.REMOVE_BROKERS, Mode.DEMOTE_BROKERS} else (),
        excluded_topics="t[0]" if draw(rarely()) else "",
        destination_brokers=draw(some) if draw(rarely()) else (),
        excluded_for_leadership=draw(some) if draw(rarely()) else (),
        excluded_for_replicas=draw(some) if draw(rarely()) else (),
        relief=draw(st.sampled_from([None, None, True, False])),
    )
